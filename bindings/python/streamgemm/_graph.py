# SPDX-License-Identifier: Apache-2.0
"""Graphs: submissions recorded once and run with one call."""

import threading
from typing import NamedTuple

from . import _raw
from ._enums import integer
from ._errors import InvalidArgument
from ._handles import Handle
from ._job import Job, finished
from ._recorded import RecordedMethods


class _Gemm(NamedTuple):
    """The properties of a recorded GEMM that later operands keep."""

    op_a: object
    op_b: object
    compute: object
    activation: object


class Graph(Handle, RecordedMethods):
    """Records operations and runs them together, any number of times; by Context.graph.

    They are ordered as separate submissions would be: by streams, and by operands that overlap. A graph keeps its
    operands, and so does each run until it has completed.
    """

    def __init__(self, context):
        """An empty graph of `context`."""
        self._start(context)
        self._own(_raw.sg_graph_create(context._open()), _raw.sg_graph_release)

    def _start(self, context):
        self._target = context._open_target()
        self._lock = threading.Lock()
        # Of each submission: its keeper, its result, and the properties that later operands keep.
        self._kept = []

    def __len__(self):
        return _raw.sg_graph_submission_count(self._open())

    def gemm(
        self,
        a,
        b,
        c=None,
        *,
        alpha=1.0,
        beta=0.0,
        op_a="N",
        op_b="N",
        compute="exact",
        bias=None,
        activation=None,
        stream=None,
        priority=0,
        untracked=False,
        label=None,
        options=None,
    ):
        """Records a GEMM; returns its result's array, which each run overwrites.

        a, b, c, alpha, beta, op_a, op_b, compute, bias, activation, stream, priority, untracked, label, options: as for
        Context.gemm_async, but a Job must have completed.
        """
        with self._lock:
            keeper, result = _raw.record_gemm(
                self._open(),
                self._target,
                (a, b, c, alpha, beta, op_a, op_b, compute, bias, activation),
                stream,
                (),
                priority,
                untracked,
                options,
                label,
            )
            self._kept.append((keeper, result, _Gemm(op_a, op_b, compute, activation)))
        return result

    def copy(self, dst, src, *, stream=None, priority=0, untracked=False, label=None):
        """Records a copy of `src` to `dst`, which it returns. stream, priority, untracked, label: as for
        Context.gemm_async."""
        with self._lock:
            keeper, form = _raw.record_copy(
                self._open(),
                self._target,
                dst,
                src,
                stream,
                (),
                priority,
                untracked,
                label,
            )
            self._kept.append((keeper, dst, form))
        return dst

    def _recorded(self, index):
        index = integer(index, "index")
        if not 0 <= index < len(self._kept):
            raise InvalidArgument(f"index is {index}; the graph has {len(self._kept)} submissions")
        if self._kept[index][2] is None:
            raise InvalidArgument(f"the submission {index} is an operation between GEMMs, which keeps its operands")
        return self._kept[index]

    def set_gemm(self, index, a, b, c=None, *, alpha=1.0, beta=0.0, bias=None):
        """Sets other operands of the same shapes, and other scalars, of a recorded GEMM, for later runs.

        index: its number in the order of recording. a, b, c, alpha, beta: as for gemm. bias: if it was recorded with one.
        """
        with self._lock:
            _, _, form = self._recorded(index)
            if not isinstance(form, _Gemm):
                raise InvalidArgument(f"the submission {index} is a copy")
            given = (a, b, c, alpha, beta, form.op_a, form.op_b, form.compute, bias, form.activation)
            keeper, result = _raw.set_gemm(self._open(), index, self._target, given)
            self._kept[index] = (keeper, result, form)
        return result

    def set_copy(self, index, dst, src):
        """Sets another `dst` and `src` of the same shapes and strides of the recorded copy number `index`, for later runs."""
        with self._lock:
            _, _, form = self._recorded(index)
            if isinstance(form, _Gemm):
                raise InvalidArgument(f"the submission {index} is a GEMM")
            keeper, form = _raw.set_copy(self._open(), index, self._target, dst, src, form)
            self._kept[index] = (keeper, dst, form)
        return dst

    def update(self, index, *operands, **scalars):
        """Sets other operands and scalars of a recorded submission, for later runs.

        index: its number in the order of recording. operands, scalars: of a GEMM as for set_gemm, of a copy as for set_copy.
        """
        with self._lock:
            _, _, form = self._recorded(index)
        return (self.set_gemm if isinstance(form, _Gemm) else self.set_copy)(index, *operands, **scalars)

    def run_async(self, *, stream=None, after=(), priority=0, untracked=False, timeout=None, label=None):
        """Runs everything recorded: one Job, whose result is the list of results in the order of recording. stream, after,
        priority, untracked, timeout, label: as for Context.gemm_async."""
        with self._lock:
            return _raw.submit_graph(
                Job,
                self._open(),
                tuple(kept[0] for kept in self._kept),
                [kept[1] for kept in self._kept],
                stream,
                after,
                priority,
                untracked,
                timeout,
                label,
            )

    def run(self, *, stream=None, after=(), priority=0, untracked=False, timeout=None, label=None):
        """Runs everything recorded, waits, and returns the list of results. Ctrl-C cancels it. stream, after, priority,
        untracked, timeout, label: as for Context.gemm_async."""
        return finished(
            self.run_async(stream=stream, after=after, priority=priority, untracked=untracked, timeout=timeout, label=label)
        )
