# SPDX-License-Identifier: Apache-2.0
"""Other people's arrays: what has no plain buffer, and new arrays for results."""

import ctypes
import re
import sys

from . import _raw
from ._enums import MemoryKind
from ._errors import InvalidArgument
from ._matrix import ON_CUDA, ON_HOST, Matrix, _dtype_size, dtypes

_LEGACY_STREAM = 1  # as DLPack and the CUDA array interface number CUDA's default stream

_KINDS = {"f": "float", "c": "complex", "i": "int", "u": "uint"}
NAMED = {"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}  # no array interface has a letter for them
_BY_LONG_NAME = {long: short for short, long in NAMED.items()}


def long_name(dtype):
    """What NumPy, ml_dtypes and PyTorch call a type: "f32" is "float32"."""
    if dtype in NAMED:
        return NAMED[dtype]
    kind, bits = re.fullmatch(r"([a-z]+)(\d+)", dtype).groups()
    return _KINDS[kind] + bits


def typestr_of(dtype):
    """The type in an array interface: "<f4". What has no letter is so many bytes."""
    size = _dtype_size(dtype)
    return f"{'|' if size == 1 else '<'}{'V' if dtype in NAMED else dtype[0]}{size}"


def _named(array):
    """The type of an array that only its dtype's name tells: "bf16" of NumPy's (by ml_dtypes) or PyTorch's; or None."""
    return _BY_LONG_NAME.get(str(getattr(array, "dtype", "")).rpartition(".")[2])


def _dtype_of_typestr(typestr, array):
    if named := _named(array):
        return named
    kind, size = typestr[1], int(typestr[2:])
    if typestr[0] == ">" and size > 1:
        raise InvalidArgument("its elements are big-endian")
    return f"{kind}{size * 8}"


def _by_dlpack(array):
    device, number = array.__dlpack_device__()
    options = {}
    if device == ON_CUDA:
        options["stream"] = _LEGACY_STREAM  # the producer orders its own stream before this one
    try:
        capsule = array.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # an exporter from before DLPack 1.0
        capsule = array.__dlpack__(**options)
    if device == ON_CUDA:
        _raw.synchronize_producer(number, _LEGACY_STREAM)
    return Matrix._capsule(capsule, array)


def _by_bytes(array, dtype):
    """A PyTorch tensor of f8, which most of its versions do not export."""
    held = _by_dlpack(array.view(sys.modules["torch"].int8))
    memory = int(MemoryKind.AUTO)
    return Matrix._at(held.address, held.shape, held.strides, dtype, held.readonly, *held._place, memory, held)


def _by_interface(array, interface, place, number):
    address, readonly = interface["data"]
    return Matrix._at(
        address or 0,
        tuple(interface["shape"]),
        interface.get("strides"),
        _dtype_of_typestr(interface["typestr"], array),
        bool(readonly),
        place,
        number,
        int(MemoryKind.AUTO),
        array,
    )


def _cuda_device_of(address):
    """The device of an address, from the driver that the array's owner has loaded."""
    number = ctypes.c_int(0)
    ordinal = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    ctypes.CDLL("libcuda.so.1").cuPointerGetAttribute(ctypes.byref(number), ordinal, ctypes.c_void_p(address))
    return number.value


def _by_cuda_interface(array):
    interface = array.__cuda_array_interface__
    number = _cuda_device_of(interface["data"][0])
    stream = interface.get("stream", _LEGACY_STREAM)  # versions before 3 do not say
    if stream is not None:
        _raw.synchronize_producer(number, int(stream))
    return _by_interface(array, interface, ON_CUDA, number)


def _library_of(array):
    return type(array).__module__.partition(".")[0]


def _ways(array):
    named = _named(array)
    if named and hasattr(array, "__array_interface__"):  # NumPy with ml_dtypes
        yield lambda: _by_interface(array, array.__array_interface__, ON_HOST, 0)
    if named and named != "bf16" and _library_of(array) == "torch":
        yield lambda: _by_bytes(array, named)
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        yield lambda: _by_dlpack(array)
    if hasattr(array, "__cuda_array_interface__"):
        yield lambda: _by_cuda_interface(array)
    if hasattr(array, "__array_interface__"):
        yield lambda: _by_interface(array, array.__array_interface__, ON_HOST, 0)


def as_matrix(array, name):
    """A Matrix of what is no buffer of a known format. The first way that the array offers is the way."""
    for way in _ways(array):
        try:
            return way()
        except Exception as failure:  # whatever its library raises
            kind = getattr(array, "dtype", None)
            raise InvalidArgument(
                f"{name} (a {type(array).__name__}{f' of {kind}' if kind is not None else ''}) is no operand: "
                f"{failure}"
            ) from failure
    try:
        view = memoryview(array)
    except TypeError:
        raise TypeError(
            f"{name} is a {type(array).__name__}, which is no array: it has no buffer, __dlpack__, "
            "__cuda_array_interface__ or __array_interface__"
        ) from None
    raise InvalidArgument(
        f"{name} (a {type(array).__name__}) has elements of format {view.format!r}, which are not multiplied here"
    )


def look(array, name):
    """A Matrix of any array."""
    try:
        memoryview(array).release()
    except (TypeError, ValueError, BufferError):
        return as_matrix(array, name)
    made = Matrix._of(array, None)
    return made if made is not None else as_matrix(array, name)


def is_masked(kind):
    """Whether a type's arrays have masks, as numpy.ma's do."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and issubclass(kind, masked)


def _numpy_dtype(numpy, dtype, like):
    if dtype in NAMED:
        if str(getattr(like, "dtype", "")) == long_name(dtype):
            return like.dtype
        import ml_dtypes

        return getattr(ml_dtypes, long_name(dtype))
    return getattr(numpy, long_name(dtype))


def _remember(numpy):
    """From now on the extension makes the results of NumPy's arrays by itself."""
    own = {value: name for name, value in dtypes().items() if name not in NAMED}
    _raw.remember_numpy(
        numpy.ndarray, numpy.empty, {value: numpy.dtype(getattr(numpy, long_name(name))) for value, name in own.items()}
    )


def plain(shape, dtype):
    """A Matrix in memory of its own: for element types that no array at hand has."""
    nbytes = _dtype_size(dtype)
    for extent in shape:
        nbytes *= extent
    memory = bytearray(nbytes)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) if nbytes else 0
    return Matrix.at(address, shape, dtype, owner=memory)


