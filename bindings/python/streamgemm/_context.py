# SPDX-License-Identifier: Apache-2.0
"""Contexts."""

import itertools

from . import _cuda, _device_array, _raw
from ._described import OperationDesc, is_supported
from ._enums import MemoryKind, WhenFull, integer, set_field, set_fields, value_of
from ._graph import Graph
from ._handles import Handle
from ._matrix import ON_CUDA, ON_HOST, ON_OTHER, Matrix, _place_of, bounds_of
from ._memory import Buffer, Pinned, pinned_empty
from ._operations import ContextMethods
from ._pipeline import Pipeline
from ._plan import Plan
from .operations import gemm
from ._records import ContextMetrics, DeviceInfo, fields_of
from ._streams import Event, Stream, _wait, address_of
from ._trace import Trace

_numbers = itertools.count(1)
_FLAGS = {
    "check_hazards": _raw.SG_CONTEXT_CHECK_HAZARDS,
    "no_coalescing": _raw.SG_CONTEXT_NO_COALESCING,
    "tune": _raw.SG_CONTEXT_TUNE,
}


class Context(Handle, ContextMethods):
    """One or several devices with their streams, memory and jobs. Any thread may use it."""

    def __init__(self, device=None, **options):
        """Opens a device, or several.

        device: "auto", "cpu", "cuda:0", "cuda:0,1", "cuda:all", "sim:h200x2", ... options: check_hazards proves each schedule free of races;
        no_coalescing never batches small GEMMs; tune times the device's kernels for each new shape; memory_limit, job_limit, when_full ("block", "refuse"), compute_lanes,
        staging_threads and commands_in_flight are the fields of sg_context_options.
        """
        struct = _raw.sg_context_options()
        if device is not None:
            set_field(struct, "device", device)
        known = [name for name in fields_of(_raw.sg_context_options) if name not in ("device", "flags")]
        for name, flag in _FLAGS.items():
            if options.pop(name, False):
                struct.flags |= flag
        set_fields(struct, options, known + list(_FLAGS), {"when_full": WhenFull})
        _cuda.use_package_for(device)
        self._own(_raw.sg_context_create(struct), _raw.sg_context_release)
        number = next(_numbers)
        self._places = [
            (ON_HOST, 0)
            if info.unified_memory
            else _place_of(info.name) if info.name.startswith("cuda") else (ON_OTHER, number)
            for info in self.devices
        ]
        self._place = self._places[0]
        on_cuda = sum(1 << index for kind, index in self._places if kind == ON_CUDA)
        waits = struct.job_limit > 0 and struct.when_full == WhenFull.BLOCK
        self._target = (self._handle, on_cuda, number, waits)

    def close(self):
        """Releases the handle. Work in flight continues and completes."""
        self._target = None
        super().close()

    def _open_target(self):
        self._open()
        return self._target

    @property
    def device(self):
        """The properties of its device, the first of several."""
        return DeviceInfo._read(_raw.sg_context_get_device_info, self._open(), 0)

    @property
    def devices(self):
        """The properties of each of its devices, in order."""
        handle = self._open()
        count = _raw.sg_context_device_count(handle)
        return [DeviceInfo._read(_raw.sg_context_get_device_info, handle, index) for index in range(count)]

    def available_memory(self, device=0):
        """Memory in bytes that can be allocated now, about; on the cpu the host's. device: the number of the context's device."""
        return _raw.sg_context_available_memory(self._open(), integer(device, "device"))

    @property
    def metrics(self):
        """Its counters now: ContextMetrics."""
        return ContextMetrics._read(_raw.sg_context_get_metrics, self._open())

    def trace(self, path=None, **options):
        """Starts recording, as Trace does with the same `path` and `options`: `with context.trace("run.html"):`. The recording has all
        contexts of the process."""
        return Trace(path, **options)

    def synchronize(self, timeout=None):
        """Waits until every job submitted before has completed, successfully or not. False: `timeout` seconds passed first."""
        return _wait(_raw.sg_context_synchronize, self._open(), timeout)

    def stream(self, priority=0, compute_units=0, *, device=None):
        """A stream from the pool.

        priority: -1 low, 0 normal, 1 high, the default of its submissions. compute_units: the multiprocessors, or
        cores, that its GEMMs use at most; 0: all. device: the number of the context's device that its work runs on; None: where
        the operands are, or the library's choice.
        """
        options = _raw.sg_stream_options()
        options.priority = integer(priority, "priority")
        options.compute_units = integer(compute_units, "compute_units")
        if device is not None:
            options.device = integer(device, "device", 0)
        return Stream(_raw.sg_stream_create(self._open(), options))

    def wrap_stream(self, native):
        """A stream over a `native` one: an address, or an object of PyTorch, CuPy or numba.

        A submission to it runs after work enqueued in the native stream before the call, and before work enqueued there
        after the call. A submission that is not one command on device memory returns when it has completed.
        """
        return Stream(_raw.sg_stream_wrap(self._open(), address_of(native, "cuda_stream")))

    def event(self):
        """An event; it counts as complete until it is recorded."""
        return Event(_raw.sg_event_create(self._open()))

    def wrap_event(self, native):
        """An event over a `native` one: an address, or an object of PyTorch (which makes its event when it is first
        recorded), CuPy or numba. It must outlive the wrapper.

        The wrapper refers to the latest recording of the native event, by any caller: `stream.wait_event` lets the device wait
        for it, `record` records it.
        """
        return Event(_raw.sg_event_wrap(self._open(), address_of(native, "cuda_event")))

    def buffer(self, nbytes, *, device=0):
        """Allocates `nbytes` of device memory, uninitialised: a Buffer. device: the number of the context's device."""
        return Buffer(self, nbytes, device=device)

    def empty(self, shape, dtype="f32", *, order="C"):
        """A new DeviceArray, uninitialised.

        shape: its extents. dtype: "f32", "f64", "bf16", ... order: "C", or "F" for matrices that are column-major.
        """
        return _device_array.empty(self, shape, dtype, order)

    def zeros(self, shape, dtype="f32"):
        """A new DeviceArray of zeros. shape, dtype: as for empty."""
        return _device_array.zeros(self, shape, dtype)

    def array(self, array, dtype=None):
        """A new DeviceArray with the elements of `array`, an operand of any memory. dtype: of the new array, to which f64, f32, f16 and
        bf16 are rounded; None: that of `array`."""
        return _device_array.array(self, array, dtype)

    def pinned_empty(self, shape, dtype="f32", *, order="C", device=None):
        """A new host array that the device copies from and to at full speed.

        shape: its extents. dtype: "f32", "f64", "bf16", ... order: "C", or "F" for matrices that are column-major.
        device: the index of a device of this context, on whose NUMA node the memory is; -1: interleaved over all nodes.
        """
        return pinned_empty(self, shape, dtype, order, device)

    def memory_kind(self, array):
        """The MemoryKind of an `array`'s memory as its device sees it: PINNED, PAGEABLE, DEVICE (on the cpu always) or PEER."""
        view = Matrix(array)
        first, last = bounds_of(view)
        return MemoryKind(_raw.sg_context_memory_kind(self._open(), first, last - first))

    def pin(self, array):
        """Pins the caller's `array` until the result is closed: `with context.pin(array):`."""
        return Pinned(self, array)

    # fmt: off
    def plan(
        self, a, b=None, c=None, *, alpha=1.0, beta=0.0, op_a="N", op_b="N", compute="exact", bias=None, activation=None,
        options=None,
    ):
        """Makes the schedule of an operation without running it: a Plan.

        a: the operation, by a function of streamgemm.operations, and nothing else but options; or of a GEMM its operands and
        properties: a, b, c: arrays, or Matrix.placeholder(...). alpha, beta, op_a, op_b, compute, activation: as for gemm_async. bias: an
        array in any case. options: PlanOptions.
        """
        if isinstance(a, OperationDesc):
            beside = (b, c, bias, activation) if (alpha, beta, op_a, op_b, compute) == (1.0, 0.0, "N", "N", "exact") else (alpha,)
            if any(each is not None for each in beside):
                raise TypeError("operation has all arguments; none but options is given beside it")
            return Plan(self, a, options)
        plan = Plan(self, gemm(a, b, c, alpha=alpha, beta=beta, op_a=op_a, op_b=op_b, compute=compute, bias=bias, activation=activation), options)
        plan._gemm = (alpha, beta, op_a, op_b, compute, activation)
        return plan

    def supports(self, operation):
        """Whether the devices compute an operation. Other failures are raised.

        operation: by a function of streamgemm.operations; its arrays may be Matrix.placeholder(...).
        """
        return is_supported(operation, self._open_target())
    # fmt: on

    def graph(self):
        """An empty graph: submissions are recorded into it and run together."""
        return Graph(self)

    def pipeline(self, shape, dtype="f32", **options):
        """A Pipeline for batches of that shape and dtype, without stages. options: as for Pipeline."""
        return Pipeline(self, shape, dtype, **options)

    def __repr__(self):
        return f"<streamgemm.Context {'closed' if self.closed else self.device.name}>"
