# SPDX-License-Identifier: Apache-2.0
"""Attention. Each public function lists all of its parameters."""

from . import _raw
from ._enums import Mask, integer, value_of
from ._job import Job, finished

_NOTHING = ()


# fmt: off
class AttentionMethods:
    """Attention of a Context, which has _target."""

    def attention_async(
        self, q, k, v, out=None, *, mask=None, mask_offset=0, scale=None, workspace=0, compute="exact", stream=None,
        after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Submits out = softmax(scale * q @ k.T + mask) @ v for each head, and returns its Job at once.

        q, k, v: arrays of (batch, heads, tokens, width), or of the last three or two of these, or Jobs: f64, f32, f16 or
            bf16, with any strides except for the last dimension. k and v may have fewer heads, of which each serves as many
            of q. In device memory, unless the device is the cpu.
        out: the array that is written; None makes a new one.
        mask: None or "causal": query i has the keys j <= i + mask_offset.
        mask_offset: of a causal mask: the number of keys before the first query's own.
        scale: of the products; None: 1 / sqrt(width).
        workspace: limit of the memory for scores, in bytes; 0: the library's choice.
        compute: as for gemm_async. stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        causal = mask is not None and value_of(Mask, mask, "mask") != Mask.NONE
        return _raw.submit_attention(
            Job, self._target or self._open_target(), q, k, v, out, causal,
            integer(mask_offset, "mask_offset", -(1 << 60), 1 << 60), 0.0 if scale is None else scale,
            integer(workspace, "workspace", 0, (1 << 63) - 1), compute, stream, after, priority, untracked, timeout,
            label,
        )

    def attention(
        self, q, k, v, out=None, *, mask=None, mask_offset=0, scale=None, workspace=0, compute="exact", stream=None,
        after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Computes out = softmax(scale * q @ k.T + mask) @ v for each head, waits, and returns out.

        q, k, v, out, mask, mask_offset, scale, workspace, compute, stream, after, priority, untracked, timeout, label: as for
        attention_async.
        """
        return finished(self.attention_async(
            q, k, v, out, mask=mask, mask_offset=mask_offset, scale=scale, workspace=workspace, compute=compute,
            stream=stream, after=after, priority=priority, untracked=untracked, timeout=timeout, label=label,
        ))

    def attention_backward_async(
        self, q, k, v, d_out, *, dq=None, dk=None, dv=None, mask=None, mask_offset=0, scale=None, workspace=0,
        compute="exact", stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Submits the gradients of an attention as one job, and returns its Job at once; the result is (dq, dk, dv).

        q, k, v, mask, mask_offset, scale: as given to attention_async. d_out: the gradient of its result, of the same shape.
        dq, dk, dv: arrays that are written, of the shapes of q, k and v; None makes a new one, False: it is not computed, and
            None in the result. They may be parts of one packed array.
        workspace: as for attention_async. compute, stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        causal = mask is not None and value_of(Mask, mask, "mask") != Mask.NONE
        return _raw.submit_attention_backward(
            Job, self._target or self._open_target(), q, k, v, d_out, dq, dk, dv, causal,
            integer(mask_offset, "mask_offset", -(1 << 60), 1 << 60), 0.0 if scale is None else scale,
            integer(workspace, "workspace", 0, (1 << 63) - 1), compute, stream, after, priority, untracked, timeout,
            label,
        )

    def attention_backward(
        self, q, k, v, d_out, *, dq=None, dk=None, dv=None, mask=None, mask_offset=0, scale=None, workspace=0,
        compute="exact", stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Computes the gradients of an attention, waits, and returns (dq, dk, dv).

        q, k, v, d_out, dq, dk, dv, mask, mask_offset, scale, workspace, compute, stream, after, priority, untracked, timeout,
        label: as for attention_backward_async.
        """
        return finished(self.attention_backward_async(
            q, k, v, d_out, dq=dq, dk=dk, dv=dv, mask=mask, mask_offset=mask_offset, scale=scale, workspace=workspace,
            compute=compute, stream=stream, after=after, priority=priority, untracked=untracked, timeout=timeout,
            label=label,
        ))
# fmt: on
