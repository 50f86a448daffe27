# SPDX-License-Identifier: Apache-2.0
"""Memory of a context: on its device, and pinned on the host."""

from . import _arrays, _raw
from ._enums import MemoryKind, integer
from ._errors import InvalidArgument
from ._handles import Handle, when_dropped
from ._results import numpy_dtype
from ._matrix import Matrix, _dtype_size, strides_of


class _Kept:
    """A resource that a function releases when no user is left."""

    def __init__(self, release, *arguments):
        when_dropped(self, release, *arguments)


class Buffer(Handle):
    """Device memory, uninitialised. Matrices in it keep the memory; closing it releases this object's reference."""

    def __init__(self, context, nbytes, *, device=0):
        """Allocates `nbytes` on a device of `context`, by its number there."""
        options = _raw.sg_buffer_options()
        nbytes = integer(nbytes, "nbytes", 0, (1 << 63) - 1)
        options.device = integer(device, "device", 0)
        self._own(_raw.sg_buffer_create(context._open(), nbytes, options), _raw.sg_buffer_release)
        self._place = context._places[options.device]
        self.nbytes = nbytes

    @property
    def address(self):
        """Its first byte's address on the device."""
        return _raw.sg_buffer_data(self._open())

    def matrix(self, shape, dtype="f32", *, offset=0, order="C"):
        """A Matrix (vector, stack) in this memory.

        shape: its extents. dtype: "f32", "f64", "bf16", ... offset: bytes from the start. order: "C", or "F" for column-major.
        """
        handle, size = self._open(), _dtype_size(dtype)
        needed = size
        for extent in shape:
            needed *= extent
        offset = integer(offset, "offset", -(1 << 63), (1 << 63) - 1)
        if offset < 0 or needed + offset > self.nbytes:
            raise InvalidArgument(f"{needed} bytes at offset {offset} do not fit into a buffer of {self.nbytes}")
        address = _raw.sg_buffer_data(handle)
        _raw.sg_buffer_retain(handle)
        share = _Kept(_raw.sg_buffer_release, handle)
        return Matrix._at(
            address + offset,
            tuple(shape),
            strides_of(shape, size, order),
            dtype,
            False,
            *self._place,
            int(MemoryKind.AUTO),
            share,
        )


def _free_pinned(context, address):
    _raw.sg_host_free(context, address)
    _raw.sg_context_release(context)


def pinned_empty(context, shape, dtype, order, device):
    """A new array in pinned memory, which is freed after its last user."""
    handle, size = context._open(), _dtype_size(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    needed = size
    for extent in shape:
        needed *= extent
    needed = integer(max(needed, 1), "the number of bytes", 1, (1 << 63) - 1)
    if device is None:
        address = _raw.sg_host_alloc(handle, needed)
    else:
        address = _raw.sg_host_alloc_near(handle, integer(device, "device", -(1 << 31), (1 << 31) - 1), needed)
    _raw.sg_context_retain(handle)
    matrix = Matrix._at(
        address,
        shape,
        strides_of(shape, size, order),
        dtype,
        False,
        1,
        0,
        int(MemoryKind.AUTO),
        _Kept(_free_pinned, handle, address),
    )
    try:
        import numpy
    except ImportError:
        return matrix
    array = numpy.asarray(matrix)
    try:
        return array.view(numpy_dtype(numpy, dtype, None)) if dtype in _arrays.NAMED else array
    except ImportError:  # NumPy has no such type without ml_dtypes
        return matrix


def _unpin(context, address, matrix):
    _raw.sg_context_synchronize(context, -1)  # nothing in flight may use a range that is no longer pinned
    _raw.sg_host_unregister(context, address)
    _raw.sg_context_release(context)


class Pinned(Handle):
    """An array of the caller's that stays pinned until this is closed."""

    def __init__(self, context, array):
        """Pins `array` for the device of `context`."""
        handle = context._open()
        matrix = _arrays.look(array, "array")
        if reason := matrix._without_memory():
            raise InvalidArgument(f"array is {matrix!r}: {reason}")
        nbytes = _dtype_size(matrix.dtype)
        for extent, stride in zip(matrix.shape, matrix.strides):
            if extent == 0 or stride < 0:
                raise InvalidArgument("an array that is empty or runs backwards cannot be pinned")
            nbytes += (extent - 1) * stride
        _raw.sg_host_register(handle, matrix.address, nbytes)
        _raw.sg_context_retain(handle)
        self.array = array
        self._handle = handle
        self._finalizer = when_dropped(self, _unpin, handle, matrix.address, matrix)

    def __enter__(self):
        return self.array
