# SPDX-License-Identifier: Apache-2.0
"""Graphs: submissions recorded once and run with one call."""

import threading

from . import _raw
from ._arguments import COPY, Form
from ._described import UPDATE, OperationDesc
from ._enums import integer
from ._errors import InvalidArgument
from ._handles import Handle
from ._operations import GraphMethods, RecordedMethods
from .operations import copy, gemm


class Graph(Handle, GraphMethods, RecordedMethods):
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
        # Of each submission: its keeper, its result, and the properties that later operands of a GEMM keep, or COPY.
        self._kept = []

    def __len__(self):
        return _raw.sg_graph_submission_count(self._open())

    def _record(self, submit, *arguments):
        """Calls a function that submits, with the graph in the place of a job's type."""
        with self._lock:
            keeper, result = submit(self._open(), self._target, *arguments)
            self._kept.append((keeper, result, None))
        return result

    def _recorded(self, index):
        index = integer(index, "index")
        if not 0 <= index < len(self._kept):
            raise InvalidArgument(f"index is {index}; the graph has {len(self._kept)} submissions")
        return self._kept[index]

    def _of_kind(self, index, is_gemm):
        """The properties of a recorded GEMM, or COPY of a copy."""
        form = self._recorded(index)[2]
        kind = "a GEMM" if isinstance(form, Form) else "a copy" if form == COPY else "an operation that a function of streamgemm.operations describes"
        if kind != ("a GEMM" if is_gemm else "a copy"):
            raise InvalidArgument(f"the submission {index} is {kind}")
        return form

    def set_gemm(self, index, a, b, c=None, *, alpha=1.0, beta=0.0, bias=None):
        """Sets other operands of the same shapes, and other scalars, of a recorded GEMM, for later runs.

        index: its number in the order of recording. a, b, c, alpha, beta: as for gemm. bias: if it was recorded with one.
        """
        form = self._of_kind(index, True)
        return self._update(index, gemm(a, b, c, alpha=alpha, beta=beta, bias=bias, **form._asdict()))

    def set_copy(self, index, dst, src):
        """Sets another `dst` and `src` of the same shapes and strides of the recorded copy number `index`, for later runs."""
        self._of_kind(index, False)
        return self._update(index, copy(dst, src))

    def _update(self, index, operation):
        with self._lock:
            keeper, _, form = self._recorded(index)
            keeper, result = operation._use((UPDATE, self._open(), index, keeper), self._target)
            self._kept[index] = (keeper, result, form)
        return result

    def update(self, index, *operands, **scalars):
        """Sets other operands and scalars of a recorded submission, for later runs; returns the new result.

        index: its number in the order of recording. operands: the same operation of other arrays of the same shapes, by a function of
        streamgemm.operations. operands, scalars: of a GEMM also as for set_gemm, of a copy as for set_copy.
        """
        if len(operands) == 1 and isinstance(operands[0], OperationDesc) and not scalars:
            return self._update(integer(index, "index"), operands[0])
        form = self._recorded(index)[2]
        if form is None:
            raise InvalidArgument(f"the submission {index} is changed by what a function of streamgemm.operations describes")
        return (self.set_gemm if isinstance(form, Form) else self.set_copy)(index, *operands, **scalars)
