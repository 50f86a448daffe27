# SPDX-License-Identifier: Apache-2.0
"""A linear layer and its gradients. Each public function lists all of its parameters."""

from . import _raw
from ._job import Job, finished

_NOTHING = ()


# fmt: off
class LinearMethods:
    """The linear layers of a Context, which has _target."""

    def linear_async(
        self, x, w, bias=None, out=None, *, op_w="N", activation=None, compute="exact", stream=None, after=_NOTHING,
        priority=0, untracked=False, timeout=None, label=None, options=None,
    ):
        """Submits out = activation(x @ w + bias) and returns its Job at once.

        x: an array whose rows, along its last dimension, have a value for each input, or a Job.
        w: a matrix of inputs by outputs, or of outputs by inputs with op_w "T". bias: a vector with a value for each output.
        out: the array that is written, with the dimensions of x, but outputs for inputs; None makes a new one.
        op_w: "N" or "T". activation: "relu" or "gelu". compute: as for gemm_async.
        stream, after, priority, untracked, timeout, label, options: as for gemm_async.
        """
        return _raw.submit_linear(
            Job, self._target or self._open_target(), x, w, bias, out, op_w, activation, compute, stream, after,
            priority, untracked, options, timeout, label, False,
        )

    def linear(
        self, x, w, bias=None, out=None, *, op_w="N", activation=None, compute="exact", stream=None, after=_NOTHING,
        priority=0, untracked=False, timeout=None, label=None, options=None,
    ):
        """Computes out = activation(x @ w + bias), waits, and returns out.

        x, w, bias, out, op_w, activation, compute, stream, after, priority, untracked, timeout, label, options: as for
        linear_async.
        """
        return _raw.submit_linear(
            Job, self._target or self._open_target(), x, w, bias, out, op_w, activation, compute, stream, after,
            priority, untracked, options, timeout, label, True,
        )

    def linear_backward_async(
        self, dy, x=None, w=None, *, dx=None, dw=None, dbias=None, op_w="N", accumulate=False, compute="exact",
        stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None, label=None, options=None,
    ):
        """Submits the gradients of a linear layer as one job and returns its Job at once; the result is (dx, dw, dbias).

        dy: the gradient of the loss with respect to x @ w + bias, with a value for each output in each row, or a Job.
        x: as given to linear_async; None: dw is not computed, and None in the result.
        w: as given to linear_async; None: dx is not computed, and None in the result.
        dx: dy @ w.T, with the dimensions of dy, but inputs for outputs. dw: x.T @ dy, with the dimensions of w.
        dbias: the sum of dy's rows; False: not computed. dx, dw, dbias: arrays that are written; None makes a new one.
        op_w: as for linear_async, of w and dw.
        accumulate: adds to dw and dbias, which must be given then.
        compute: as for gemm_async. options: PlanOptions, of which streams and memory_limit apply.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_linear_backward(
            Job, self._target or self._open_target(), dy, x, w, dx, dw, dbias, op_w, compute, accumulate, stream, after,
            priority, untracked, options, timeout, label,
        )

    def linear_backward(
        self, dy, x=None, w=None, *, dx=None, dw=None, dbias=None, op_w="N", accumulate=False, compute="exact",
        stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None, label=None, options=None,
    ):
        """Computes the gradients of a linear layer, waits, and returns (dx, dw, dbias).

        dy, x, w, dx, dw, dbias, op_w, accumulate, compute, stream, after, priority, untracked, timeout, label, options: as
        for linear_backward_async.
        """
        return finished(self.linear_backward_async(
            dy, x, w, dx=dx, dw=dw, dbias=dbias, op_w=op_w, accumulate=accumulate, compute=compute, stream=stream,
            after=after, priority=priority, untracked=untracked, timeout=timeout, label=label, options=options,
        ))
# fmt: on
