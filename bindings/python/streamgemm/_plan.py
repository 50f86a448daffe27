# SPDX-License-Identifier: Apache-2.0
"""Plans: the schedule of an operation, for inspection, prediction and repeated runs."""

import functools
import json

from . import _raw
from ._described import PLAN, OperationDesc, description
from ._enums import MemoryKind, PlanFormat, Split, integer, set_fields, value_of
from ._handles import Handle
from ._messages import brief
from ._operations import PlanMethods
from ._records import Prediction, fields_of
from .operations import gemm

_KIND_OF_FIELD = {"split": Split, "place_a": MemoryKind, "place_b": MemoryKind, "place_c": MemoryKind, "place": MemoryKind}


class PlanOptions:
    """Restrictions of the planner; fields that are not given are free. The fields are those of sg_plan_options."""

    def __init__(self, **fields):
        """fields: split, parts, streams, memory_limit, tile_m, tile_n, tile_k, place_a, place_b, place_c,
        devices, device_count, place."""
        self._struct = _raw.sg_plan_options()
        set_fields(self._struct, fields, fields_of(_raw.sg_plan_options), _KIND_OF_FIELD)

    def _open_options(self):
        return int(self._struct.this)

    def _fields(self):
        return {name: getattr(self._struct, name) for name in fields_of(_raw.sg_plan_options)}

    def __reduce__(self):
        return functools.partial(PlanOptions, **self._fields()), ()

    def __repr__(self):
        return f"PlanOptions({', '.join(f'{k}={v}' for k, v in self._fields().items() if v)})"


class Plan(Handle, PlanMethods):
    """A schedule made ahead of its run, by Context.plan."""

    def __init__(self, context, operation, options):
        """Made by Context.plan, which describes operation and options; on `context`."""
        chosen = 0 if options is None else options._open_options()
        handle, self._function = description(operation)._use((PLAN, chosen), context._open_target())
        self._own(handle, _raw.sg_plan_release)
        self._gemm = None
        self._target = (self._handle,) + context._open_target()[1:]

    def _described(self, a, b, c, alpha, beta, bias):
        """An operation, or that of a GEMM's operands, with the properties of the plan."""
        if isinstance(a, OperationDesc):
            if any(each is not None for each in (b, c, alpha, beta, bias)):
                raise TypeError("operation has all arguments; none is given beside it")
            return a
        if self._gemm is None:
            raise TypeError(f"a is {brief(a)}; this plan runs what a function of streamgemm.operations describes")
        planned_alpha, planned_beta, op_a, op_b, compute, activation = self._gemm
        return gemm(
            a, b, c, alpha=planned_alpha if alpha is None else alpha, beta=planned_beta if beta is None else beta, op_a=op_a,
            op_b=op_b, compute=compute, bias=bias, activation=activation,
        )  # fmt: skip

    @property
    def prediction(self):
        """The device model's prediction."""
        return Prediction._read(_raw.sg_plan_get_prediction, self._open())

    def device_size(self, device):
        """Device memory in bytes that a run uses on one of the context's devices. device: its number."""
        return _raw.sg_plan_device_size(self._open(), integer(device, "device"))

    @property
    def text(self):
        """A few lines: strategy, tiles, lanes, prediction, bound, ratio."""
        return _raw.plan_text(self._open(), PlanFormat.TEXT)

    @property
    def timeline(self):
        """A row per lane, a column per slot of time."""
        return _raw.plan_text(self._open(), PlanFormat.TIMELINE)

    @property
    def html(self):
        """The simulated timeline as a page without other files."""
        return _raw.plan_text(self._open(), PlanFormat.HTML)

    def _repr_html_(self):
        return _raw.plan_text(self._open(), PlanFormat.SVG).partition("?>\n")[2]

    @property
    def commands(self):
        """The whole schedule with the start and end of each command, as Python's own objects."""
        return json.loads(_raw.plan_text(self._open(), PlanFormat.JSON))

    __str__ = lambda self: self.text  # noqa: E731