def empty(shape, dtype, like=None):
    """A new host array: NumPy's where NumPy has the type, else a Matrix, or a memoryview where there is no NumPy."""
    try:
        import numpy
    except ImportError:
        code = {"f64": "d", "f32": "f", "f16": "e", "i8": "b", "i32": "i"}.get(dtype)
        if code is None or 0 in shape:
            return plain(shape, dtype)
        return memoryview(plain(shape, dtype).owner).cast(code, shape)
    try:
        return numpy.empty(shape, _numpy_dtype(numpy, dtype, like))
    except ImportError:  # bf16 and f8 are ml_dtypes'
        return plain(shape, dtype)


def make_result(like, shape, dtype):
    """A new array of like's library, where `like` lies."""
    library = sys.modules.get(_library_of(like))
    family = getattr(library, "__name__", "")
    if family == "torch":
        return library.empty(shape, dtype=getattr(library, long_name(dtype)), device=like.device)
    if family == "cupy":
        with like.device:
            return library.empty(shape, dtype=long_name(dtype))
    if family == "numpy" and type(like) is library.ndarray:
        _remember(library)
    if isinstance(like, Matrix):
        if like._memory != MemoryKind.AUTO:
            return Matrix.placeholder(shape, dtype, place=like._memory)
        if like._place[0] != ON_HOST:
            raise InvalidArgument("a lies in device memory: c must be given")
    return empty(shape, dtype, like)
