# SPDX-License-Identifier: Apache-2.0
"""A submission as a future of concurrent.futures that can be awaited."""

import concurrent.futures
import threading
import time
from concurrent.futures._base import CANCELLED_AND_NOTIFIED, FINISHED, PENDING, InvalidStateError

from . import _completer, _raw
from ._errors import InvalidArgument, error_of
from ._handles import Uncopied
from ._records import Statistics

_SLICE_S = 0.05  # of a wait in the library, which no signal interrupts


class Job(Uncopied, _raw.JobBase, concurrent.futures.Future):
    """One submission. It holds its operands until it completes, also when no reference to it is left.

    All of concurrent.futures.Future works on it (wait, as_completed, wrap_future, callbacks), and so does
    `await`.
    """

    def __new__(cls, *args, **kwargs):
        raise TypeError("jobs are made by submitting work")

    # Submissions make jobs without it, and Future's attributes come when they are asked for.
    def __init__(self):
        """Never runs: jobs are made by submitting work."""
        raise TypeError("jobs are made by submitting work")

    def __getattr__(self, name):
        if name in ("_waiters", "_done_callbacks"):
            return self.__dict__.setdefault(name, [])
        raise AttributeError(f"a Job has no attribute {name!r}")

    # The state that concurrent.futures reads for the application, which then has observed the job.

    @property
    def _state(self):
        status = self._status
        if status == _raw.SG_STATUS_NOT_READY:
            return PENDING
        self._observe()
        return CANCELLED_AND_NOTIFIED if status == _raw.SG_STATUS_CANCELLED else FINISHED

    @property
    def _exception(self):
        if self._status >= 0:
            return None
        message = self._observe()
        return self.__dict__.get("_error") or self.__dict__.setdefault("_error", error_of(self._status, message))

    def _finish(self, status, message):
        """Completes it and notifies its observers; once, on the first thread that sees the completion."""
        with self._condition:
            if not self._end(status, message or ""):
                return
            if self._waiters or self._done_callbacks:  # the application gets the job from them
                self._observe()
            for waiter in self._waiters:
                if status == _raw.SG_STATUS_OK:
                    waiter.add_result(self)
                elif status == _raw.SG_STATUS_CANCELLED:
                    waiter.add_cancelled(self)
                else:
                    waiter.add_exception(self)
            self._condition.notify_all()
        self._invoke_callbacks()

    def wait(self, timeout=None):
        """Waits until it completes, successfully or not, for `timeout` seconds at most. Returns whether it has."""
        complete = self._status != _raw.SG_STATUS_NOT_READY or self._wait_for_end(timeout)
        if complete:
            self._observe()
        return complete

    def _wait_for_end(self, timeout):
        """Waits in the library, and not for the package's thread, which may be in a callback for long."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_S if deadline is None else max(0, deadline - time.monotonic())
            ended = self._wait(int(min(left, _SLICE_S) * 1e9))
            if ended is not None:
                self._finish(*ended)
            if self._status != _raw.SG_STATUS_NOT_READY:
                return True
            if left < _SLICE_S:
                return False

    def result(self, timeout=None):
        """Waits for the job, `timeout` seconds at most, and returns the result's array. Raises the job's exception, or
        TimeoutError."""
        error = self.exception(timeout)
        if error is not None:
            try:
                raise error
            finally:
                self = error = None  # no cycle through the traceback
        return self._result

    def exception(self, timeout=None):
        """Waits for the job, `timeout` seconds at most: its exception, or None. concurrent.futures' own CancelledError is
        among the bases of Cancelled."""
        if self._status == _raw.SG_STATUS_NOT_READY and not self.wait(timeout):
            raise concurrent.futures.TimeoutError
        return self._exception

    def done(self):
        """Whether it has completed. Asking runs no callbacks: they, and concurrent.futures.wait, may be notified later."""
        return self._poll() != _raw.SG_STATUS_NOT_READY

    def running(self):
        """False: in the sense of executors (no longer cancellable) no job is ever running."""
        return False

    def cancelled(self):
        """Whether it was cancelled."""
        return self._poll() == _raw.SG_STATUS_CANCELLED

    def cancel(self):
        """Cancels it. True: it will complete, as cancelled unless its last command was already running; it uses the operands
        until then. False: it had completed."""
        if self.done():
            return self.cancelled()
        try:
            _raw.sg_job_cancel(self._handle)
        except Exception as refused:
            if getattr(refused, "status", None) != _raw.SG_STATUS_BUSY:
                raise
            return False
        return True

    @property
    def label(self):
        """The label that it was submitted with, as the library stores it; "" without one."""
        return _raw.job_label(self._handle) if self._handle else ""  # a batch of nothing was not submitted

    @property
    def progress(self):
        """The fraction of its commands that have completed: 1 exactly if it has succeeded."""
        return _raw.sg_job_progress(self._handle) if self._handle else 1.0

    @property
    def statistics(self):
        """Waits for it; its statistics."""
        self.wait()
        if not self._handle:
            return Statistics(_raw.sg_job_statistics())  # a batch of nothing was not submitted
        return Statistics._read(_raw.sg_job_get_statistics, self._handle)

    def set_result(self, result):
        """Raises InvalidStateError, whatever the `result`: only the library completes a job."""
        raise InvalidStateError("only the library completes a job")

    def set_exception(self, exception):
        """Raises InvalidStateError, whatever the `exception`: only the library completes a job."""
        self.set_result(None)

    def set_running_or_notify_cancel(self):
        """Raises InvalidStateError: only the library completes a job."""
        self.set_result(None)

    def add_done_callback(self, fn, *, context=None):
        """Calls `fn(job)` when the job completes: on the package's thread or that of a waiter; at once when it has completed.
        Callbacks that asyncio itself adds, as asyncio.wait does, run on the loop, in the `context` given."""
        if getattr(fn, "__module__", "") == "asyncio.tasks":
            import asyncio  # whose import takes as long as all others

            fn = _OnLoop(asyncio.get_running_loop(), fn, context)
        super().add_done_callback(fn)

    def remove_done_callback(self, fn):
        """Removes `fn` from the callbacks; returns their number."""
        with self._condition:
            kept = [callback for callback in self._done_callbacks if callback != fn]
            removed = len(self._done_callbacks) - len(kept)
            self._done_callbacks[:] = kept
        return removed

    def __array__(self, *how, **options):
        """NumPy would make an array of one object of it."""
        raise InvalidArgument(f"{self!r} is no array: result() waits for the one that it makes")

    def __await__(self):
        if self._status == _raw.SG_STATUS_NOT_READY:  # not done(): callbacks are not to run on the loop's thread
            import asyncio

            loop = asyncio.get_running_loop()
            woken = loop.create_future()
            if not self._sleep((loop, woken)):
                self.add_done_callback(lambda job: _completer.wake([(loop, woken)]))
            try:
                yield from woken
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self.result()

    def __repr__(self):
        return f"<streamgemm.Job {_raw.sg_status_name(self._poll())[len('SG_STATUS_'):].lower()} at {id(self):#x}>"


def finished(job):
    """The result of a blocking call. An interrupting exception cancels the job, which uses the operands until it completes."""
    try:
        return job.result()
    except BaseException:
        if not job.done():
            job.cancel()
            job.wait()
        raise


class _OnLoop:
    """A callback that runs on an asyncio loop, whichever thread calls it. Equal to the wrapped callback."""

    def __init__(self, loop, function, context):
        self._loop, self._function, self._context = loop, function, context

    def __call__(self, job):
        try:
            self._loop.call_soon_threadsafe(self._function, job, context=self._context)
        except RuntimeError:
            pass  # the loop is closed, so no task waits there

    def __eq__(self, other):
        return self._function == getattr(other, "_function", other)

    __hash__ = None


class NoCondition:
    """The condition of complete jobs: there is nothing left to guard or to wait for."""

    def __enter__(self):
        return True

    def __exit__(self, *raised):
        pass

    def acquire(self, *how):
        return True

    def release(self):
        pass

    def wait(self, timeout=None):
        return True

    def notify_all(self):
        pass


def make_condition():
    return threading.Condition()
