# SPDX-License-Identifier: Apache-2.0
"""The operations of convert.h and gather.h. Each public function lists all of its parameters."""

from . import _raw
from ._enums import IndexType, Op, Quantization, value_of
from ._job import Job, finished

_NOTHING = ()


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


# fmt: off
class ConvertMethods:
    """The operations of a Context that change how and where elements are stored. It has _target."""

    def dequantize_async(
        self, x, scales, zero_points=None, out=None, *, quantization="i8", dtype=None, stream=None, after=_NOTHING,
        priority=0, untracked=False, timeout=None, label=None,
    ):
        """Submits out = (x - zero_points) * scales, block by block, and returns its Job at once.

        x: quantized values: bytes of i8 (numpy.int8). A row is along the last dimension.
        scales: f32, f16 or bf16, like x but with one value for each block of a row: consecutive values, which the number
        of scales divides into blocks of one even size.
        zero_points: i8, one for each block; None: zeros.
        out: the array that is written: f32, f16 or bf16; None makes a new one.
        quantization: "i8", or "i4": two values in a byte of x, the first in the low four bits.
        dtype: of a new array: "f32", "f16" or "bf16"; None: that of scales.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_dequantize(
            Job, self._target or self._open_target(), x, scales, zero_points, out,
            value_of(Quantization, quantization, "quantization"), dtype, stream, after, priority, untracked, timeout, label,
        )

    def dequantize(
        self, x, scales, zero_points=None, out=None, *, quantization="i8", dtype=None, stream=None, after=_NOTHING,
        priority=0, untracked=False, timeout=None, label=None,
    ):
        """Computes out = (x - zero_points) * scales, block by block, waits, and returns out.

        x, scales, zero_points, out, quantization, dtype, stream, after, priority, untracked, timeout, label: as for
        dequantize_async.
        """
        return finished(self.dequantize_async(
            x, scales, zero_points, out, quantization=quantization, dtype=dtype, stream=stream, after=after,
            priority=priority, untracked=untracked, timeout=timeout, label=label,
        ))

    def convert_async(
        self, a, out=None, *, dtype=None, op_a="N", stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None,
    ):
        """Submits out = op(a), cast to the type of out with one rounding, and returns its Job at once.

        a: an array of f64, f32, f16 or bf16, or a Job. In device memory, unless the device is the cpu.
        out: the array that is written, of one of these types; None makes a new one.
        dtype: of a new array: "f32", ...; None: that of a.
        op_a: "N", or "T": the transpose of a matrix.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_convert(
            Job, self._target or self._open_target(), a, out, dtype, value_of(Op, op_a, "op_a"), stream, after, priority,
            untracked, timeout, label,
        )

    def convert(
        self, a, out=None, *, dtype=None, op_a="N", stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None,
    ):
        """Computes out = op(a), cast to the type of out, waits, and returns out.

        a, out, dtype, op_a, stream, after, priority, untracked, timeout, label: as for convert_async.
        """
        return finished(self.convert_async(
            a, out, dtype=dtype, op_a=op_a, stream=stream, after=after, priority=priority, untracked=untracked,
            timeout=timeout, label=label,
        ))

    def gather_async(
        self, table, indices, out=None, *, index_type=None, from_end=False, nan=False, stream=None, after=_NOTHING,
        priority=0, untracked=False, timeout=None, label=None,
    ):
        """Submits out[i] = table[indices[i]], row by row, and returns its Job at once. Indices are read when it runs.

        table: a matrix of any element type, or a Job. In device memory, unless the device is the cpu; so is all else.
        indices: a vector of i32 or i64 (numpy.int32, numpy.int64).
        out: the matrix that is written, with a row for each index; None makes a new one.
        index_type: "i32", or "i64" of a vector in device memory, given as i32 with two elements for each index; None: as
        the array says, and i32 in device memory.
        from_end: indices below 0 count from the table's end, as in NumPy.
        nan: the row of an index out of range becomes NaN, not 0.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_gather(
            Job, self._target or self._open_target(), *gather_arguments(table, indices, out, index_type, from_end, nan),
            stream, after, priority, untracked, timeout, label,
        )

    def gather(
        self, table, indices, out=None, *, index_type=None, from_end=False, nan=False, stream=None, after=_NOTHING,
        priority=0, untracked=False, timeout=None, label=None,
    ):
        """Computes out[i] = table[indices[i]], row by row, waits, and returns out.

        table, indices, out, index_type, from_end, nan, stream, after, priority, untracked, timeout, label: as for
        gather_async.
        """
        return finished(self.gather_async(
            table, indices, out, index_type=index_type, from_end=from_end, nan=nan, stream=stream, after=after,
            priority=priority, untracked=untracked, timeout=timeout, label=label,
        ))
# fmt: on
