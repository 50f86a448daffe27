# SPDX-License-Identifier: Apache-2.0
"""The default context, which the module's functions use."""

import os
import threading

from ._context import Context

_default = None
_default_lock = threading.Lock()


def default_context():
    """The context of the module's functions; created at first use, on the device "auto"."""
    global _default
    if _default is None or _default.closed:
        with _default_lock:
            if _default is None or _default.closed:
                _default = Context()
    return _default


def set_default_context(context):
    """Replaces it by `context`; None: a new one is created at the next use."""
    global _default
    _default = context


def _after_fork():
    """The parent's handles are invalid in a child, which gets a context of its own."""
    global _default, _default_lock
    _default, _default_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def target_of_default():
    """That of the default context."""
    target = None if _default is None else _default._target
    return target or default_context()._open_target()
