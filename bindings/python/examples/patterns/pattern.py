# SPDX-License-Identifier: Apache-2.0
"""Shared by the patterns: memory, the order by hand, chains of stages, and the comparison with the ideal: the time of the busiest
of copies in, arithmetic and copies out, each alone. On a simulated device times are virtual."""

import functools
import sys
import time

import numpy as np
import streamgemm as sg

ARITHMETIC, COPIES_IN, COPIES_OUT, BETWEEN_DEVICES = "arithmetic", "copies in", "copies out", "between devices"


def open_context():
    """On the device that the program's first argument names."""
    device = sys.argv[1] if len(sys.argv) > 1 else "sim:h200"
    return sg.Context(device, check_hazards=True, no_coalescing=True)


def on_device(context, shape):
    return context.buffer(4 * int(np.prod(shape))).matrix(shape, "f32")


def placed(context, values):
    return context.copy(on_device(context, values.shape), values)


def on_host(context, shape, random=None):
    made = context.pinned_empty(shape, "f32")
    made[...] = 0 if random is None else random.uniform(-1, 1, shape)
    return made


class Submit:
    """Operations of a context by the names that a Stage has for them: what is written for one runs on the other."""

    def __init__(self, context, **how):
        self._context, self._how = context, how

    def __getattr__(self, name):
        return functools.partial(getattr(self._context, f"{name}_async"), **self._how)


def by_hand(context, stream):
    """Ordered by the stream, and by events that it waits for, not by memory."""
    return Submit(context, stream=stream, untracked=True)


def train(on, x, t, w, error, rate):
    """A step of the linear model x w towards the targets t: w -= rate x^T (x w - t)."""
    on.gemm(x, w, error)
    on.axpby(t, error, alpha=-1.0)
    on.gemm(x, error, w, op_a="T", alpha=-rate, beta=1.0)


def measure(context, run):
    """Seconds of a run, and its trace."""
    context.synchronize()
    with sg.Trace() as trace:
        begin = time.perf_counter()
        run()
        context.synchronize()
        seconds = time.perf_counter() - begin
    virtual = context.device.name.startswith("sim:")
    return (trace.metrics(context).span_seconds if virtual else seconds), trace


def compare(context, parts, ways):
    """parts: {name: (what it uses, function)}. ways: {name: function}. The best of three runs counts; in virtual time it reaches 0.9 of
    the ideal."""
    busy = {}
    for _, run in parts.values():
        run()  # loads kernels
    for name, (uses, run) in parts.items():
        alone, _ = measure(context, run)
        busy[uses] = busy.get(uses, 0) + alone
        print(f"{name:32} {alone * 1e3:8.3f} ms alone")
    ideal = max(busy.values())
    for name, run in ways.items():
        run()
        runs = [measure(context, run) for _ in range(3)]
        seconds, trace = min(runs, key=lambda each: each[0])
        print(f"\n== {name}\n{trace.text}\n{name:32} {seconds * 1e3:8.3f} ms, {ideal / seconds:.2f} of the ideal")
        if context.device.name.startswith("sim:"):
            assert ideal / seconds >= 0.9, f"{name}: {ideal / seconds:.3f} of the ideal"


class Chain:
    """Batches through stages: by a pipeline; and by hand with a stream for each stage and each direction of copies, two buffers
    behind each, and events that say when a buffer is ready and when it has been read."""

    BATCHES = 48

    def __init__(self, context, shape, stages, start=lambda: None):
        """shape: of a batch. stages: (name, shape of its output, function(on, x, y)) of each. start: sets what batches change."""
        self.context, self.stages, self.start = context, stages, start
        shapes = [shape] + [each[1] for each in stages]
        self.inputs = [on_host(context, shape) for _ in range(self.BATCHES)]
        self.outputs = [[on_host(context, shapes[-1]) for _ in range(self.BATCHES)] for _ in range(2)]
        self.buffers = [[on_device(context, each) for _ in range(2)] for each in shapes]
        self.streams = [context.stream() for _ in range(len(stages) + 2)]
        self.ready, self.read = ([[context.event() for _ in range(2)] for _ in self.streams] for _ in range(2))
        self.pipeline = context.pipeline(shape)
        for name, output, run in stages:
            stage = self.pipeline.stage(output, name=name)
            run(stage, stage.input, stage.output)

    def lane(self, i, batch, way, on):
        """The work of lane i for a batch: 0 is the copy in, then the stages, the last one the copy out."""
        b = batch % 2
        if i == 0:
            on.copy(self.buffers[0][b], self.inputs[batch])
        elif i <= len(self.stages):
            self.stages[i - 1][2](on, self.buffers[i - 1][b], self.buffers[i][b])
        else:
            on.copy(self.outputs[way][batch], self.buffers[i - 1][b])

    def by_pipeline(self):
        self.start()
        self.context.synchronize()
        for x, y in zip(self.inputs, self.outputs[0]):
            self.pipeline.push_async(x, y)

    def by_hand(self):
        self.start()
        self.context.synchronize()
        last = len(self.stages) + 1
        for batch in range(self.BATCHES):
            for i, stream in enumerate(self.streams):
                b = batch % 2
                if i > 0:
                    stream.wait_event(self.ready[i - 1][b])
                if i < last and batch >= 2:
                    stream.wait_event(self.read[i][b])  # by the lane behind, of batch - 2
                self.lane(i, batch, 1, by_hand(self.context, stream))
                if i < last:
                    self.ready[i][b].record(stream)
                if i > 0:
                    self.read[i - 1][b].record(stream)

    def alone(self, i):
        self.start()
        self.context.synchronize()
        on = Submit(self.context)
        for batch in range(self.BATCHES):
            self.lane(i, batch, 1, on)

    def compare(self, name):
        """Both ways, and whether their results agree."""
        parts = {"copies in": (COPIES_IN, lambda: self.alone(0))}
        for i, (stage, _, _) in enumerate(self.stages):
            parts[stage] = (ARITHMETIC, functools.partial(self.alone, i + 1))
        parts["copies out"] = (COPIES_OUT, lambda: self.alone(len(self.stages) + 1))
        compare(self.context, parts, {f"{name}, pipeline": self.by_pipeline, f"{name}, by hand": self.by_hand})
        agree(*self.outputs)


def agree(first, second):
    """Results of two ways, which add in another order at most."""
    for x, y in zip(first, second):
        assert np.abs(x).max() > 0
        np.testing.assert_allclose(x, y, atol=1e-4 * np.abs(x).max(), rtol=0)
