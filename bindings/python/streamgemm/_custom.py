# SPDX-License-Identifier: Apache-2.0
"""Custom operations: functions of the application's as jobs. Each public function lists all of its parameters."""

from . import _raw
from ._enums import MemoryKind, integer
from ._job import Job, finished
from ._matrix import ON_CUDA, ON_HOST, Matrix

_NOTHING = ()


def _as_array(matrix):
    """A NumPy array of host memory where there is NumPy and a type for it; otherwise the Matrix."""
    try:
        import numpy
    except ImportError:
        return matrix
    array = numpy.asarray(matrix)
    if matrix.readonly:
        array.flags.writeable = False
    return array


class _Bound:
    """The function with the forms of its operands; called with their addresses."""

    def __init__(self, function, forms):
        self._function = function
        self._forms = forms

    def _operand(self, form, address):
        shape, strides, dtype, readonly, device = form
        place = (ON_HOST, 0) if device < 0 else (ON_CUDA, device)
        made = Matrix._at(address, shape, strides, dtype, bool(readonly), *place, int(MemoryKind.AUTO), None)
        return _as_array(made) if device < 0 else made

    def __call__(self, stream, addresses):
        self._function(stream, *map(self._operand, self._forms, addresses))


def custom_arguments(function, reads, writes, updates, seconds, compute_units):
    if not callable(function):
        raise TypeError(f"function is {function!r}, which cannot be called")
    operands = []
    for given, access, name in (
        (reads, _raw.SG_ACCESS_READ, "reads"),
        (writes, _raw.SG_ACCESS_WRITE, "writes"),
        (updates, _raw.SG_ACCESS_READ_WRITE, "updates"),
    ):
        if not isinstance(given, (tuple, list)):
            raise TypeError(f"{name} is {given!r}; it must be a tuple or a list of arrays")
        operands += [(array, access, f"{name}[{i}]") for i, array in enumerate(given)]
    return (
        lambda forms: _Bound(function, forms), tuple(operands), float(seconds),
        integer(compute_units, "compute_units", -1, (1 << 31) - 1),
    )  # fmt: skip


# fmt: off
class CustomMethods:
    """The custom operations of a Context, which has _target."""

    def custom_async(
        self, function, *, reads=_NOTHING, writes=_NOTHING, updates=_NOTHING, seconds=0.0, compute_units=0, stream=None,
        after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Submits a function as a job and returns its Job at once, whose result is what is written: the array, or a tuple.

        function: called with the native stream and the arrays of reads, writes and updates. On a CUDA device it enqueues work on that
        cudaStream_t, an int, of operands that are Matrix objects in device memory (DLPack, __cuda_array_interface__), and does
        not wait. On other devices the stream is 0, the operands are NumPy arrays, and the work is done when it returns. It runs
        on a thread of the library and calls nothing of this package that submits or waits. An exception fails the job.
        reads: arrays that it only reads, or Jobs; read-only in the function on other devices. writes: arrays that it writes, whatever they contain. updates: arrays that it
        reads and writes. Four at most in all; in device or pinned memory, unless the device is the cpu.
        seconds: expected time, for predictions and simulated devices; 0: by the bytes of the operands.
        compute_units: multiprocessors that it occupies, for predictions; 0: all; -1: none, as of a transfer between devices.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_custom(
            Job, self._target or self._open_target(),
            *custom_arguments(function, reads, writes, updates, seconds, compute_units), stream, after, priority, untracked,
            timeout, label,
        )

    def custom(
        self, function, *, reads=_NOTHING, writes=_NOTHING, updates=_NOTHING, seconds=0.0, compute_units=0, stream=None,
        after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Submits a function as a job, waits, and returns what is written.

        function, reads, writes, updates, seconds, compute_units, stream, after, priority, untracked, timeout, label: as for
        custom_async.
        """
        return finished(self.custom_async(
            function, reads=reads, writes=writes, updates=updates, seconds=seconds, compute_units=compute_units,
            stream=stream, after=after, priority=priority, untracked=untracked, timeout=timeout, label=label,
        ))
# fmt: on
