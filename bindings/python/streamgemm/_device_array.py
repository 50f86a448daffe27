# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a context's device."""

from . import _arrays, _raw
from ._enums import MemoryKind
from ._errors import InvalidArgument
from ._handles import when_dropped
from ._matrix import Matrix, _dtype_size, bounds_of, strides_of


class _Share:
    """A reference to a buffer."""


def _shape_of(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _count(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def _bytes_of(array, address, nbytes):
    return Matrix._at(address, (nbytes,), None, "i8", False, *array._place, array._memory, array)


class DeviceArray(Matrix):
    """An array in the memory of a context's device: an operand without a copy, whose results are on the device, too.

    Context.array, empty and zeros make one, and so does an operation whose first operand is one and that is given no array for its
    result. Slices, `.T` and `reshape` are views of the same memory, which lives as long as one of them. The memory is reused
    for later arrays, in the order of the jobs that use it. On the cpu it is memory of the host, which NumPy may view.
    """

    __array_ufunc__ = None  # `array @ device_array` is ours

    def _derived(self, shape, strides):
        made = super()._derived(shape, strides)
        made._context = self._context
        return made

    def part(self, shape, strides=None, *, offset=0):
        made = super().part(shape, strides, offset=offset)
        made._context = self._context
        return made

    @property
    def context(self):
        """The context whose device it is in."""
        return self._context

    @property
    def size(self):
        """The number of its elements."""
        return _count(self.shape)

    @property
    def nbytes(self):
        """The bytes of its elements."""
        return self.size * _dtype_size(self.dtype)

    def __len__(self):
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key):
        """A view: of integers, slices and an ellipsis."""
        keys = key if isinstance(key, tuple) else (key,)
        given = sum(one is not Ellipsis for one in keys)
        if given > self.ndim or len(keys) - given > 1:
            raise IndexError(f"{len(keys)} indices are given; the array has {self.ndim} dimensions")
        rest = (slice(None),) * (self.ndim - given)
        at = next((i for i, one in enumerate(keys) if one is Ellipsis), len(keys))
        keys = keys[:at] + rest + keys[at + 1 :]
        offset, shape, strides = 0, [], []
        for axis, (one, extent, stride) in enumerate(zip(keys, self.shape, self.strides)):
            if isinstance(one, slice):
                start, stop, step = one.indices(extent)
                count = len(range(start, stop, step))
                offset += start * stride if count else 0
                shape.append(count)
                strides.append(step * stride)
                continue
            if not hasattr(one, "__index__"):
                raise TypeError(f"index {axis} is {one!r}; it must be an integer, a slice or an ellipsis (rows: Context.gather)")
            place = one.__index__()
            if not -extent <= place < extent:
                raise IndexError(f"index {axis} is {place}; the dimension has {extent}")
            offset += place % extent * stride
        return self.part(shape, strides, offset=offset)

    def __setitem__(self, key, value):
        """Copies an array of the same shape to a part of this one."""
        self._context.copy(self[key], value)

    def reshape(self, *shape):
        """The same elements in another shape; one extent may be -1. The array must be without gaps, row-major."""
        shape = _shape_of(shape[0] if len(shape) == 1 else shape)
        if shape.count(-1) == 1:
            known = -_count(shape)
            shape = tuple(self.size // known if extent == -1 and known else extent for extent in shape)
        if _count(shape) != self.size or min(shape, default=0) < 0:
            raise InvalidArgument(f"shape is {shape}; the array has {self.size} elements")
        if self.size and self.strides != strides_of(self.shape, _dtype_size(self.dtype), "C"):
            raise InvalidArgument(f"the array has shape {self.shape} and strides {self.strides}; only one without gaps, row-major, is reshaped")
        return self.part(shape)

    def __matmul__(self, other):
        return self._context.matmul(self, other)

    def __rmatmul__(self, other):
        return self._context.matmul(other, self)

    def item(self):
        """The only element as a Python number, after the jobs that write it."""
        if self.size != 1:
            raise InvalidArgument(f"the array has shape {self.shape}; item() is of one element")
        return self.asnumpy().item()

    def __float__(self):
        return float(self.item())

    def asnumpy(self):
        """A new NumPy array with its elements, after the jobs that write them."""
        import numpy

        from ._results import numpy_dtype

        dtype = numpy_dtype(numpy, self.dtype, None)
        if not self.size:
            return numpy.empty(self.shape, dtype)
        first, end = bounds_of(self)  # all bytes between, of which it is a view
        whole = numpy.empty(end - first, numpy.int8)
        self._context.copy(whole, _bytes_of(self, first, end - first))
        made = numpy.ndarray(self.shape, dtype, whole, self.address - first, self.strides)
        return made if made.flags.c_contiguous else made.copy()

    def __array__(self, *how, **options):
        raise InvalidArgument(f"{self!r} is not in the host's memory: asnumpy() copies it there")

    def __repr__(self):
        return f"<streamgemm.DeviceArray {self.shape} {self.dtype} on {self._context.device.name}>"


def empty(context, shape, dtype, order="C"):
    """A new array, uninitialised."""
    shape, size = _shape_of(shape), _dtype_size(dtype)
    if any(not isinstance(extent, int) or extent < 0 for extent in shape):
        raise InvalidArgument(f"shape is {shape}; its extents must be integers, not negative")
    buffer = _raw.sg_buffer_create(context._open(), max(1, _count(shape) * size), None)
    share = _Share()
    when_dropped(share, _raw.sg_buffer_release, buffer)
    made = DeviceArray._at(
        _raw.sg_buffer_data(buffer), shape, strides_of(shape, size, order), dtype, False, *context._place, int(MemoryKind.AUTO), share
    )
    made._context = context
    return made


def zeros(context, shape, dtype):
    """A new array of zeros."""
    made = empty(context, shape, dtype)
    if made.size:
        context.copy(_bytes_of(made, made.address, made.nbytes), Matrix(bytes(made.nbytes), "i8"))
    return made


def array(context, given, dtype):
    """A new array with the elements of another one."""
    source = _arrays.look(given, "array")
    if source.strides != strides_of(source.shape, _dtype_size(source.dtype), "C") and hasattr(source, "__array_interface__"):
        import numpy

        given = numpy.ascontiguousarray(given)
    made = empty(context, source.shape, source.dtype)
    if made.size:
        context.copy(made, given)
    if dtype in (None, made.dtype):
        return made
    converted = empty(context, made.shape, dtype)
    context.convert(*(each if each.shape else each.reshape(1) for each in (made, converted)))
    return converted
