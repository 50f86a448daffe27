# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries without a plain buffer: DLPack and the array interfaces. Exported descriptions are checked."""

import ctypes
import operator
import re
import sys

from . import _raw
from ._enums import MemoryKind
from ._errors import InvalidArgument
from ._matrix import NAMED, ON_CUDA, ON_HOST, Matrix, dtypes

_LEGACY_STREAM = 1  # the number of CUDA's default stream in DLPack and the CUDA array interface

_KINDS = {"f": "float", "c": "complex", "i": "int", "u": "uint"}
_BY_LONG_NAME = {long: short for short, long in NAMED.items()}


def long_name(dtype):
    """The name of a type in NumPy, ml_dtypes and PyTorch: "f32" is "float32"."""
    if dtype in NAMED:
        return NAMED[dtype]
    kind, bits = re.fullmatch(r"([a-z]+)(\d+)", dtype).groups()
    return _KINDS[kind] + bits


def _named(array):
    """The type of an array that only its dtype's name identifies: "bf16" of NumPy (by ml_dtypes) or PyTorch; or None."""
    return _BY_LONG_NAME.get(str(getattr(array, "dtype", "")).rpartition(".")[2])


def _name_of(array):
    """An array's name of its element type: "float32" of NumPy, "torch.float32"; "" if it has none."""
    dtype = getattr(array, "dtype", "")
    return str(getattr(dtype, "name", "") or dtype).rpartition(".")[2]


def _dtype_of_typestr(typestr, array):
    if named := _named(array):
        return named
    if not isinstance(typestr, str) or not re.fullmatch(r"[<>|=][a-zA-Z][0-9]+", typestr):
        raise InvalidArgument(f"its typestr is {typestr!r}")
    kind, size = typestr[1], int(typestr[2:])
    if typestr[0] == ">" and size > 1:
        raise InvalidArgument("its elements are big-endian")
    if (dtype := f"{kind}{size * 8}") not in dtypes():
        raise InvalidArgument(f"its elements have the typestr {typestr!r}")
    return dtype


def _by_dlpack(array):
    if library_of(array) == "torch" and array.is_neg():  # PyTorch exports its memory as it is
        raise InvalidArgument("its elements are to be negated: resolve_neg() makes a tensor that is")
    device, number = map(operator.index, array.__dlpack_device__())
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
    return Matrix._at(held.address, held.shape, held.strides, dtype, held.readonly, *held._place, held._memory, held)


def _integers(values, what):
    if not isinstance(values, (tuple, list)) or not all(isinstance(value, int) for value in values):
        raise InvalidArgument(f"its {what} is {values!r}, which is no tuple of integers")
    return tuple(values)


def _by_interface(array, interface, place, number):
    if not isinstance(interface, dict):
        raise InvalidArgument(f"its array interface is {interface!r}, which is no dict")
    if interface.get("mask") is not None:
        raise InvalidArgument("it has a mask, which a GEMM would ignore")
    if interface.get("offset"):
        raise InvalidArgument("its array interface has an offset")
    data, strides = interface.get("data"), interface.get("strides")
    if not isinstance(data, tuple) or len(data) != 2 or not isinstance(data[0], int) or data[0] < 0:
        raise InvalidArgument(f"the data of its array interface is {data!r}, which is no (address, readonly)")
    return Matrix._at(
        data[0],
        _integers(interface.get("shape"), "shape"),
        None if strides is None else _integers(strides, "strides"),
        _dtype_of_typestr(interface.get("typestr"), array),
        bool(data[1]),
        place,
        number,
        int(MemoryKind.AUTO),
        array,
    )


def _cuda_device_of(address):
    """The device of an address, from the driver that the array's library has loaded."""
    number = ctypes.c_int(0)
    ordinal = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    driver = ctypes.CDLL("libcuda.so.1")
    failure = driver.cuPointerGetAttribute(ctypes.byref(number), ordinal, ctypes.c_void_p(address))
    if failure == 1 and address:  # CUDA_ERROR_INVALID_VALUE; an empty array may have no address
        raise InvalidArgument(f"address {address:#x} is not CUDA's")
    return number.value


def _by_cuda_interface(array):
    interface = array.__cuda_array_interface__
    checked = _by_interface(array, interface, ON_CUDA, 0)
    number = _cuda_device_of(checked.address)
    stream = interface.get("stream", _LEGACY_STREAM)  # unknown before version 3
    if stream is not None:
        _raw.synchronize_producer(number, int(stream))
    return _by_interface(array, interface, ON_CUDA, number)


def library_of(array):
    return type(array).__module__.partition(".")[0]


def _ways(array):
    named = _named(array)
    if named and hasattr(array, "__array_interface__"):  # NumPy with ml_dtypes
        yield lambda: _by_interface(array, array.__array_interface__, ON_HOST, 0)
    if named and named != "bf16" and library_of(array) == "torch":
        yield lambda: _by_bytes(array, named)
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        yield lambda: _by_dlpack(array)
    if hasattr(array, "__cuda_array_interface__"):
        yield lambda: _by_cuda_interface(array)
    if hasattr(array, "__array_interface__"):
        yield lambda: _by_interface(array, array.__array_interface__, ON_HOST, 0)


def _accepted():
    names = [f"{name} ({long_name(name)})" for name in dtypes() if name != "i32"]
    return f"operands have elements of {', '.join(names)}; results of i32, too"


def as_matrix(array, name):
    """A Matrix of an object without a buffer of a known format, by the first protocol that it offers."""
    for way in _ways(array):
        try:
            return way()
        except Exception as failure:  # any exception of its library
            kind = getattr(array, "dtype", None)
            what = f"{name} (a {type(array).__name__}{f' of {kind}' if kind is not None else ''}) is no operand: "
            known = _name_of(array) in {"", *map(long_name, dtypes())}
            raise InvalidArgument(what + (str(failure) if known else _accepted())) from failure
    try:
        view = memoryview(array)
    except TypeError:
        raise TypeError(
            f"{name} is a {type(array).__name__}, which is no array: it has no buffer, __dlpack__, "
            "__cuda_array_interface__ or __array_interface__"
        ) from None
    except Exception as failure:  # any exception of its exporter
        raise InvalidArgument(f"{name} (a {type(array).__name__}) is no operand: {failure}") from failure
    raise InvalidArgument(
        f"{name} (a {type(array).__name__}) has elements of format {view.format!r}; {_accepted()}"
    )


def is_masked(kind):
    """Whether a type's arrays have masks, as numpy.ma's do."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and issubclass(kind, masked)


def look(array, name):
    """A Matrix of any array."""
    if isinstance(array, Matrix):
        return array
    if is_masked(type(array)):
        raise TypeError(f"{name} is a {type(array).__name__}, whose mask a GEMM would ignore")
    try:
        memoryview(array).release()
    except (TypeError, ValueError, BufferError):
        return as_matrix(array, name)
    made = Matrix._of(array, None)
    return made if made is not None else as_matrix(array, name)


Matrix._look = staticmethod(look)  # here, as a Matrix may be made of any array
