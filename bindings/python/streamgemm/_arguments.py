# SPDX-License-Identifier: Apache-2.0
"""What the operations' native calls take, from the arguments of Python."""

from typing import NamedTuple

from . import _raw
from ._enums import (  # noqa: F401
    FilterLayout, Function, GateOrder, ImageLayout, IndexType, Mask, MemoryKind, Op, Quantization, RotaryPairs, integer, value_of,
)  # fmt: skip
from ._errors import InvalidArgument
from ._matrix import ON_CUDA, ON_HOST, Matrix

MOST = (1 << 63) - 1
PLANNED = 2  # as in src/submit.c
ELEMENTWISE, SOFTMAX, CAUSAL_SOFTMAX, LAYER_NORM, RMS_NORM = range(5)  # as in src/layers.c
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


def is_causal(mask):
    return mask is not None and value_of(Mask, mask, "mask") != Mask.NONE


def _integers(given, name, counts, low=-_SIZE, high=_SIZE):
    """A tuple of integers; one number stands for two equal ones."""
    values = tuple(given) if hasattr(given, "__iter__") else (given, given)
    if len(values) not in counts:
        raise InvalidArgument(f"{name} has {len(values)} numbers; it must have {' or '.join(map(str, counts))}")
    return tuple(integer(value, name, low, high) for value in values)


def window_arguments(stride, padding, dilation, groups, layout, filter_layout):
    """What the native functions take after the arrays: the windows, groups and layouts."""
    padding = _integers(padding, "padding", (2, 4))
    return (
        (*_integers(stride, "stride", (2,)), *_integers(dilation, "dilation", (2,)), *(padding * 2)[:4]),
        integer(groups, "groups", -MOST, MOST), value_of(ImageLayout, layout, "layout"),
        value_of(FilterLayout, filter_layout, "filter_layout"),
    )


def size_arguments(size):
    """The height and width of x; -1: they follow from the arrays."""
    return (-1, -1) if size is None else _integers(size, "size", (2,))


def im2col_arguments(x, kernel, out, stride, padding, dilation, channels, layout, filter_layout):
    return False, x, out, None, *_kernel_arguments(kernel, stride, padding, dilation, channels, layout, filter_layout), False


def col2im_arguments(matrix, kernel, out, shape, stride, padding, dilation, channels, layout, filter_layout, accumulate):
    shape = None if shape is None else _integers(shape, "shape", (4,), 0, MOST)
    options = _kernel_arguments(kernel, stride, padding, dilation, channels, layout, filter_layout)
    return True, matrix, out, shape, *options, accumulate


def _kernel_arguments(kernel, stride, padding, dilation, channels, layout, filter_layout):
    windows, _, layout, columns = window_arguments(stride, padding, dilation, 1, layout, filter_layout)
    channels = (0, 0) if channels is None else _integers(channels, "channels", (2,), 0)
    return _integers(kernel, "kernel", (2,), 1), windows, layout, columns, channels


def _words(indices, index_type):
    """Indices as words of i32, and their type."""
    if index_type is not None:
        return indices, value_of(IndexType, index_type, "index_type")
    try:
        with memoryview(indices) as seen:
            wide = seen.itemsize == 8 and seen.format in ("q", "l") and seen.ndim == 1 and seen.c_contiguous
    except (TypeError, ValueError):  # no buffer: it is in device memory
        wide = False
    return (memoryview(indices).cast("B").cast("i"), IndexType.I64) if wide else (indices, IndexType.I32)


def gather_arguments(table, indices, out, index_type, from_end, nan):
    words, index_type = _words(indices, index_type)
    flags = (_raw.SG_GATHER_FROM_END if from_end else 0) | (_raw.SG_GATHER_NAN if nan else 0)
    return table, words, out, index_type, flags


def _layer(backward, cell, gate_order, batch_first, reverse, accumulate, compute, inputs, results):
    """The arguments of _raw.submit_recurrent between the target and the order."""
    order = value_of(GateOrder, gate_order, "gate_order")
    return backward, cell, order, batch_first, reverse, accumulate, compute, inputs, results


def lstm_arguments(x, w_ih, w_hh, bias_ih, bias_hh, h0, c0, out, hn, cn, reserve, gate_order, batch_first, reverse, compute):
    inputs, results = (x, w_ih, w_hh, bias_ih, bias_hh, h0, c0, reserve), (out, hn, cn)
    return _layer(False, _raw.SG_CELL_LSTM, gate_order, batch_first, reverse, False, compute, inputs, results)


def gru_arguments(
    x, w_ih, w_hh, bias_ih, bias_hh, h0, out, hn, reserve, reset_before, gate_order, batch_first, reverse, compute,
):
    cell = _raw.SG_CELL_GRU_RESET_BEFORE if reset_before else _raw.SG_CELL_GRU
    inputs, results = (x, w_ih, w_hh, bias_ih, bias_hh, h0, None, reserve), (out, hn, False)
    return _layer(False, cell, gate_order, batch_first, reverse, False, compute, inputs, results)


def backward_arguments(
    cell, x, w_ih, w_hh, y, reserve, h0, dy, dhn, dcn, dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, dc0, gate_order,
    batch_first, reverse, accumulate, compute,
):
    inputs, results = (x, w_ih, w_hh, y, h0, reserve, dy, dhn, dcn), (dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, dc0)
    return _layer(True, cell, gate_order, batch_first, reverse, accumulate, compute, inputs, results)


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
        raise TypeError(f"function is {function!r}, which cannot be called")
    operands = []
    for given, access, name in (
        (reads, _raw.SG_ACCESS_READ, "reads"),
        (writes, _raw.SG_ACCESS_WRITE, "writes"),
        (updates, _raw.SG_ACCESS_READ_WRITE, "updates"),
    ):
        if not isinstance(given, (tuple, list)):
            raise TypeError(f"{name} is {given!r}; it must be a tuple or a list of arrays")
        operands += [(array, access, f"{name}[{i}]") for i, array in enumerate(given)]
    return (
        lambda forms: _Bound(function, forms), tuple(operands), float(seconds),
        integer(compute_units, "compute_units", -1, (1 << 31) - 1),
    )  # fmt: skip
