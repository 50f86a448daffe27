# SPDX-License-Identifier: Apache-2.0
"""The operations of convert.h. Each public function lists all of its parameters."""

from . import _raw
from ._enums import Op, Quantization, value_of
from ._job import Job, finished

_NOTHING = ()


# fmt: off
class ConvertMethods:
    """The operations of a Context that change how elements are stored. It has _target."""

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
# fmt: on
