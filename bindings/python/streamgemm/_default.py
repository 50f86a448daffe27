# SPDX-License-Identifier: Apache-2.0
"""The default context, which the module's functions use."""

import os
import threading

from . import _raw
from ._context import Context
from ._job import Job
from ._gemm import ASYNC, BLOCKING, NOTHING

_submit = _raw.submit_gemm
_default = None
_default_lock = threading.Lock()


def default_context():
    """The context of the module's functions; created at first use, on the device "auto"."""
    global _default
    if _default is None or _default.closed:
        with _default_lock:
            if _default is None or _default.closed:
                _default = Context()
    return _default


def set_default_context(context):
    """Replaces it by `context`; None: a new one is created at the next use."""
    global _default
    _default = context


def _after_fork():
    """The parent's handles are invalid in a child, which gets a context of its own."""
    global _default, _default_lock
    _default, _default_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _target():
    target = None if _default is None else _default._target
    return target or default_context()._open_target()


# fmt: off
def matmul(
    a, b, out=None, *, alpha=1.0, beta=0.0, op_a="N", op_b="N", compute="exact", bias=None, activation=None,
    copy=False, stream=None, after=NOTHING, priority=0, untracked=False, timeout=None, label=None, options=None,
):
    """Computes a @ b on the default context, like numpy.matmul, waits, and returns the result.

    out: the array that the result is written to; None makes a new one. a, b, alpha, beta, op_a, op_b, compute, bias,
    activation, copy, stream, after, priority, untracked, timeout, label, options: as for Context.gemm_async.
    """
    return _submit(
        BLOCKING, Job, _target(), a, b, out, alpha, beta, op_a, op_b, compute, bias, activation,
        stream, after, priority, untracked, options, copy, timeout, label,
    )


def matmul_async(
    a, b, out=None, *, alpha=1.0, beta=0.0, op_a="N", op_b="N", compute="exact", bias=None, activation=None,
    copy=False, stream=None, after=NOTHING, priority=0, untracked=False, timeout=None, label=None, options=None,
):
    """Submits a @ b to the default context, like numpy.matmul, and returns its Job at once.

    out: the array that the result is written to; None makes a new one. a, b, alpha, beta, op_a, op_b, compute, bias,
    activation, copy, stream, after, priority, untracked, timeout, label, options: as for Context.gemm_async.
    """
    return _submit(
        ASYNC, Job, _target(), a, b, out, alpha, beta, op_a, op_b, compute, bias, activation,
        stream, after, priority, untracked, options, copy, timeout, label,
    )
# fmt: on
