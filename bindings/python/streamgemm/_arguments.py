# SPDX-License-Identifier: Apache-2.0
"""What the operations' native calls take, from the arguments of Python."""

import sys
from ctypes import c_int32
from typing import NamedTuple

from . import _raw
from ._enums import ImageLayout, IndexType, MemoryKind, integer, value_of
from ._errors import InvalidArgument
from ._matrix import ON_CUDA, ON_HOST, Matrix
from ._messages import brief

MOST = (1 << 63) - 1
COPY = "copy"  # of a recorded copy, in place of a Form
_SIZE = 1 << 29  # sizes of images are less


class Form(NamedTuple):
    """The properties of a recorded GEMM that later operands keep."""

    op_a: object
    op_b: object
    compute: object
    activation: object


_FIELDS = {
    "a": None,
    "b": None,
    "c": None,
    "alpha": 1.0,
    "beta": 0.0,
    "op_a": "N",
    "op_b": "N",
    "compute": "exact",
    "bias": None,
    "activation": None,
}


def item(gemm):
    if isinstance(gemm, (tuple, list)) and 2 <= len(gemm) <= 3:
        gemm = dict(zip(_FIELDS, gemm))
    elif not isinstance(gemm, dict) or not {"a", "b"} <= gemm.keys() <= _FIELDS.keys():
        raise InvalidArgument(f"a GEMM of a group is (a, b), (a, b, c) or a dict of {list(_FIELDS)}")
    return tuple({**_FIELDS, **gemm}.values())


def arrays(given, name):
    """A tuple of a sequence."""
    try:
        items = iter(given)
    except TypeError:
        raise TypeError(f"{name} is {brief(given)}; it must be a sequence of arrays") from None
    return tuple(items)


def integers(given, name, counts, low=-_SIZE, high=_SIZE):
    """A tuple of integers; one number stands for two equal ones."""
    is_several = hasattr(given, "__iter__") and not isinstance(given, str)
    values = tuple(given) if is_several else (given, given)
    if is_several and len(values) not in counts:
        raise InvalidArgument(f"{name} is {brief(given)}, which has {len(values)} numbers; it must have {' or '.join(map(str, counts))}")
    return tuple(integer(value, name, low, high) for value in values)


def windows_of(kernel, stride, padding, dilation):
    """The fields of sg_windows; a kernel of None is that of the filters."""
    kernel = (None, None) if kernel is None else integers(kernel, "kernel", (2,), 1)
    padding = integers(padding, "padding", (2, 4), 0)
    return *kernel, *integers(stride, "stride", (2,), 1), *integers(dilation, "dilation", (2,), 1), *(padding * 2)[:4]


def pooled_windows(kernel, stride, padding, dilation):
    """The fields of sg_windows of a pooling; a stride of None is the kernel."""
    kernel = integers(kernel, "kernel", (2,), 1)
    return windows_of(kernel, kernel if stride is None else stride, padding, dilation)


def sizes_of(shape, layout):
    """Images, channels, height and width of a shape; None: they follow from the arrays."""
    if shape is None:
        return (None,) * 4
    n, *sizes = integers(shape, "shape", (4,), 0, MOST)
    return (n, *sizes) if value_of(ImageLayout, layout, "layout") == ImageLayout.NCHW else (n, sizes[2], *sizes[:2])


def words_of(indices, index_type):
    """Indices as words of i32, and their type; of i64 there is one more dimension, of two words."""
    if index_type is not None:
        return indices, index_type
    try:
        seen = memoryview(indices)
    except TypeError:  # no buffer: a tensor, or in device memory
        return _words_of_tensor(indices)
    if seen.itemsize != 8 or seen.format not in ("q", "l"):
        return indices, IndexType.I32
    if seen.nbytes == 0:  # which memoryview does not cast
        kind = c_int32
        for extent in reversed(seen.shape):
            kind *= extent
        return kind(), IndexType.I32
    if not seen.c_contiguous:
        raise InvalidArgument(f"indices has shape {seen.shape} and strides {seen.strides} in bytes; they must be contiguous")
    if seen.ndim == 0:
        return c_int32(integer(seen[()], "indices", -(1 << 31), (1 << 31) - 1)), IndexType.I32
    return seen.cast("B").cast("i", (*seen.shape, 2)), IndexType.I64


def _words_of_tensor(indices):
    """Of a PyTorch tensor of i64, its memory as i32."""
    dtype = str(getattr(indices, "dtype", ""))
    if dtype != "torch.int64" or not hasattr(indices, "view"):
        return indices, IndexType.I32
    if indices.dim() == 0:
        return c_int32(integer(indices.item(), "indices", -(1 << 31), (1 << 31) - 1)), IndexType.I32
    if indices.numel() == 0:
        return indices.int(), IndexType.I32
    if not indices.is_contiguous():
        raise InvalidArgument(f"indices has shape {tuple(indices.shape)} and strides {indices.stride()}; they must be contiguous")
    return indices.view(sys.modules["torch"].int32).reshape(*indices.shape, 2), IndexType.I64


def bytes_of(visible):
    """Booleans and bytes of NumPy and PyTorch as i8, in place."""
    kind = str(getattr(visible, "dtype", ""))
    if kind in ("torch.bool", "torch.uint8"):
        return visible.view(sys.modules["torch"].int8)
    return visible.view("int8") if kind in ("bool", "uint8") else visible


def _as_array(matrix):
    """A NumPy array of host memory where there is NumPy and a type for it; otherwise the Matrix."""
    try:
        import numpy
    except ImportError:
        return matrix
    array = numpy.asarray(matrix)
    if matrix.readonly:
        array.flags.writeable = False
    return array


class _Bound:
    """The function with the forms of its operands; called with their addresses."""

    def __init__(self, function, forms):
        self._function = function
        self._forms = forms

    def _operand(self, form, address):
        shape, strides, dtype, readonly, device = form
        place = (ON_HOST, 0) if device < 0 else (ON_CUDA, device)
        made = Matrix._at(address, shape, strides, dtype, bool(readonly), *place, int(MemoryKind.AUTO), None)
        return _as_array(made) if device < 0 else made

    def __call__(self, stream, addresses):
        self._function(stream, *map(self._operand, self._forms, addresses))


def custom_arguments(function, reads, writes, updates, seconds, compute_units):
    if not callable(function):
        raise TypeError(f"function is {brief(function)}, which cannot be called")
    operands = []
    for given, access, name in (
        (reads, _raw.SG_ACCESS_READ, "reads"),
        (writes, _raw.SG_ACCESS_WRITE, "writes"),
        (updates, _raw.SG_ACCESS_READ_WRITE, "updates"),
    ):
        if not isinstance(given, (tuple, list)):
            raise TypeError(f"{name} is {brief(given)}; it must be a tuple or a list of arrays")
        operands += [(array, access, f"{name}[{i}]") for i, array in enumerate(given)]
    return (
        lambda forms: _Bound(function, forms), tuple(operands), float(seconds),
        integer(compute_units, "compute_units", -1, (1 << 31) - 1),
    )  # fmt: skip
