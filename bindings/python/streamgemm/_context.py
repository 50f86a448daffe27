# SPDX-License-Identifier: Apache-2.0
"""Contexts, streams and events."""

import itertools
import os
import threading
import time

from . import _raw
from ._enums import WhenFull, value_of
from ._errors import InvalidArgument
from ._graph import Graph
from ._handles import Handle
from ._job import Job
from ._matrix import ON_CUDA, ON_HOST, ON_OTHER, _place_of
from ._memory import Buffer, Pinned, pinned_empty
from ._plan import Plan
from ._records import DeviceInfo, fields_of

_NOTHING = ()
_ASYNC, _BLOCKING = 0, 2
_UNTRACKED = _raw.SG_SUBMIT_UNTRACKED
_SLICE_NS = 500_000_000  # a wait looks for Ctrl-C this often

_numbers = itertools.count(1)


def _wait(call, handle, timeout):
    """Waits in the library, for `timeout` seconds at most; whether it is over."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _SLICE_NS if deadline is None else min(_SLICE_NS, max(0, int((deadline - time.monotonic()) * 1e9)))
        if call(handle, left) is None:
            return True
        if deadline is not None and time.monotonic() >= deadline:
            return False


def _address_of(native, attribute):
    """The address in an object of PyTorch, CuPy, numba, or ctypes."""
    for name in (attribute, "ptr", "handle"):
        native = getattr(native, name, native)
    return int(getattr(native, "value", native))


class Stream(Handle):
    """An order of submissions: what is submitted to it runs in that order."""

    def __init__(self, handle):
        self._own(handle, _raw.sg_stream_release)

    @property
    def priority(self):
        return _raw.sg_stream_priority(self._open())

    @property
    def compute_units(self):
        """The compute units that its products may use; 0: all."""
        return _raw.sg_stream_compute_units(self._open())

    @property
    def is_partition(self):
        """Whether those compute units are a partition of the GPU, set aside for it."""
        return _raw.sg_stream_is_partition(self._open()) == 1

    def done(self):
        """Whether everything submitted to it has ended."""
        return _raw.sg_stream_query(self._open()) is None

    def synchronize(self, timeout=None):
        """Waits until everything submitted to it has ended; False when `timeout` seconds passed first."""
        return _wait(_raw.sg_stream_synchronize, self._open(), timeout)

    def wait_event(self, event):
        """Lets what is submitted after this run only after the event as it was last recorded."""
        _raw.sg_stream_wait_event(self._open(), event._open())


class Event(Handle):
    """A point in a stream."""

    def __init__(self, handle):
        self._own(handle, _raw.sg_event_release)

    def record(self, stream):
        """It happens when everything submitted to the stream so far has ended."""
        _raw.sg_event_record(self._open(), stream._open())

    @property
    def native(self):
        """The address of the native event under it, which other libraries' streams may wait for. It lives as long as this
        one, and moves with it from now on; `record` then returns when the device has it."""
        return _raw.sg_event_native(self._open())

    def done(self):
        """Whether it has happened."""
        return _raw.sg_event_query(self._open()) is None

    def wait(self, timeout=None):
        """Waits for it; False when `timeout` seconds passed first."""
        return _wait(_raw.sg_event_wait, self._open(), timeout)

    def seconds_since(self, start):
        """Time from another event to this one on the device's clock; both have happened."""
        return _raw.sg_event_elapsed(start._open(), self._open())


_FLAGS = {"check_hazards": _raw.SG_CONTEXT_CHECK_HAZARDS, "tune": _raw.SG_CONTEXT_TUNE}


