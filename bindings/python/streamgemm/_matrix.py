# SPDX-License-Identifier: Apache-2.0
"""A checked operand: memory, shape, strides and element type."""

from . import _raw
from ._enums import MemoryKind, value_of
from ._errors import InvalidArgument
from ._handles import Uncopied

NAMED = {"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}  # no array interface has a letter for them
ON_HOST, ON_CUDA, ON_OTHER = 1, 2, 0  # DLPack's device numbers; 0: memory that only one context can reach


def typestr_of(dtype):
    """The type in an array interface: "<f4". A type without a letter is given as raw bytes."""
    size = _dtype_size(dtype)
    return f"{'|' if size == 1 else '<'}{'V' if dtype in NAMED else dtype[0]}{size}"


def _place_of(device):
    """A device's name, "cpu" or "cuda:1", as (type, id)."""
    if device == "cpu":
        return ON_HOST, 0
    name, _, number = str(device).partition(":")
    if name == "cuda" and (number or "0").isdigit():
        return ON_CUDA, int(number or 0)
    raise InvalidArgument(f"device is {device!r}, which is neither 'cpu' nor 'cuda:N'")


def strides_of(shape, size, order):
    """Bytes from one element to the next without gaps; a stack of matrices keeps its items separate in either order."""
    if order not in ("C", "F"):
        raise InvalidArgument(f"order is {order!r}, which is neither 'C' nor 'F'")
    axes = list(range(len(shape)))
    if order == "F":
        axes[-2:] = axes[-2:][::-1]
    strides, step = [0] * len(shape), size
    for axis in reversed(axes):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def bounds_of(matrix):
    """The addresses of its first byte, and after its last one; of an empty one a byte."""
    spans = [(extent - 1) * stride for extent, stride in zip(matrix.shape, matrix.strides)]
    if not all(matrix.shape):
        spans = []
    first = matrix.address + sum(span for span in spans if span < 0)
    return first, matrix.address + sum(span for span in spans if span > 0) + _dtype_size(matrix.dtype)


class Matrix(Uncopied, _raw.MatrixBase):
    """A matrix (or vector, or stack of matrices) in another object's memory, which it keeps alive.

    Any operand may be passed directly; a Matrix avoids checking it again, sets the element type where an array
    cannot (`Matrix(uint16_array, "bf16")`), and describes operands without an array: device memory, an address, a
    shape for a plan.
    """

    def __new__(cls, array, dtype=None):
        """Checks `array`; `dtype` sets its element type where it cannot: "bf16"."""
        if isinstance(array, Matrix) and dtype in (None, array.dtype):
            return array
        return cls._of(array, dtype) if dtype is not None else cls._look(array, "array")

    @classmethod
    def at(cls, address, shape, dtype, strides=None, *, readonly=False, device="cpu", owner=None):
        """Memory at an address, which must stay there as long as `owner` lives.

        address: of the first element. shape: the extents. dtype: "f32", ... strides: in bytes; None: without gaps, row-major.
        readonly: it cannot be a result. device: "cpu" or "cuda:N". owner: is kept alive.
        """
        return cls._at(
            address,
            tuple(shape),
            strides if strides is None else tuple(strides),
            dtype,
            readonly,
            *_place_of(device),
            int(MemoryKind.AUTO),
            owner,
        )

    @classmethod
    def placeholder(cls, shape, dtype="f32", *, order="C", place="device"):
        """A matrix to plan with, without memory.

        shape: the extents. dtype: "f32", ... order: "C", or "F" for column-major. place: where it will reside: "pageable",
        "pinned" or "device".
        """
        kind = value_of(MemoryKind, place, "place")
        strides = strides_of(shape, _dtype_size(dtype), order)
        return cls._at(0, tuple(shape), strides, dtype, False, ON_HOST, 0, kind, None)

    @property
    def ndim(self):
        """The number of its dimensions."""
        return len(self.shape)

    @property
    def device(self):
        """Where it resides: "cpu", "cuda:0", or "context" for memory that only its context can reach."""
        place, number = self._place
        return {ON_HOST: "cpu", ON_CUDA: f"cuda:{number}"}.get(place, "context")

    def _derived(self, shape, strides):
        """The same memory in another shape; the memory's properties stay."""
        return type(self)._at(
            self.address, shape, strides, self.dtype, self.readonly, *self._place, self._memory, self
        )

    def part(self, shape, strides=None, *, offset=0):
        """A part of the same memory, such as the columns of one head.

        shape: its extents. strides: bytes from one element to the next in each dimension; None: without gaps, row-major. offset:
        bytes from the first element of this matrix to that of the part.
        """
        size = _dtype_size(self.dtype)
        shape = tuple(shape)
        strides = strides_of(shape, size, "C") if strides is None else tuple(strides)
        made = type(self)._at(
            self.address + offset, shape, strides, self.dtype, self.readonly, *self._place, self._memory, self
        )
        (first, last), (begin, end) = bounds_of(made), bounds_of(self)
        if all(shape) and not begin <= first <= last <= end:
            raise InvalidArgument(
                f"the part has the bytes from {first - begin} to {last - begin}; the matrix ends at {end - begin}"
            )
        return made

    @property
    def T(self):  # noqa: N802, as in NumPy
        """The transpose: the same memory."""
        return self._derived(self.shape[::-1], self.strides[::-1])

    def _interface(self, extra):
        return {
            "shape": self.shape,
            "typestr": typestr_of(self.dtype),
            "strides": self.strides,
            "data": (self.address, self.readonly),
            **extra,
        }

    def _without_memory(self):
        """Why nothing but the library may use its address; None: it has memory."""
        if self._memory == MemoryKind.AUTO:
            return None
        if not self.address:
            return "a placeholder has no memory"
        return "it is a matrix of a pipeline's stage: only operations that are recorded for the stage have memory there"

    def __array__(self, *how, **options):
        """NumPy asks for it where there is no array interface."""
        raise InvalidArgument(f"{self!r} is no array of the host: {self._without_memory() or 'copy it to one'}")

    @property
    def __array_interface__(self):
        if self._place[0] != ON_HOST or self._without_memory():
            raise AttributeError(self._without_memory() or "this memory is not on the host")
        return self._interface({"version": 3})

    @property
    def __cuda_array_interface__(self):
        if self._place[0] != ON_CUDA or self._without_memory():
            raise AttributeError(self._without_memory() or "this memory is not on a CUDA device")
        return self._interface({"version": 3, "stream": None})  # the result of a completed job may be read at once

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("a Matrix is exported in place, without a copy")
        if reason := self._without_memory():
            raise BufferError(reason)
        return self._export(max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self):
        return self._place

    def __repr__(self):
        return f"<streamgemm.Matrix {self.shape} {self.dtype} on {self.device} at {self.address:#x}>"


def dtypes():
    """Names of all element types, by value."""
    return {
        _raw.sg_dtype_name(value): value
        for name, value in vars(_raw).items()
        if name.startswith("SG_DTYPE_") and isinstance(value, int)
    }


def _dtype_size(name):
    try:
        return _raw.sg_dtype_size(dtypes()[name])
    except KeyError:
        raise InvalidArgument(f"dtype is {name!r}, which is none of {list(dtypes())}") from None
