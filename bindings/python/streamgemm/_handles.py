# SPDX-License-Identifier: Apache-2.0
"""What every object with a handle does: close once, close by `with`, close when it is dropped."""

import os
import weakref

from ._errors import InvalidHandle

_process = 1  # counts forks: what a parent made is not a child's to give back


def _after_fork():
    global _process
    _process += 1


os.register_at_fork(after_in_child=_after_fork)


def when_dropped(owner, give_back, *arguments):
    """Calls give_back(*arguments) once: when the owner is dropped or when what this returns is called. The end of the
    process frees everything by itself, and a forked child gives nothing of its parent's back."""
    finalizer = weakref.finalize(owner, _give_back, _process, give_back, arguments)
    finalizer.atexit = False
    return finalizer


def _give_back(process, give_back, arguments):
    if process == _process:
        give_back(*arguments)


class Uncopied:
    """What is of this process and exists once: copy, deepcopy and pickle of any protocol end in __reduce_ex__."""

    def __reduce_ex__(self, protocol):
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it refers to memory and handles of this process; "
            "send arrays, and make a Context in each process"
        )


class Handle(Uncopied):
    """Owns one reference to an object of the library. Closing it twice is fine, in any order with its parents and
    children: the library keeps what is still needed."""

    def _own(self, handle, release):
        self._handle = handle
        self._finalizer = when_dropped(self, release, handle)

    def close(self):
        """Releases the handle. Work in flight goes on and completes."""
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
