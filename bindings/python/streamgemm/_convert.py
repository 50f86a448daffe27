# SPDX-License-Identifier: Apache-2.0
"""The operations of convert.h. Each public function lists all of its parameters."""

from . import _raw
from ._enums import Quantization, value_of
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
# fmt: on
