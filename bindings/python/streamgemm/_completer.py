# SPDX-License-Identifier: Apache-2.0
"""The one thread of the process that completes jobs. It sleeps in the library until some have completed. Threads of the
library run Python only in the functions of custom operations."""

import atexit
import os
import threading
import traceback

from . import _raw

_lock = threading.Lock()
_thread = None
_queue = 0
_ending = False


def start():
    """Starts it at the first submission."""
    global _thread, _queue
    with _lock:
        if _queue or _ending:
            return
        options = _raw.sg_queue_options()
        options.observes = 0  # the application observes a job when it asks
        _queue = _raw.sg_queue_create(0, options)
        _thread = threading.Thread(target=_run, args=(_queue,), name="streamgemm", daemon=True)
        _thread.start()
        _raw.set_queue(_queue)


def wake(sleepers):
    """Wakes asyncio futures of any loops, each loop once."""
    by_loop = {}
    for loop, future in sleepers:
        by_loop.setdefault(loop, []).append(future)
    for loop, futures in by_loop.items():
        try:
            loop.call_soon_threadsafe(_set_all, futures)
        except RuntimeError:
            pass  # the loop is closed, so no task waits there


def _set_all(futures):
    for future in futures:
        if not future.done():
            future.set_result(None)


def _run(queue):
    while True:
        batch = _raw.drain(queue)
        if batch is None:
            return
        listened, sleepers = batch
        for job, status, message in listened:
            try:
                job._finish(status, message)
            except Exception:  # of a waiter or a callback; the other jobs still complete
                traceback.print_exc()
        if sleepers:
            wake(sleepers)
        batch = listened = sleepers = job = None  # nothing is kept alive while it sleeps


@atexit.register
def _stop():
    """At interpreter exit the functions of custom operations end, and then the thread. Jobs in flight keep their memory until the
    process exits."""
    global _thread, _queue, _ending
    _raw.end_calls()
    with _lock:
        _ending = True
        _raw.set_queue(0)
        queue, thread = _queue, _thread
        _queue = 0
    if queue:
        _raw.sg_queue_close(queue)
        thread.join(1.0)
        _thread = None


def _after_fork():
    """A child has no such thread, and the library refuses the parent's handles there."""
    global _thread, _queue, _lock
    _lock = threading.Lock()
    _thread = None
    _queue = 0
    _raw.set_queue(0)
    _raw.forget_calls()


os.register_at_fork(after_in_child=_after_fork)
