# SPDX-License-Identifier: Apache-2.0
"""The base of objects with a handle: close once, close by `with`, close when dropped."""

import os
import weakref

from ._errors import InvalidHandle

_process = 1  # counts forks: a child must not release its parent's objects


def _after_fork():
    global _process
    _process += 1


os.register_at_fork(after_in_child=_after_fork)


def when_dropped(owner, release, *arguments):
    """Calls release(*arguments) once: when the owner is dropped or when the returned function is called. Process exit
    frees everything by itself, and a forked child releases nothing of its parent's."""
    finalizer = weakref.finalize(owner, _release, _process, release, arguments)
    finalizer.atexit = False
    return finalizer


def _release(process, release, arguments):
    if process == _process:
        release(*arguments)


class Uncopied:
    """An object of this process that exists once: copy, deepcopy and pickle of any protocol end in __reduce_ex__."""

    def __reduce_ex__(self, protocol):
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it refers to memory and handles of this process; "
            "send arrays, and make a Context in each process"
        )


class Handle(Uncopied):
    """Owns one reference to an object of the library. Closing it twice is fine, in any order with its parents and
    children: the library keeps the objects that are still needed."""

    def _own(self, handle, release):
        self._handle = handle
        self._finalizer = when_dropped(self, release, handle)

    def close(self):
        """Releases the handle. Work in flight continues and completes."""
        self._finalizer()
        self._handle = 0

    @property
    def closed(self):
        """Whether it was closed."""
        return not self._handle

    def _open(self):
        if not self._handle:
            raise InvalidHandle(f"this {type(self).__name__} is closed")
        return self._handle

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.close()
