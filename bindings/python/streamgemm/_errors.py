# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each failing status, with the library's message."""

import concurrent.futures

from . import _raw
from ._messages import in_python


class Error(Exception):
    """The failure of a call or a job.

    `status` is the value of its sg_status, `status_name` its name.
    """

    status = _raw.SG_STATUS_INTERNAL

    @property
    def status_name(self):
        """The name of its sg_status: "SG_STATUS_BUSY"."""
        return _raw.sg_status_name(self.status)


class InvalidArgument(Error, ValueError):
    """An argument is wrong; the text names it."""

    status = _raw.SG_STATUS_INVALID_ARGUMENT


class InvalidHandle(Error, ValueError):
    """An object is closed, or is from before a fork."""

    status = _raw.SG_STATUS_INVALID_HANDLE


class OutOfMemory(Error, MemoryError):
    """The host or the device has too little memory."""

    status = _raw.SG_STATUS_OUT_OF_MEMORY


class NoDevice(Error, LookupError):
    """The device does not exist, or cannot be used."""

    status = _raw.SG_STATUS_NO_DEVICE


class Unsupported(Error, NotImplementedError):
    """The device or the library does not support this."""

    status = _raw.SG_STATUS_UNSUPPORTED


class Busy(Error):
    """As many jobs are in flight as the context allows."""

    status = _raw.SG_STATUS_BUSY


class Cancelled(Error, concurrent.futures.CancelledError):
    """The job was cancelled. A concurrent.futures.CancelledError, too."""

    status = _raw.SG_STATUS_CANCELLED


class Deadlock(Error, RuntimeError):
    """A wait that would never return was refused."""

    status = _raw.SG_STATUS_DEADLOCK


class BackendFailure(Error, RuntimeError):
    """The device or its libraries failed."""

    status = _raw.SG_STATUS_BACKEND_FAILURE


class DependencyFailed(Error):
    """A job that this one was ordered after failed or was cancelled."""

    status = _raw.SG_STATUS_DEPENDENCY_FAILED


class DeadlineExceeded(Error, TimeoutError):
    """The job's timeout passed before it completed."""

    status = _raw.SG_STATUS_DEADLINE_EXCEEDED


class Shutdown(Error, RuntimeError):
    """The library is shutting down."""

    status = _raw.SG_STATUS_SHUTDOWN


class Internal(Error, RuntimeError):
    """A fault of the library."""

    status = _raw.SG_STATUS_INTERNAL


_by_status = {kind.status: kind for kind in Error.__subclasses__()}


def error_of(status, message):
    """The exception of a `status`, with the library's `message`."""
    error = _by_status.get(status, Error)(in_python(message) or _raw.sg_status_name(status))
    error.status = status
    return error
