# SPDX-License-Identifier: Apache-2.0
"""New arrays for results, from the library of an operand."""

import ctypes
import sys

from . import _raw
from ._arrays import NAMED, library_of, long_name
from ._device_array import DeviceArray
from ._enums import MemoryKind
from ._errors import InvalidArgument
from ._matrix import ON_HOST, Matrix, _dtype_size, dtypes


def numpy_dtype(numpy, dtype, like):
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
    """A Matrix in memory of its own: for element types without an array type."""
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
        return numpy.empty(shape, numpy_dtype(numpy, dtype, like))
    except ImportError:  # bf16 and f8 are types of ml_dtypes
        return plain(shape, dtype)


def make_result(like, shape, dtype, name):
    """A new array of `like`'s library, in the memory space of `like`."""
    library = sys.modules.get(library_of(like))
    family = getattr(library, "__name__", "")
    if family == "torch":
        return library.empty(shape, dtype=getattr(library, long_name(dtype)), device=like.device)
    if family == "cupy":
        with like.device:
            return library.empty(shape, dtype=long_name(dtype))
    if family == "numpy" and type(like) is library.ndarray:
        _remember(library)
    if isinstance(like, DeviceArray):
        return like.context.empty(shape, dtype)
    if isinstance(like, Matrix):
        if like._memory != MemoryKind.AUTO and not like.address:
            return Matrix.placeholder(shape, dtype, place=like._memory)
        if like._place[0] != ON_HOST:
            raise InvalidArgument(f"{name} is None, and the operands are in device memory: {name} must be given, or the operands be of Context.array")
    return empty(shape, dtype, like)
