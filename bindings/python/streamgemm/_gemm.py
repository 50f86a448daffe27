# SPDX-License-Identifier: Apache-2.0
"""GEMMs of a context: asynchronous, blocking, grouped. Each public function lists all of its parameters."""

from . import _raw
from ._errors import InvalidArgument
from ._job import Job, finished

NOTHING = ()
ASYNC, PLANNED, BLOCKING = 0, 1, 2

_submit = _raw.submit_gemm

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


def _item(gemm):
    if isinstance(gemm, (tuple, list)) and 2 <= len(gemm) <= 3:
        gemm = dict(zip(_FIELDS, gemm))
    elif not isinstance(gemm, dict) or not {"a", "b"} <= gemm.keys() <= _FIELDS.keys():
        raise InvalidArgument(f"a GEMM of a group is (a, b), (a, b, c) or a dict of {list(_FIELDS)}")
    return tuple({**_FIELDS, **gemm}.values())


# fmt: off
class GemmMethods:
    """The GEMMs of a Context, which has _target."""

    def gemm_async(
        self, a, b, c=None, *, alpha=1.0, beta=0.0, op_a="N", op_b="N", compute="exact", bias=None, activation=None,
        copy=False, stream=None, after=NOTHING, priority=0, untracked=False, timeout=None, label=None, options=None,
    ):
        """Submits c = activation(alpha * op_a(a) @ op_b(b) + beta * c + bias) and returns its Job at once.

        a, b: arrays of two dimensions or more, vectors, lists of matrices, or Jobs, after whose completion it runs.
            Dimensions before the last two are a batch, broadcast as by numpy.matmul. They stay unchanged until the Job completes.
        c: the array (or list) that the result is written to; None makes a new one.
        alpha, beta: scalars. beta needs c.
        op_a, op_b: "N", "T" (transposed) or "C" (conjugate transposed), applied to the last two dimensions.
        compute: the least accurate arithmetic allowed: "exact", "tf32", "3xtf32", "bf16", "bf16x3", "f8".
        bias: of the result's type, broadcast as by NumPy: a value for each column (n,), for each row (m, 1), or one for
            all: a number or an array (1,), which is read by the call.
        activation: "relu" or "gelu".
        copy: copies operands whose strides a GEMM cannot take (host memory only; Jobs must have completed).
        stream: runs it after earlier submissions to that Stream. after: runs it after these Jobs.
        priority: -1 low, 0 normal or the stream's, 1 high. untracked: no ordering by operands that overlap.
        timeout: seconds from the call, after which the job is dropped or stopped, and fails as DeadlineExceeded.
        label: a name for the job, in the message of its failure and in the library's log; at most 63 bytes of UTF-8 are kept.
        options: PlanOptions.
        """
        return _submit(
            ASYNC, Job, self._target or self._open_target(), a, b, c, alpha, beta, op_a, op_b, compute, bias, activation,
            stream, after, priority, untracked, options, copy, timeout, label,
        )

    def gemm(
        self, a, b, c=None, *, alpha=1.0, beta=0.0, op_a="N", op_b="N", compute="exact", bias=None, activation=None,
        copy=False, stream=None, after=NOTHING, priority=0, untracked=False, timeout=None, label=None, options=None,
    ):
        """Computes c = activation(alpha * op_a(a) @ op_b(b) + beta * c + bias), waits, and returns c.

        Ctrl-C cancels it. a, b: arrays of two dimensions or more, vectors, lists of matrices, or Jobs. c: the array that the
        result is written to; None makes a new one. alpha, beta: scalars. op_a, op_b: "N", "T" or "C". compute: "exact",
        "tf32", "3xtf32", "bf16", "bf16x3", "f8". bias: values for the columns (n,), for the rows (m, 1), or one number.
        activation: "relu" or "gelu". copy: copies operands whose strides a GEMM cannot take. stream, after, priority,
        untracked, timeout, label, options: as for gemm_async, which describes all of them.
        """
        return _submit(
            BLOCKING, Job, self._target or self._open_target(), a, b, c, alpha, beta, op_a, op_b, compute, bias, activation,
            stream, after, priority, untracked, options, copy, timeout, label,
        )

    def matmul_async(
        self, a, b, out=None, *, alpha=1.0, beta=0.0, op_a="N", op_b="N", compute="exact", bias=None, activation=None,
        copy=False, stream=None, after=NOTHING, priority=0, untracked=False, timeout=None, label=None, options=None,
    ):
        """Submits a @ b, like numpy.matmul, and returns its Job at once.

        out: the array that the result is written to; None makes a new one. a, b, alpha, beta, op_a, op_b, compute, bias,
        activation, copy, stream, after, priority, untracked, timeout, label, options: as for gemm_async.
        """
        return _submit(
            ASYNC, Job, self._target or self._open_target(), a, b, out, alpha, beta, op_a, op_b, compute, bias, activation,
            stream, after, priority, untracked, options, copy, timeout, label,
        )

    def matmul(
        self, a, b, out=None, *, alpha=1.0, beta=0.0, op_a="N", op_b="N", compute="exact", bias=None, activation=None,
        copy=False, stream=None, after=NOTHING, priority=0, untracked=False, timeout=None, label=None, options=None,
    ):
        """Computes a @ b, like numpy.matmul, waits, and returns the result.

        out: the array that the result is written to; None makes a new one. a, b, alpha, beta, op_a, op_b, compute, bias,
        activation, copy, stream, after, priority, untracked, timeout, label, options: as for gemm_async.
        """
        return _submit(
            BLOCKING, Job, self._target or self._open_target(), a, b, out, alpha, beta, op_a, op_b, compute, bias, activation,
            stream, after, priority, untracked, options, copy, timeout, label,
        )

    def gemm_grouped_async(
        self, products, *, copy=False, stream=None, after=NOTHING, priority=0, untracked=False,
        timeout=None, label=None, options=None
    ):
        """Submits GEMMs of different shapes, types and scalars as one Job, whose result is the list of results.

        products: each is (a, b), (a, b, c) or a dict of gemm_async's a, b, c, alpha, beta, op_a, op_b, compute, bias,
        activation. copy, stream, after, priority, untracked, timeout, label, options: as for gemm_async.
        """
        return _raw.submit_group(
            Job, self._target or self._open_target(), tuple([_item(p) for p in products]),
            stream, after, priority, untracked, options, copy, timeout, label,
        )

    def gemm_grouped(
        self, products, *, copy=False, stream=None, after=NOTHING, priority=0, untracked=False,
        timeout=None, label=None, options=None
    ):
        """Computes GEMMs of different shapes as one job, waits, and returns the list of results. Ctrl-C cancels it.

        products, copy, stream, after, priority, untracked, timeout, label, options: as for gemm_grouped_async.
        """
        return finished(self.gemm_grouped_async(
            products, copy=copy, stream=stream, after=after, priority=priority, untracked=untracked,
            timeout=timeout, label=label,
            options=options
        ))

    def copy_async(
        self, dst, src, *, stream=None, after=NOTHING, priority=0, untracked=False, timeout=None, label=None
    ):
        """Submits a copy of the array `src` to the array `dst`, from and to host or device memory, and returns its Job.

        It is ordered like GEMMs: stream, after, priority, untracked, timeout, label: as for gemm_async. Either array may be a Job.
        """
        return _raw.submit_copy(
            Job, self._target or self._open_target(), dst, src, stream, after, priority,
            untracked, timeout, label,
        )

    def copy(self, dst, src, *, stream=None, after=NOTHING, priority=0, untracked=False, timeout=None, label=None):
        """Copies the array `src` to the array `dst`, waits, and returns dst. stream, after, priority, untracked, timeout, label: as for
        copy_async."""
        return finished(
            self.copy_async(dst, src, stream=stream, after=after, priority=priority, untracked=untracked,
                timeout=timeout, label=label)
        )
# fmt: on
