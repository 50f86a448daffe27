# SPDX-License-Identifier: Apache-2.0
"""Traces: what ran when, what overlapped, and why a device was idle."""

import os

from . import _raw
from ._enums import TraceFormat, integer, value_of
from ._handles import Handle
from ._job import Job
from ._records import TraceMetrics
from ._streams import Stream


class Trace(Handle):
    """A recording of all contexts of the process, from its construction until stop(); a process records one at a time.

    As a context manager it stops at the end of the block, and writes `path` if one was given:

        with sg.Trace("run.html") as trace:
            context.gemm(a, b)
        print(trace.metrics(context).overlap_efficiency)

    In a notebook it shows itself as a picture.
    """

    def __init__(self, path=None, *, max_events=0, device_times=False):
        """Starts recording. path: written when a `with` block ends; its format follows from the name (.json, .pftrace, .html,
        .svg, .txt). max_events: how many events to keep, 64 bytes each; 0: 1,000,000. device_times: a GPU times each command itself,
        which then takes some us longer."""
        if path is not None:
            path = os.fspath(path)
            _raw.sg_trace_check_path(path, TraceFormat.AUTO)
        options = _raw.sg_trace_options()
        options.max_events = integer(max_events, "max_events", 0, 1 << 32)
        options.flags = _raw.SG_TRACE_DEVICE_TIMES if device_times else _raw.SG_TRACE_DEFAULT
        self._path = path
        self._own(_raw.sg_trace_start(options), _raw.sg_trace_release)

    def stop(self):
        """Ends the recording; work in flight goes on. Once is enough."""
        _raw.sg_trace_stop(self._open())

    def write(self, path, format="auto"):
        """Replaces the file `path`. format: TraceFormat or its name; "auto" goes by the file's name."""
        _raw.sg_trace_write(self._open(), os.fspath(path), value_of(TraceFormat, format, "format"))

    def export(self, format):
        """The trace as bytes, in a format but "auto"."""
        return _raw.trace_bytes(self._open(), value_of(TraceFormat, format, "format"))

    @property
    def text(self):
        """Rows of characters, and the figures of each context."""
        return self.export(TraceFormat.TEXT).decode()

    def metrics(self, of):
        """Figures of a Context, or of a Stream: TraceMetrics. of: whose."""
        read = _raw.sg_trace_get_stream_metrics if isinstance(of, Stream) else _raw.sg_trace_get_metrics
        return TraceMetrics._read(read, self._open(), of._open())

    def overlap(self, first, second):
        """For how many seconds `first` and `second` ran side by side: two Jobs, or the jobs of two Streams."""
        if isinstance(first, Job) != isinstance(second, Job):
            raise TypeError(f"first is a {type(first).__name__} and second a {type(second).__name__}: two Jobs, or two Streams")
        if isinstance(first, Job):
            return _raw.sg_trace_overlap_jobs(self._open(), first._handle, second._handle)
        return _raw.sg_trace_overlap_streams(self._open(), first._open(), second._open())

    def __exit__(self, *raised):
        self.stop()
        if self._path is not None:
            self.write(self._path)

    __str__ = lambda self: self.text  # noqa: E731

    def _repr_html_(self):
        return self.export(TraceFormat.SVG).decode().partition("?>\n")[2]
