# SPDX-License-Identifier: Apache-2.0
"""The operations between GEMMs, recorded into a graph. Each public function lists all of its parameters."""

from . import _raw
from ._conv import col2im_arguments, im2col_arguments, size_arguments, window_arguments
from ._convert import gather_arguments
from ._custom import custom_arguments
from ._enums import Function, Mask, Op, Quantization, RotaryPairs, integer, value_of
from ._layers import CAUSAL_SOFTMAX, ELEMENTWISE, LAYER_NORM, RMS_NORM, SOFTMAX
from ._recurrent import backward_arguments, gru_arguments, lstm_arguments

_NOTHING = ()


# fmt: off
class RecordedMethods:
    """Operations recorded into a Graph, which has _target, _lock and _kept. Their results are written by each run."""

    def _record(self, submit, *arguments):
        """Calls a function that submits, with the graph in the place of a job's type."""
        with self._lock:
            keeper, result = submit(self._open(), self._target, *arguments)
            self._kept.append((keeper, result, None))
        return result

    def _record_layer(self, kind, x, second, third, out, epsilon, number, stream, priority, untracked, label):
        return self._record(
            _raw.submit_layer, kind, x, second, third, out, epsilon, number, stream, _NOTHING, priority, untracked, None,
            label,
        )

    def elementwise(self, function, x, b=None, out=None, *, stream=None, priority=0, untracked=False, label=None):
        """Records out = function(x), or function(x, b); returns out. function, x, b, out, stream, priority, untracked, label: as
        for Context.elementwise_async."""
        return self._record_layer(
            ELEMENTWISE, x, b, None, out, 0.0, value_of(Function, function, "function"), stream, priority, untracked, label,
        )

    def axpby(
        self, a, c, *, alpha=1.0, beta=1.0, activation=None, stream=None, priority=0, untracked=False, label=None,
    ):
        """Records c = activation(alpha * a + beta * c); returns c. a, c, alpha, beta, activation, stream, priority, untracked, label:
        as for Context.axpby_async."""
        return self._record(
            _raw.submit_axpby, a, c, alpha, beta, activation, stream, _NOTHING, priority, untracked, None, label,
        )

    def softmax(self, x, out=None, *, mask=None, mask_offset=0, stream=None, priority=0, untracked=False, label=None):
        """Records the softmax of each row of x; returns out. x, out, mask, mask_offset, stream, priority, untracked, label: as for
        Context.softmax_async."""
        causal = mask is not None and value_of(Mask, mask, "mask") != Mask.NONE
        return self._record_layer(
            CAUSAL_SOFTMAX if causal else SOFTMAX, x, None, None, out, 0.0,
            integer(mask_offset, "mask_offset", -(1 << 61), 1 << 61), stream, priority, untracked, label,
        )

    def layer_norm(
        self, x, gamma=None, beta=None, out=None, *, epsilon=1e-5, stream=None, priority=0, untracked=False, label=None,
    ):
        """Records the layer norm of each row of x; returns out. x, gamma, beta, out, epsilon, stream, priority, untracked, label: as
        for Context.layer_norm_async."""
        return self._record_layer(
            LAYER_NORM, x, gamma, beta, out, epsilon, 0, stream, priority, untracked, label,
        )

    def rms_norm(self, x, gamma=None, out=None, *, epsilon=1e-5, stream=None, priority=0, untracked=False, label=None):
        """Records the RMS norm of each row of x; returns out. x, gamma, out, epsilon, stream, priority, untracked, label: as for
        Context.rms_norm_async."""
        return self._record_layer(
            RMS_NORM, x, gamma, None, out, epsilon, 0, stream, priority, untracked, label,
        )

    def rotary(
        self, x, cos=None, sin=None, out=None, *, head_size=0, rotated_size=0, position=0, theta=10000.0, pairs="halves",
        inverse=False, stream=None, priority=0, untracked=False, label=None,
    ):
        """Records the rotary embedding of x; returns out. x, cos, sin, out, head_size, rotated_size, position, theta, pairs, inverse,
        stream, priority, untracked, label: as for Context.rotary_async."""
        sizes = ((head_size, "head_size"), (rotated_size, "rotated_size"), (position, "position"))
        return self._record(
            _raw.submit_rotary, x, cos, sin, out, *(integer(value, name, -(1 << 62), 1 << 62) for value, name in sizes), theta,
            value_of(RotaryPairs, pairs, "pairs"), inverse, stream, _NOTHING, priority, untracked, None, label,
        )

    def dequantize(
        self, x, scales, zero_points=None, out=None, *, quantization="i8", dtype=None, stream=None, priority=0,
        untracked=False, label=None,
    ):
        """Records out = (x - zero_points) * scales, block by block; returns out. x, scales, zero_points, out, quantization, dtype,
        stream, priority, untracked, label: as for Context.dequantize_async."""
        return self._record(
            _raw.submit_dequantize, x, scales, zero_points, out, value_of(Quantization, quantization, "quantization"), dtype,
            stream, _NOTHING, priority, untracked, None, label,
        )

    def linear(
        self, x, w, bias=None, out=None, *, op_w="N", activation=None, compute="exact", stream=None, priority=0,
        untracked=False, label=None, options=None,
    ):
        """Records out = activation(x @ w + bias); returns out. x, w, bias, out, op_w, activation, compute, stream, priority,
        untracked, label, options: as for Context.linear_async."""
        return self._record(
            _raw.submit_linear, x, w, bias, out, op_w, activation, compute, stream, _NOTHING, priority, untracked, options,
            None, label, False,
        )

    def linear_backward(
        self, dy, x=None, w=None, *, dx=None, dw=None, dbias=None, op_w="N", accumulate=False, compute="exact", stream=None,
        priority=0, untracked=False, label=None, options=None,
    ):
        """Records the gradients of a linear layer; returns (dx, dw, dbias). dy, x, w, dx, dw, dbias, op_w, accumulate, compute, stream,
        priority, untracked, label, options: as for Context.linear_backward_async."""
        return self._record(
            _raw.submit_linear_backward, dy, x, w, dx, dw, dbias, op_w, compute, accumulate, stream, _NOTHING, priority,
            untracked, options, None, label,
        )

    def conv2d(
        self, x, w, bias=None, out=None, *, stride=1, padding=0, dilation=1, groups=1, layout="nchw", filter_layout="oihw",
        activation=None, workspace=0, compute="exact", stream=None, priority=0, untracked=False, label=None, options=None,
    ):
        """Records out = activation(conv(x, w) + bias); returns out. x, w, bias, out, stride, padding, dilation, groups, layout,
        filter_layout, activation, workspace, compute, stream, priority, untracked, label, options: as for Context.conv2d_async."""
        return self._record(
            _raw.submit_conv2d, x, w, bias, out, *window_arguments(stride, padding, dilation, groups, layout, filter_layout),
            activation, integer(workspace, "workspace", 0, (1 << 63) - 1), compute, stream, _NOTHING, priority, untracked,
            options, None, label,
        )

    def conv2d_backward(
        self, dy, x=None, w=None, *, dx=None, dw=None, dbias=None, size=None, stride=1, padding=0, dilation=1, groups=1,
        layout="nchw", filter_layout="oihw", accumulate=False, workspace=0, compute="exact", stream=None, priority=0,
        untracked=False, label=None, options=None,
    ):
        """Records the gradients of a convolution; returns (dx, dw, dbias). dy, x, w, dx, dw, dbias, size, stride, padding, dilation,
        groups, layout, filter_layout, accumulate, workspace, compute, stream, priority, untracked, label, options: as for
        Context.conv2d_backward_async."""
        return self._record(
            _raw.submit_conv2d_backward, dy, x, w, dx, dw, dbias, *size_arguments(size),
            *window_arguments(stride, padding, dilation, groups, layout, filter_layout), accumulate,
            integer(workspace, "workspace", 0, (1 << 63) - 1), compute, stream, _NOTHING, priority, untracked, options, None,
            label,
        )

    def im2col(
        self, x, kernel, out=None, *, stride=1, padding=0, dilation=1, channels=None, layout="nchw", filter_layout="oihw",
        stream=None, priority=0, untracked=False, label=None,
    ):
        """Records the matrix of the windows of images; returns out. x, kernel, out, stride, padding, dilation, channels, layout,
        filter_layout, stream, priority, untracked, label: as for Context.im2col_async."""
        return self._record(
            _raw.submit_windows,
            *im2col_arguments(x, kernel, out, stride, padding, dilation, channels, layout, filter_layout), stream, _NOTHING,
            priority, untracked, None, label,
        )

    def col2im(
        self, matrix, kernel, out=None, *, shape=None, stride=1, padding=0, dilation=1, channels=None, layout="nchw",
        filter_layout="oihw", accumulate=False, stream=None, priority=0, untracked=False, label=None,
    ):
        """Records the sums of windows; returns out. matrix, kernel, out, shape, stride, padding, dilation, channels, layout,
        filter_layout, accumulate, stream, priority, untracked, label: as for Context.col2im_async."""
        return self._record(
            _raw.submit_windows,
            *col2im_arguments(
                matrix, kernel, out, shape, stride, padding, dilation, channels, layout, filter_layout, accumulate
            ),
            stream, _NOTHING, priority, untracked, None, label,
        )

    def attention(
        self, q, k, v, out=None, *, mask=None, mask_offset=0, scale=None, workspace=0, compute="exact", stream=None,
        priority=0, untracked=False, label=None,
    ):
        """Records out = softmax(scale * q @ k.T + mask) @ v for each head; returns out. q, k, v, out, mask, mask_offset, scale,
        workspace, compute, stream, priority, untracked, label: as for Context.attention_async."""
        causal = mask is not None and value_of(Mask, mask, "mask") != Mask.NONE
        return self._record(
            _raw.submit_attention, q, k, v, out, causal, integer(mask_offset, "mask_offset", -(1 << 60), 1 << 60),
            0.0 if scale is None else scale, integer(workspace, "workspace", 0, (1 << 63) - 1), compute, stream, _NOTHING,
            priority, untracked, None, label,
        )

    def attention_backward(
        self, q, k, v, d_out, *, dq=None, dk=None, dv=None, mask=None, mask_offset=0, scale=None, workspace=0,
        compute="exact", stream=None, priority=0, untracked=False, label=None,
    ):
        """Records the gradients of an attention; returns (dq, dk, dv). q, k, v, d_out, dq, dk, dv, mask, mask_offset, scale,
        workspace, compute, stream, priority, untracked, label: as for Context.attention_backward_async."""
        causal = mask is not None and value_of(Mask, mask, "mask") != Mask.NONE
        return self._record(
            _raw.submit_attention_backward, q, k, v, d_out, dq, dk, dv, causal,
            integer(mask_offset, "mask_offset", -(1 << 60), 1 << 60), 0.0 if scale is None else scale,
            integer(workspace, "workspace", 0, (1 << 63) - 1), compute, stream, _NOTHING, priority, untracked, None, label,
        )

    def convert(self, a, out=None, *, dtype=None, op_a="N", stream=None, priority=0, untracked=False, label=None):
        """Records out = op(a), cast to the type of out; returns out. a, out, dtype, op_a, stream, priority, untracked, label: as for
        Context.convert_async."""
        return self._record(
            _raw.submit_convert, a, out, dtype, value_of(Op, op_a, "op_a"), stream, _NOTHING, priority, untracked, None, label,
        )

    def gather(
        self, table, indices, out=None, *, index_type=None, from_end=False, nan=False, stream=None, priority=0,
        untracked=False, label=None,
    ):
        """Records out[i] = table[indices[i]], row by row; returns out. Each run reads the indices. table, indices, out, index_type,
        from_end, nan, stream, priority, untracked, label: as for Context.gather_async."""
        return self._record(
            _raw.submit_gather, *gather_arguments(table, indices, out, index_type, from_end, nan), stream, _NOTHING, priority,
            untracked, None, label,
        )

    def custom(
        self, function, *, reads=_NOTHING, writes=_NOTHING, updates=_NOTHING, seconds=0.0, compute_units=0, stream=None,
        priority=0, untracked=False, label=None,
    ):
        """Records a function as an operation; returns what it writes. function, reads, writes, updates, seconds, compute_units,
        stream, priority, untracked, label: as for Context.custom_async."""
        return self._record(
            _raw.submit_custom, *custom_arguments(function, reads, writes, updates, seconds, compute_units), stream, _NOTHING,
            priority, untracked, None, label,
        )

    def _record_recurrent(self, arguments, stream, priority, untracked, label):
        return self._record(_raw.submit_recurrent, *arguments, stream, _NOTHING, priority, untracked, None, label)

    def lstm(
        self, x, w_ih, w_hh, bias_ih=None, bias_hh=None, h0=None, c0=None, out=None, *, hn=None, cn=None,
        reserve=None, gate_order="default", batch_first=False, reverse=False, compute="exact", stream=None,
        priority=0, untracked=False, label=None,
    ):
        """Records an LSTM; returns (out, hn, cn). x, w_ih, w_hh, bias_ih, bias_hh, h0, c0, out, hn, cn, reserve,
        gate_order, batch_first, reverse, compute, stream, priority, untracked, label: as for Context.lstm_async."""
        return self._record_recurrent(
            lstm_arguments(x, w_ih, w_hh, bias_ih, bias_hh, h0, c0, out, hn, cn, reserve, gate_order, batch_first,
            reverse, compute),
            stream, priority, untracked, label,
        )

    def gru(
        self, x, w_ih, w_hh, bias_ih=None, bias_hh=None, h0=None, out=None, *, hn=None, reserve=None,
        reset_before=False, gate_order="default", batch_first=False, reverse=False, compute="exact", stream=None,
        priority=0, untracked=False, label=None,
    ):
        """Records a GRU; returns (out, hn). x, w_ih, w_hh, bias_ih, bias_hh, h0, out, hn, reserve, reset_before,
        gate_order, batch_first, reverse, compute, stream, priority, untracked, label: as for Context.gru_async."""
        return self._record_recurrent(
            gru_arguments(x, w_ih, w_hh, bias_ih, bias_hh, h0, out, hn, reserve, reset_before, gate_order,
            batch_first, reverse, compute),
            stream, priority, untracked, label,
        )

    def lstm_backward(
        self, x, w_ih, w_hh, y, reserve, h0=None, *, dy=None, dhn=None, dcn=None, dx=None, dw_ih=None, dw_hh=None,
        dbias_ih=None, dbias_hh=None, dh0=None, dc0=None, gate_order="default", batch_first=False, reverse=False,
        accumulate=False, compute="exact", stream=None, priority=0, untracked=False, label=None,
    ):
        """Records the gradients of an LSTM; returns them. x, w_ih, w_hh, y, reserve, h0, dy, dhn, dcn, dx, dw_ih, dw_hh,
        dbias_ih, dbias_hh, dh0, dc0, gate_order, batch_first, reverse, accumulate, compute, stream, priority, untracked,
        label: as for Context.lstm_backward_async."""
        return self._record_recurrent(
            backward_arguments(_raw.SG_CELL_LSTM, x, w_ih, w_hh, y, reserve, h0, dy, dhn, dcn, dx, dw_ih, dw_hh,
            dbias_ih, dbias_hh, dh0, dc0, gate_order, batch_first, reverse, accumulate, compute),
            stream, priority, untracked, label,
        )

    def gru_backward(
        self, x, w_ih, w_hh, y, reserve, h0=None, *, dy=None, dhn=None, dx=None, dw_ih=None, dw_hh=None,
        dbias_ih=None, dbias_hh=None, dh0=None, gate_order="default", batch_first=False, reverse=False,
        accumulate=False, compute="exact", stream=None, priority=0, untracked=False, label=None,
    ):
        """Records the gradients of a GRU; returns them. x, w_ih, w_hh, y, reserve, h0, dy, dhn, dx, dw_ih, dw_hh, dbias_ih,
        dbias_hh, dh0, gate_order, batch_first, reverse, accumulate, compute, stream, priority, untracked, label: as for
        Context.gru_backward_async."""
        return self._record_recurrent(
            backward_arguments(_raw.SG_CELL_GRU, x, w_ih, w_hh, y, reserve, h0, dy, dhn, None, dx, dw_ih, dw_hh,
            dbias_ih, dbias_hh, dh0, False, gate_order, batch_first, reverse, accumulate, compute),
            stream, priority, untracked, label,
        )
# fmt: on
