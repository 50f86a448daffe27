# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each failing status, with the library's message."""

import concurrent.futures

from . import _raw


class Error(Exception):
    """What the library answers when a call or a job fails.

    `status` is the value of its sg_status, `status_name` its name.
    """

    status = _raw.SG_STATUS_INTERNAL

    @property
    def status_name(self):
        return _raw.sg_status_name(self.status)


class InvalidArgument(Error, ValueError):
    status = _raw.SG_STATUS_INVALID_ARGUMENT


class InvalidHandle(Error, ValueError):
    status = _raw.SG_STATUS_INVALID_HANDLE


class OutOfMemory(Error, MemoryError):
    status = _raw.SG_STATUS_OUT_OF_MEMORY


class NoDevice(Error, LookupError):
    status = _raw.SG_STATUS_NO_DEVICE


class Unsupported(Error, NotImplementedError):
    status = _raw.SG_STATUS_UNSUPPORTED


class Busy(Error):
    status = _raw.SG_STATUS_BUSY


class Cancelled(Error, concurrent.futures.CancelledError):
    status = _raw.SG_STATUS_CANCELLED


class Deadlock(Error, RuntimeError):
    status = _raw.SG_STATUS_DEADLOCK


class BackendFailure(Error, RuntimeError):
    status = _raw.SG_STATUS_BACKEND_FAILURE


class DependencyFailed(Error):
    status = _raw.SG_STATUS_DEPENDENCY_FAILED


class Shutdown(Error, RuntimeError):
    status = _raw.SG_STATUS_SHUTDOWN


class Internal(Error, RuntimeError):
    status = _raw.SG_STATUS_INTERNAL


_by_status = {kind.status: kind for kind in Error.__subclasses__()}


def error_of(status, message):
    """The exception of a status."""
    # The library's messages speak of its own structs; here the same things are arguments.
    message = message.replace("desc->", "").replace("submit->", "") or _raw.sg_status_name(status)
    error = _by_status.get(status, Error)(message)
    error.status = status
    return error
