# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each failing status, with the library's message."""

import builtins
import concurrent.futures

from . import _raw
from ._messages import in_python
from ._tables import ERRORS


class Error(Exception):
    """The failure of a call or a job.

    `status` is the value of its sg_status, `status_name` its name.
    """

    status = _raw.SG_STATUS_INTERNAL

    @property
    def status_name(self):
        """The name of its sg_status: "SG_STATUS_BUSY"."""
        return _raw.sg_status_name(self.status)


# A class for each failing status of the headers.
_known = {**vars(concurrent.futures), **vars(builtins)}
_by_status = {}
for _name, (_status, _bases, _doc) in ERRORS.items():
    _body = {"__doc__": _doc, "__module__": __name__, "status": _status}
    globals()[_name] = _by_status[_status] = type(_name, (Error, *(_known[base] for base in _bases)), _body)


def _error_of_call(status, message, operation=None):
    """The exception of a `status`; `operation`: the method that was called, of a message with marked names."""
    return error_of(status, message if operation is None else in_python(message, operation))


def error_of(status, message):
    """The exception of a `status`, with a `message`."""
    error = _by_status.get(status, Error)(message or _raw.sg_status_name(status))
    error.status = status
    return error