class Context(Handle):
    """A device with its streams, memory and jobs. Any thread may use it."""

    def __init__(self, device=None, **options):
        """`device`: "auto", "cpu", "cuda:0", "sim:h200", ...; `check_hazards`: prove each schedule free of races;
        `tune`: time the device's kernels for each new shape; the other options are the fields of sg_context_options."""
        struct = _raw.sg_context_options()
        if device is not None:
            struct.device = device
        known = [name for name in fields_of(_raw.sg_context_options) if name not in ("device", "flags")]
        for name, flag in _FLAGS.items():
            if options.pop(name, False):
                struct.flags |= flag
        for name, value in options.items():
            if name not in known:
                raise InvalidArgument(f"{name} is none of the options {known + list(_FLAGS)}")
            setattr(struct, name, value_of(WhenFull, value, name) if name == "when_full" else value)
        self._own(_raw.sg_context_create(struct), _raw.sg_context_release)
        info = self.device
        number = next(_numbers)
        self._place = (
            (ON_HOST, 0)
            if info.unified_memory
            else _place_of(info.name) if info.name.startswith("cuda") else (ON_OTHER, number)
        )
        waits = struct.job_limit > 0 and struct.when_full == WhenFull.BLOCK
        self._target = (self._handle, self._place[1] if self._place[0] == ON_CUDA else -1, number, waits)

    def close(self):
        self._target = None
        super().close()

    def _open_target(self):
        self._open()
        return self._target

    @property
    def device(self):
        """Facts of its device."""
        return DeviceInfo._read(_raw.sg_context_device, self._open())

    def synchronize(self):
        """Waits until every job submitted before has ended, well or badly."""
        _raw.sg_context_synchronize(self._open())

    def stream(self, priority=0, compute_units=0):
        """A stream from the pool; -1 low, 0 normal, 1 high: what its submissions have unless they say otherwise. With
        `compute_units` its products use so many multiprocessors, or cores, at most."""
        return Stream(_raw.sg_stream_acquire_limited(self._open(), priority, compute_units))

    def wrap_stream(self, native):
        """A stream over a native one: an address, or an object of PyTorch, CuPy or numba.

        What is submitted to it runs after what was enqueued in the native stream before the call, and before what is enqueued
        there after the call. A submission that is not one command on device memory returns when it has ended.
        """
        return Stream(_raw.sg_stream_wrap(self._open(), _address_of(native, "cuda_stream")))

    def event(self):
        """An event; it counts as happened until it is recorded."""
        return Event(_raw.sg_event_create(self._open()))

    def wrap_event(self, native):
        """An event over a native one: an address, or an object of PyTorch (which makes its event when it is first
        recorded), CuPy or numba. It must outlive the wrapper.

        The wrapper stands for the native event as it was last recorded, by whomever: `stream.wait_event` lets the device wait
        for it, `record` records it.
        """
        return Event(_raw.sg_event_wrap(self._open(), _address_of(native, "cuda_event")))

    def buffer(self, nbytes):
        """Device memory."""
        return Buffer(self, nbytes)

    def pinned_empty(self, shape, dtype="f32", *, order="C"):
        """A new host array that the device copies from and to at full speed."""
        return pinned_empty(self, shape, dtype, order)

    def pin(self, array):
        """Pins an array of the caller's until the result is closed; `with context.pin(array):`."""
        return Pinned(self, array)

    def gemm_async(
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
        after=_NOTHING,
        priority=0,
        untracked=False,
        options=None,
    ):
        """Submits c = activation(alpha * op_a(a) * op_b(b) + beta * c + bias) and returns its Job at once. Without `c` a new
        array is made. `bias`, of the result's type, is broadcast as NumPy does it: n values are one for each column, a
        column (m, 1) is one for each row. `activation`: "relu" or "gelu"."""
        return _raw.submit_product(
            _ASYNC,
            Job,
            self._target or self._open_target(),
            a,
            b,
            c,
            alpha,
            beta,
            op_a,
            op_b,
            compute,
            bias,
            activation,
            0 if stream is None else stream._open(),
            after,
            priority,
            _UNTRACKED if untracked else 0,
            0 if options is None else options._address,
        )

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
        after=_NOTHING,
        priority=0,
        untracked=False,
        options=None,
    ):
        """The same, and waits: the result's array."""
        return _raw.submit_product(
            _BLOCKING,
            Job,
            self._target or self._open_target(),
            a,
            b,
            c,
            alpha,
            beta,
            op_a,
            op_b,
            compute,
            bias,
            activation,
            0 if stream is None else stream._open(),
            after,
            priority,
            _UNTRACKED if untracked else 0,
            0 if options is None else options._address,
        )

    def gemm_grouped_async(self, products, *, stream=None, after=_NOTHING, priority=0, untracked=False, options=None):
        """Submits products of different shapes, types and scalars as one job. Each is (a, b), (a, b, c) or a dict of
        gemm_async's a, b, c, alpha, beta, op_a, op_b, compute, bias, activation. The result is the list of results."""
        return _raw.submit_group(
            Job,
            self._target or self._open_target(),
            [_item(p) for p in products],
            0 if stream is None else stream._open(),
            after,
            priority,
            _UNTRACKED if untracked else 0,
            0 if options is None else options._address,
        )

    def gemm_grouped(self, products, **how):
        """The same, and waits."""
        return self.gemm_grouped_async(products, **how).result()

    def matmul_async(self, a, b, out=None, **how):
        """a @ b as gemm_async."""
        return self.gemm_async(a, b, out, **how)

    def matmul(self, a, b, out=None, **how):
        """a @ b."""
        return self.gemm(a, b, out, **how)

    def copy_async(self, dst, src, *, stream=None, after=_NOTHING, priority=0, untracked=False):
        """Submits a copy of an array, from and to host or device memory; ordered like products."""
        return _raw.submit_copy(
            Job,
            self._target or self._open_target(),
            dst,
            src,
            0 if stream is None else stream._open(),
            after,
            priority,
            _UNTRACKED if untracked else 0,
        )

    def copy(self, dst, src, **how):
        """The same, and waits: dst."""
        return self.copy_async(dst, src, **how).result()

    def plan(
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
        options=None,
    ):
        """Makes the schedule of a product without running it. Operands are arrays, or Matrix.placeholder(...); a bias is
        an array in any case."""
        return Plan(self, a, b, c, alpha, beta, op_a, op_b, compute, bias, activation, options)

    def graph(self):
        """An empty graph: submissions are recorded into it and run together."""
        return Graph(self)

    def __repr__(self):
        return f"<streamgemm.Context {'closed' if self.closed else self.device.name}>"


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


def _item(product):
    if isinstance(product, (tuple, list)) and 2 <= len(product) <= 3:
        product = dict(zip(_FIELDS, product))
    elif not isinstance(product, dict) or not {"a", "b"} <= product.keys() <= _FIELDS.keys():
        raise InvalidArgument(f"a product of a group is (a, b), (a, b, c) or a dict of {list(_FIELDS)}")
    return tuple({**_FIELDS, **product}.values())


_default = None
_default_lock = threading.Lock()


def default_context():
    """The context of the functions that name none; made when it is first needed, on the device "auto"."""
    global _default
    if _default is None or _default.closed:
        with _default_lock:
            if _default is None or _default.closed:
                _default = Context()
    return _default


def set_default_context(context):
    """Replaces it; None: it is made anew when it is needed."""
    global _default
    _default = context


def _after_fork():
    """The parent's handles are no good in a child, which gets a context of its own."""
    global _default, _default_lock
    _default, _default_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def matmul(a, b, out=None, **how):
    """a @ b on the default context."""
    return default_context().gemm(a, b, out, **how)


def matmul_async(a, b, out=None, **how):
    """A Job of a @ b on the default context."""
    return default_context().gemm_async(a, b, out, **how)
