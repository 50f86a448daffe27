# SPDX-License-Identifier: Apache-2.0
"""Streams and events: the order of submissions."""

import time

from . import _raw
from ._handles import Handle

_SLICE_NS = 20_000_000  # a wait checks for Ctrl-C this often


def _wait(call, handle, timeout):
    """Waits in the library, for `timeout` seconds at most; whether it completed."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _SLICE_NS if deadline is None else min(_SLICE_NS, max(0, int((deadline - time.monotonic()) * 1e9)))
        if call(handle, left) is None:
            return True
        if deadline is not None and time.monotonic() >= deadline:
            return False


def address_of(native, attribute):
    """The address in an object of PyTorch, CuPy, numba, or ctypes."""
    for name in (attribute, "ptr", "handle"):
        native = getattr(native, name, native)
    return int(getattr(native, "value", native))


class Stream(Handle):
    """A stream: its submissions run in order. By Context.stream and Context.wrap_stream."""

    def __init__(self, handle):
        """Owns a stream's `handle`, which Context.stream and Context.wrap_stream make."""
        self._own(handle, _raw.sg_stream_release)

    def _open_stream(self):
        return self._open()

    @property
    def priority(self):
        """-1 low, 0 normal, 1 high: the default of its submissions."""
        return _raw.sg_stream_priority(self._open())

    @property
    def compute_units(self):
        """The compute units that its GEMMs may use; 0: all."""
        return _raw.sg_stream_compute_units(self._open())

    @property
    def is_partition(self):
        """Whether those compute units are a partition of the GPU, reserved for it."""
        return _raw.sg_stream_is_partition(self._open()) == 1

    def done(self):
        """Whether everything submitted to it has completed."""
        return _raw.sg_stream_query(self._open()) is None

    def synchronize(self, timeout=None):
        """Waits until everything submitted to it has completed. False: `timeout` seconds passed first."""
        return _wait(_raw.sg_stream_synchronize, self._open(), timeout)

    def wait_event(self, event):
        """Makes later submissions wait for the latest recording of `event`."""
        _raw.sg_stream_wait_event(self._open(), event._open())


class Event(Handle):
    """A marker in a stream. By Context.event and Context.wrap_event."""

    def __init__(self, handle):
        """Owns an event's `handle`, which Context.event and Context.wrap_event make."""
        self._own(handle, _raw.sg_event_release)

    def record(self, stream):
        """Records it in `stream`: it completes after everything submitted there so far."""
        _raw.sg_event_record(self._open(), stream._open())

    @property
    def native(self):
        """The address of the native event under it, which other libraries' streams may wait for. It lives as long as this
        one, and moves with it from now on; `record` then returns once it is enqueued on the device."""
        return _raw.sg_event_native(self._open())

    def done(self):
        """Whether it is complete."""
        return _raw.sg_event_query(self._open()) is None

    def wait(self, timeout=None):
        """Waits for it. False: `timeout` seconds passed first."""
        return _wait(_raw.sg_event_wait, self._open(), timeout)

    def seconds_since(self, start):
        """Time from the event `start` to this one on the device's clock; both are complete."""
        return _raw.sg_event_elapsed(start._open(), self._open())
