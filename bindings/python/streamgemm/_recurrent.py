# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and their gradients. Each public function lists all of its parameters."""

from . import _raw
from ._enums import GateOrder, value_of
from ._job import Job, finished

_NOTHING = ()


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


# fmt: off
class RecurrentMethods:
    """The recurrent layers of a Context, which has _target."""

    def _submit_recurrent(self, arguments, *order):
        return _raw.submit_recurrent(Job, self._target or self._open_target(), *arguments, *order)

    def lstm_async(
        self, x, w_ih, w_hh, bias_ih=None, bias_hh=None, h0=None, c0=None, out=None, *, hn=None, cn=None,
        reserve=None, gate_order="default", batch_first=False, reverse=False, compute="exact", stream=None,
        after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Submits an LSTM over all steps of x, and returns its Job at once; the result is (out, hn, cn).

        x: (steps, batch, inputs), (batch, steps, inputs) with batch_first, or (steps, inputs); an array or a Job: f64, f32, f16 or
            bf16, like all others. In device memory, unless the device is the cpu.
        w_ih, w_hh: (4 * hidden, inputs) and (4 * hidden, hidden). bias_ih, bias_hh: 4 * hidden values each; None: zeros.
        h0, c0: the first states, (batch, hidden), or (hidden,) without a batch; None: zeros.
        out: h after each step, with the dimensions of x. hn, cn: the last states. An array that is written; None makes a new one;
            False for hn or cn: it is not stored.
        reserve: an array of (steps, batch, 5 * hidden) of f32, or f64 for f64, which is written for lstm_backward; None: nothing.
        gate_order: "default": i, f, g, o as in PyTorch; "onnx": i, o, f, g. reverse: from the last step to the first.
        batch_first, compute: as for x and gemm_async. stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return self._submit_recurrent(
            lstm_arguments(x, w_ih, w_hh, bias_ih, bias_hh, h0, c0, out, hn, cn, reserve, gate_order, batch_first,
            reverse, compute),
            stream, after, priority, untracked, timeout, label,
        )

    def lstm(
        self, x, w_ih, w_hh, bias_ih=None, bias_hh=None, h0=None, c0=None, out=None, *, hn=None, cn=None,
        reserve=None, gate_order="default", batch_first=False, reverse=False, compute="exact", stream=None,
        after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Computes an LSTM over all steps of x, waits, and returns (out, hn, cn).

        x, w_ih, w_hh, bias_ih, bias_hh, h0, c0, out, hn, cn, reserve, gate_order, batch_first, reverse, compute, stream,
        after, priority, untracked, timeout, label: as for lstm_async.
        """
        return finished(self.lstm_async(
            x, w_ih, w_hh, bias_ih, bias_hh, h0, c0, out, hn=hn, cn=cn, reserve=reserve, gate_order=gate_order,
            batch_first=batch_first, reverse=reverse, compute=compute, stream=stream, after=after, priority=priority,
            untracked=untracked, timeout=timeout, label=label,
        ))

    def gru_async(
        self, x, w_ih, w_hh, bias_ih=None, bias_hh=None, h0=None, out=None, *, hn=None, reserve=None,
        reset_before=False, gate_order="default", batch_first=False, reverse=False, compute="exact", stream=None,
        after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Submits a GRU over all steps of x, and returns its Job at once; the result is (out, hn).

        x, w_ih, w_hh, bias_ih, bias_hh, h0, out, hn, reserve, batch_first, reverse, compute: as for lstm_async, with 3 * hidden gates.
        reset_before: the reset gate is applied to the state before its product, as in ONNX's linear_before_reset = 0.
        gate_order: "default": r, z, n as in PyTorch; "onnx": z, r, n.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return self._submit_recurrent(
            gru_arguments(x, w_ih, w_hh, bias_ih, bias_hh, h0, out, hn, reserve, reset_before, gate_order,
            batch_first, reverse, compute),
            stream, after, priority, untracked, timeout, label,
        )

    def gru(
        self, x, w_ih, w_hh, bias_ih=None, bias_hh=None, h0=None, out=None, *, hn=None, reserve=None,
        reset_before=False, gate_order="default", batch_first=False, reverse=False, compute="exact", stream=None,
        after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Computes a GRU over all steps of x, waits, and returns (out, hn).

        x, w_ih, w_hh, bias_ih, bias_hh, h0, out, hn, reserve, reset_before, gate_order, batch_first, reverse, compute,
        stream, after, priority, untracked, timeout, label: as for gru_async.
        """
        return finished(self.gru_async(
            x, w_ih, w_hh, bias_ih, bias_hh, h0, out, hn=hn, reserve=reserve, reset_before=reset_before,
            gate_order=gate_order, batch_first=batch_first, reverse=reverse, compute=compute, stream=stream,
            after=after, priority=priority, untracked=untracked, timeout=timeout, label=label,
        ))

    def lstm_backward_async(
        self, x, w_ih, w_hh, y, reserve, h0=None, *, dy=None, dhn=None, dcn=None, dx=None, dw_ih=None, dw_hh=None,
        dbias_ih=None, dbias_hh=None, dh0=None, dc0=None, gate_order="default", batch_first=False, reverse=False,
        accumulate=False, compute="exact", stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None,
    ):
        """Submits the gradients of an LSTM as one job, and returns its Job at once.

        x, w_ih, w_hh, h0, gate_order, batch_first, reverse: as given to lstm_async. y, reserve: as it has written them.
        dy, dhn, dcn: gradients of the loss with respect to out, hn and cn; None: zeros.
        dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, dc0: the results, whose tuple is the job's. Arrays that are written; None makes a
            new one, False: it is not computed, and None in the result. Those of weights and biases may be f32 for f16 and bf16.
        accumulate: adds to those of weights and biases, which must be given then, or False.
        compute: as for gemm_async. stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return self._submit_recurrent(
            backward_arguments(_raw.SG_CELL_LSTM, x, w_ih, w_hh, y, reserve, h0, dy, dhn, dcn, dx, dw_ih, dw_hh,
            dbias_ih, dbias_hh, dh0, dc0, gate_order, batch_first, reverse, accumulate, compute),
            stream, after, priority, untracked, timeout, label,
        )

    def lstm_backward(
        self, x, w_ih, w_hh, y, reserve, h0=None, *, dy=None, dhn=None, dcn=None, dx=None, dw_ih=None, dw_hh=None,
        dbias_ih=None, dbias_hh=None, dh0=None, dc0=None, gate_order="default", batch_first=False, reverse=False,
        accumulate=False, compute="exact", stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None,
    ):
        """Computes the gradients of an LSTM, waits, and returns (dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, dc0).

        x, w_ih, w_hh, y, reserve, h0, dy, dhn, dcn, dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, dc0, gate_order,
        batch_first, reverse, accumulate, compute, stream, after, priority, untracked, timeout, label: as for
        lstm_backward_async.
        """
        return finished(self.lstm_backward_async(
            x, w_ih, w_hh, y, reserve, h0, dy=dy, dhn=dhn, dcn=dcn, dx=dx, dw_ih=dw_ih, dw_hh=dw_hh,
            dbias_ih=dbias_ih, dbias_hh=dbias_hh, dh0=dh0, dc0=dc0, gate_order=gate_order, batch_first=batch_first,
            reverse=reverse, accumulate=accumulate, compute=compute, stream=stream, after=after, priority=priority,
            untracked=untracked, timeout=timeout, label=label,
        ))

    def gru_backward_async(
        self, x, w_ih, w_hh, y, reserve, h0=None, *, dy=None, dhn=None, dx=None, dw_ih=None, dw_hh=None,
        dbias_ih=None, dbias_hh=None, dh0=None, gate_order="default", batch_first=False, reverse=False,
        accumulate=False, compute="exact", stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None,
    ):
        """Submits the gradients of a GRU without reset_before as one job, and returns its Job at once.

        x, w_ih, w_hh, y, reserve, h0, dy, dhn, dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, gate_order, batch_first, reverse,
        accumulate, compute: as for lstm_backward_async, of gru_async; the result is the tuple of dx to dh0.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return self._submit_recurrent(
            backward_arguments(_raw.SG_CELL_GRU, x, w_ih, w_hh, y, reserve, h0, dy, dhn, None, dx, dw_ih, dw_hh,
            dbias_ih, dbias_hh, dh0, False, gate_order, batch_first, reverse, accumulate, compute),
            stream, after, priority, untracked, timeout, label,
        )

    def gru_backward(
        self, x, w_ih, w_hh, y, reserve, h0=None, *, dy=None, dhn=None, dx=None, dw_ih=None, dw_hh=None,
        dbias_ih=None, dbias_hh=None, dh0=None, gate_order="default", batch_first=False, reverse=False,
        accumulate=False, compute="exact", stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None,
    ):
        """Computes the gradients of a GRU, waits, and returns (dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0).

        x, w_ih, w_hh, y, reserve, h0, dy, dhn, dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, gate_order, batch_first, reverse,
        accumulate, compute, stream, after, priority, untracked, timeout, label: as for gru_backward_async.
        """
        return finished(self.gru_backward_async(
            x, w_ih, w_hh, y, reserve, h0, dy=dy, dhn=dhn, dx=dx, dw_ih=dw_ih, dw_hh=dw_hh, dbias_ih=dbias_ih,
            dbias_hh=dbias_hh, dh0=dh0, gate_order=gate_order, batch_first=batch_first, reverse=reverse,
            accumulate=accumulate, compute=compute, stream=stream, after=after, priority=priority,
            untracked=untracked, timeout=timeout, label=label,
        ))
# fmt: on
