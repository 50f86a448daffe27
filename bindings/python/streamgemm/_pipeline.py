# SPDX-License-Identifier: Apache-2.0
"""Pipelines: batches that pass through stages."""

import ctypes
import threading
import weakref
from typing import NamedTuple

from . import _arrays, _raw
from ._enums import MemoryKind, Replicas, WeightsPlace, WhenFull, integer, set_fields, value_of
from ._errors import Error, InvalidArgument
from ._graph import Graph
from ._handles import Handle
from ._matrix import Matrix, _dtype_size, bounds_of, strides_of
from ._messages import brief
from ._operations import PipelineMethods
from ._records import PipelineInfo, fields_of


class _Form(NamedTuple):
    """Shape and type of a batch between two stages."""

    shape: tuple
    dtype: str

    @property
    def nbytes(self):
        total = _dtype_size(self.dtype)
        for extent in self.shape:
            total *= extent
        return total

    def at(self, address, context, owner, offset=0):
        return Matrix._at(
            address + offset, self.shape, strides_of(self.shape, _dtype_size(self.dtype), "C"), self.dtype, False,
            *context._place, int(MemoryKind.DEVICE), owner,
        )  # fmt: skip


def _form(shape, dtype, name):
    shape = tuple(integer(extent, f"an extent of {name}", 1, (1 << 62) - 1) for extent in shape)
    if not shape:
        raise InvalidArgument(f"{name} is (), which has no dimension")
    return _Form(shape, dtype)


class _Weight(ctypes.Structure):
    """sg_weight."""

    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("reserved", ctypes.c_uint64))


class _Filled(NamedTuple):
    """What the library says of a stage."""

    graph: int
    input: int
    output: int
    workspace: int
    weights: list
    index: int


class Stage(Graph):
    """A stage of a Pipeline; by Pipeline.stage. Its methods record operations on its operands, until the pipeline is prepared;
    in the function of a stage, until that returns.

    input, output: arrays of each batch, as a Matrix without memory of its own. weights: a Matrix for each array of weights.
    """

    def __init__(self, pipeline, filled, given, output, weights, workspace_bytes):
        """Made by Pipeline.stage. pipeline: its pipeline. filled: the library's description. given, output: the forms of
        its input and output. weights: the arrays, each a Matrix. workspace_bytes: bytes of its workspace."""
        self._start(pipeline._context)
        _raw.sg_graph_retain(filled.graph)
        self._own(filled.graph, _raw.sg_graph_release)
        self._pipeline = pipeline
        self._workspace = filled.workspace, workspace_bytes
        self.index = filled.index
        self.input = given.at(filled.input, pipeline._context, pipeline)
        self.output = output.at(filled.output, pipeline._context, pipeline)
        self.weights = tuple(
            Matrix._at(
                filled.weights[i], each.shape, each.strides, each.dtype, True, *pipeline._context._place,
                int(MemoryKind.AUTO if filled.weights[i] == each.address else MemoryKind.DEVICE), pipeline,
            )
            for i, each in enumerate(weights)
        )  # fmt: skip

    def workspace(self, shape, dtype="f32", *, offset=0):
        """A Matrix in the stage's workspace, whose contents at the start are undefined.

        shape, dtype: its extents and type. offset: bytes from the start of the workspace.
        """
        form = _form(shape, dtype, "shape")
        address, size = self._workspace
        offset = integer(offset, "offset", 0, (1 << 63) - 1)
        if form.nbytes + offset > size:
            raise InvalidArgument(f"{form.nbytes} bytes at offset {offset} do not fit into a workspace of {size}")
        return form.at(address, self._pipeline._context, self._pipeline, offset)


class _Recorder:
    """The function of a stage, called for each batch with a Stage to record into."""

    def __init__(self, pipeline, function, *forms):
        self._pipeline = weakref.ref(pipeline)
        self._function = function
        self._forms = forms  # of the input, of the output, the weights, the workspace's bytes
        self.addresses = None  # known when the stage is added

    def __call__(self, graph, batch):
        pipeline = self._pipeline()
        stage = Stage(pipeline, self.addresses._replace(graph=graph), *self._forms)
        try:
            self._function(stage, batch)
        finally:
            pipeline._calls.kept.append(stage._kept)
            stage.close()


class _Calls(threading.local):
    """The calls of functions within one call of a pipeline's method, on its thread."""

    def __init__(self):
        self.kept = []

    def during(self, run):
        """Calls run(kept): what the functions record is added to `kept`. Raises what a function has raised."""
        self.kept = []
        try:
            return run(self.kept)
        except Error:
            if (raised := _raw.take_raised()) is not None:
                raise raised from None
            raise
        finally:
            self.kept = []


