# SPDX-License-Identifier: Apache-2.0
"""Graphs: submissions recorded once and run with one call."""

import threading

from . import _raw
from ._arguments import Form
from ._enums import integer
from ._errors import InvalidArgument
from ._handles import Handle
from ._operations import GraphMethods, RecordedMethods


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
        # Of each submission: its keeper, its result, and the properties that later operands keep.
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
        if self._kept[index][2] is None:
            raise InvalidArgument(f"the submission {index} is an operation between GEMMs, which keeps its operands")
        return self._kept[index]

    def set_gemm(self, index, a, b, c=None, *, alpha=1.0, beta=0.0, bias=None):
        """Sets other operands of the same shapes, and other scalars, of a recorded GEMM, for later runs.

        index: its number in the order of recording. a, b, c, alpha, beta: as for gemm. bias: if it was recorded with one.
        """
        with self._lock:
            _, _, form = self._recorded(index)
            if not isinstance(form, Form):
                raise InvalidArgument(f"the submission {index} is a copy")
            given = (a, b, c, alpha, beta, form.op_a, form.op_b, form.compute, bias, form.activation)
            keeper, result = _raw.set_gemm(self._open(), index, self._target, given)
            self._kept[index] = (keeper, result, form)
        return result

    def set_copy(self, index, dst, src):
        """Sets another `dst` and `src` of the same shapes and strides of the recorded copy number `index`, for later runs."""
        with self._lock:
            _, _, form = self._recorded(index)
            if isinstance(form, Form):
                raise InvalidArgument(f"the submission {index} is a GEMM")
            keeper, form = _raw.set_copy(self._open(), index, self._target, dst, src, form)
            self._kept[index] = (keeper, dst, form)
        return dst

    def update(self, index, *operands, **scalars):
        """Sets other operands and scalars of a recorded submission, for later runs.

        index: its number in the order of recording. operands, scalars: of a GEMM as for set_gemm, of a copy as for set_copy. Other operations keep theirs.
        """
        with self._lock:
            _, _, form = self._recorded(index)
        return (self.set_gemm if isinstance(form, Form) else self.set_copy)(index, *operands, **scalars)
