# SPDX-License-Identifier: Apache-2.0
"""Pipelines: batches that pass through stages."""

import ctypes
from typing import NamedTuple

from . import _arrays, _raw
from ._enums import MemoryKind, WeightsPlace, WhenFull, integer, set_field, value_of
from ._errors import InvalidArgument
from ._graph import Graph
from ._handles import Handle
from ._job import Job, finished
from ._matrix import Matrix, _dtype_size, bounds_of, strides_of
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
            *context._place, int(MemoryKind.AUTO), owner,
        )  # fmt: skip


def _form(shape, dtype, name):
    shape = tuple(integer(extent, f"an extent of {name}", 1, (1 << 62) - 1) for extent in shape)
    if not shape:
        raise InvalidArgument(f"{name} is (), which has no dimension")
    return _Form(shape, dtype)


class Stage(Graph):
    """A stage of a Pipeline; by Pipeline.stage. Its methods record operations on its operands, until the pipeline is prepared.

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
                filled.weight(i), each.shape, each.strides, each.dtype, True, *pipeline._context._place,
                int(MemoryKind.AUTO), pipeline,
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


class Pipeline(Handle):
    """Batches that pass through stages, beside their transfers and those of streamed weights; by Context.pipeline.

    The stages are added and recorded first; then batches are pushed. It keeps the weights, and each batch its arrays.
    """

    def __init__(self, context, shape, dtype="f32", **options):
        """A pipeline of `context` without stages.

        shape, dtype: of a batch's input, which is row major without gaps. options: fields of sg_pipeline_options, such as depth,
        weight_buffers, memory_limit, batches_in_flight; when_full is "block" or "refuse".
        """
        self._target = context._open_target()
        self._context = context
        self._forms = [_form(shape, dtype, "shape")]
        self._kept = []
        struct = _raw.sg_pipeline_options()
        known = [field for field in fields_of(_raw.sg_pipeline_options) if field != "input_bytes"]
        for name, value in options.items():
            if name not in known:
                raise TypeError(f"{name} is none of the options {known}")
            set_field(struct, name, value_of(WhenFull, value, name) if name == "when_full" else value)
        struct.input_bytes = self._forms[0].nbytes
        self._own(_raw.sg_pipeline_create(context._open(), struct), _raw.sg_pipeline_release)

    def stage(self, shape, dtype=None, *, weights=(), workspace=0, place="auto", name=None):
        """Adds the next stage: a Stage, whose operations are recorded by its methods.

        shape, dtype: of its output; dtype None: as its input. weights: arrays, which are unchanged until the pipeline is closed
        and its batches have completed. workspace: bytes. place: "auto", "resident" or "streamed" weights. name: in messages
        and labels.
        """
        form = _form(shape, self._forms[-1].dtype if dtype is None else dtype, "shape")
        arrays = tuple(_arrays.look(each, f"weights[{i}]") for i, each in enumerate(weights))
        pairs = (ctypes.c_int64 * (2 * len(arrays)))()
        for i, each in enumerate(arrays):
            first, last = bounds_of(each)
            if first != each.address:
                raise InvalidArgument(f"weights[{i}] runs backwards")
            pairs[2 * i], pairs[2 * i + 1] = first, last - first
        text = ctypes.create_string_buffer(name.encode()) if name is not None else None
        filled = _raw.sg_stage()
        workspace = integer(workspace, "workspace", 0, (1 << 61) - 1)
        _raw.sg_flat_pipeline_add_stage(
            self._open(), ctypes.addressof(text) if text else 0, form.nbytes, workspace,
            ctypes.addressof(pairs) if arrays else 0, len(arrays), value_of(WeightsPlace, place, "place"), filled,
        )  # fmt: skip
        made = Stage(self, filled, self._forms[-1], form, arrays, workspace)
        self._forms.append(form)
        self._kept.append((arrays, made._kept))
        return made

    @property
    def info(self):
        """What was chosen and predicted, a PipelineInfo; prepares the pipeline."""
        return PipelineInfo._read(_raw.sg_pipeline_prepare, self._open())

    def describe(self):
        """The prepared pipeline as text: memory, predicted times, and what limits it."""
        _raw.sg_pipeline_prepare(self._open(), _raw.sg_pipeline_info())  # other threads run meanwhile
        return _raw.pipeline_text(self._open())

    def push_async(self, x, out=None, *, stream=None, after=(), priority=0, untracked=False, timeout=None, label=None):
        """Pushes a batch: a Job whose result is out. It blocks at the limit of batches in flight.

        x: an array of the pipeline's shape and type, row major without gaps, or a Job. out: an array of the last stage's shape;
        None makes a new one. stream, after, priority, untracked, timeout, label: as for Context.gemm_async.
        """
        forms = tuple(Matrix.placeholder(form.shape, form.dtype) for form in (self._forms[0], self._forms[-1]))
        return _raw.push_batch(
            Job, self._open(), self._target, forms, self._kept, x, out, stream, after, priority, untracked, timeout, label,
        )  # fmt: skip

    def push(self, x, out=None, *, stream=None, after=(), priority=0, untracked=False, timeout=None, label=None):
        """Pushes a batch, waits, and returns its result. x, out, stream, after, priority, untracked, timeout, label: as for
        push_async."""
        return finished(
            self.push_async(
                x, out, stream=stream, after=after, priority=priority, untracked=untracked, timeout=timeout, label=label,
            )
        )  # fmt: skip