class Pipeline(Handle, PipelineMethods):
    """Batches that pass through stages, beside their transfers and those of streamed weights; by Context.pipeline.

    The stages are added and recorded first; then batches are pushed. It keeps the weights, and each batch its arrays.
    """

    def __init__(self, context, shape, dtype="f32", **options):
        """A pipeline of `context` without stages.

        shape, dtype: of a batch's input, which is row major without gaps. options: fields of sg_pipeline_options, such as depth,
        weight_buffers, memory_limit, batches_in_flight; when_full is "block" or "refuse"; replicas is "none", or "batches":
        each of the context's devices has all stages, and batches go round them.
        """
        self._target = context._open_target()
        self._context = context
        self._forms = [_form(shape, dtype, "shape")]
        self._kept = []
        self._calls = _Calls()
        struct = _raw.sg_pipeline_options()
        known = [field for field in fields_of(_raw.sg_pipeline_options) if field != "input_bytes"]
        set_fields(struct, options, known, {"when_full": WhenFull, "replicas": Replicas})
        struct.input_bytes = self._forms[0].nbytes
        self._own(_raw.sg_pipeline_create(context._open(), struct), _raw.sg_pipeline_release)

    def stage(self, shape, dtype=None, *, weights=(), workspace=0, place="auto", name=None, function=None, device=None):
        """Adds the next stage: a Stage, whose operations are recorded by its methods; or None with a function.

        shape, dtype: of its output; dtype None: as its input. weights: arrays, which are unchanged until the pipeline is closed
        and its batches have completed. workspace: bytes. place: "auto", "resident" or "streamed" weights. name: in messages
        and labels. function: called as function(stage, batch) for each batch, on the thread that pushes it, to record the
        operations of this batch; with the batch -1 when the pipeline is prepared: what is recorded then is only planned.
        device: the number of the context's device that runs it; None: the library places the stage.
        """
        form = _form(shape, self._forms[-1].dtype if dtype is None else dtype, "shape")
        if hasattr(weights, "shape") or not hasattr(weights, "__iter__"):
            raise TypeError(f"weights is {brief(weights)}; it must be a sequence of arrays, such as [weights]")
        arrays = tuple(_arrays.look(each, f"weights[{i}]") for i, each in enumerate(weights))
        places = (_Weight * len(arrays))()
        for i, each in enumerate(arrays):
            first, last = bounds_of(each)
            if first != each.address:
                raise InvalidArgument(f"weights[{i}] runs backwards")
            places[i] = _Weight(first, last - first)
        workspace = integer(workspace, "workspace", 0, (1 << 61) - 1)
        device = -1 if device is None else integer(device, "device", 0)
        where = workspace, places, place, device
        if function is not None:
            return self._function_stage(function, name, form, arrays, where)
        filled = self._add(None, name, form, *where)
        made = Stage(self, filled, self._forms[-1], form, arrays, workspace)
        self._forms.append(form)
        self._kept.append((arrays, made._kept))
        return made

    def _add(self, function, name, form, workspace, weights, place, device):
        return _Filled(*_raw.add_stage(
            self._open(), function, name, form.nbytes, workspace, ctypes.addressof(weights) if len(weights) else 0,
            len(weights), value_of(WeightsPlace, place, "place"), device,
        ))  # fmt: skip

    def _function_stage(self, function, name, form, arrays, where):
        if not callable(function):
            raise TypeError(f"function is {brief(function)}, which cannot be called")
        recorder = _Recorder(self, function, self._forms[-1], form, arrays, where[0])
        recorder.addresses = self._add(recorder, name, form, *where)
        self._forms.append(form)
        self._kept.append((arrays, recorder))

    def _prepare(self, run):
        """What functions record for no batch is planned again for free memory: it stays."""

        def keep(kept):
            self._kept.append(kept)
            return run()

        return self._calls.during(keep)

    @property
    def info(self):
        """What was chosen and predicted, a PipelineInfo; prepares the pipeline."""
        return self._prepare(lambda: PipelineInfo._read(_raw.sg_pipeline_prepare, self._open()))

    def describe(self):
        """The prepared pipeline as text: memory, predicted times, and what limits it."""
        # Other threads run meanwhile.
        self._prepare(lambda: _raw.sg_pipeline_prepare(self._open(), _raw.sg_pipeline_info()))
        return _raw.pipeline_text(self._open())
