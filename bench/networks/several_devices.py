#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a second device gains: a pipeline whose weights are streamed, and data-parallel training, on two devices beside one.

Pipeline: eight layers of 4096 in f32, whose weights of 64 MiB each come from pinned memory for every batch of 64 rows. The ratio is
the time of a batch with all stages on device 0 over that with four on each of two.
Training: an MLP's forward pass, its gradients, their sum over the devices and a step of SGD, as one recorded graph. The ratio is the time
of a step on two devices over that on one with half of the rows.

usage: several_devices.py [--device cuda:0,1] [--json FILE] [--commit COMMIT] [--rounds N]
On a simulated machine (sim:h200x2) the pipeline's prediction is what counts: its time is not that of a device.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import time

import numpy as np
import streamgemm as sg

STAGES, WIDTH, ROWS, BATCHES = 8, 4096, 64, 16
NETWORKS = (("digits: 64, 32, 10, 1296 rows", (64, 32, 10), 1296), ("1024, 4096, 4096, 1000, 16384 rows", (1024, 4096, 4096, 1000), 16384))
STEPS = 20


def seconds_of(work, context):
    context.synchronize()
    began = time.perf_counter()
    work()
    context.synchronize()
    return time.perf_counter() - began


def streamed(context, devices):
    """A pipeline whose stages are on these devices; its values are checked."""
    random = np.random.default_rng(3)
    weights = []
    for _ in devices:
        weights.append(context.pinned_empty((WIDTH, WIDTH), "f32"))
        weights[-1][...] = random.standard_normal((WIDTH, WIDTH), np.float32) * WIDTH**-0.5
    x, out = (context.pinned_empty((ROWS, WIDTH), "f32") for _ in range(2))
    x[...] = random.standard_normal((ROWS, WIDTH), np.float32)
    pipeline = context.pipeline((ROWS, WIDTH), "f32", batches_in_flight=BATCHES)
    for device, w in zip(devices, weights):
        stage = pipeline.stage((ROWS, WIDTH), weights=[w], place="streamed", device=device)
        stage.gemm(stage.input, stage.weights[0], stage.output, activation="relu")
    pipeline.push(x, out)
    known = x
    for w in weights:
        known = np.maximum(known @ w, 0)
    assert abs(out - known).max() < 1e-3 * abs(known).max()
    pushed = sg.Matrix(x), sg.Matrix(out)

    def run():
        for _ in range(BATCHES):
            job = pipeline.push_async(*pushed)
        job.result()

    return pipeline, run


class Replica:
    """A device's copy of a network, and its rows."""

    def __init__(self, context, device, widths, rows):
        self.context, self.device = context, device
        self._buffers = []
        sizes = [(i * o, o) for i, o in zip(widths, widths[1:])]
        count = sum(w + b for w, b in sizes)
        self.parameters, self.gradients, self.momentum = (self.matrix((count,)) for _ in range(3))
        self.layers, at = [], 0
        for (i, o), (w, b) in zip(zip(widths, widths[1:]), sizes):
            self.layers.append(tuple(self.part(of, at, (i, o), (o,)) for of in (0, 1)))
            at += w + b
        self.values = [self.matrix((rows, width)) for width in widths]
        self.back = [self.matrix((rows, width)) for width in widths]
        self.labels = self.matrix((rows,), "i32")
        random = np.random.default_rng(device)
        first = random.standard_normal(count, np.float32) * np.float32(0.02)
        context.copy(self.parameters, first if device == 0 else np.random.default_rng(0).standard_normal(count, np.float32) * np.float32(0.02))
        context.copy(self.momentum, np.zeros(count, np.float32))
        context.copy(self.values[0], random.standard_normal((rows, widths[0]), np.float32))
        context.copy(self.labels, random.integers(0, widths[-1], rows).astype(np.int32))

    def matrix(self, shape, dtype="f32"):
        self._buffers.append(self.context.buffer(4 * int(np.prod(shape)), device=self.device))
        return self._buffers[-1].matrix(shape, dtype)

    def part(self, of, at, weights, bias):
        """Weights and bias of a layer within the parameters, or with `of` 1 within the gradients."""
        buffer = self._buffers[of]
        return buffer.matrix(weights, "f32", offset=4 * at), buffer.matrix(bias, "f32", offset=4 * (at + weights[0] * weights[1]))

    def record(self, graph):
        last = len(self.layers) - 1
        for i, ((w, b), _) in enumerate(self.layers):
            graph.linear(self.values[i], w, b, self.values[i + 1], activation="none" if i == last else "relu")
        graph.cross_entropy_backward(self.values[-1], self.labels, out=self.back[-1], scale=1 / self.labels.shape[0])
        for i in range(last, -1, -1):
            (w, _), (dw, db) = self.layers[i]
            graph.linear_backward(self.back[i + 1], self.values[i], w if i else None, dx=self.back[i] if i else None, dw=dw, dbias=db)
            if i:
                graph.elementwise("relu_gradient", self.back[i], self.values[i], self.back[i])


def training(context, devices, widths, rows):
    """A step of training of `rows` rows in all, as a graph."""
    replicas = [Replica(context, device, widths, rows // devices) for device in range(devices)]
    graph = context.graph()
    for each in replicas:
        each.record(graph)
    graph.all_reduce([each.gradients for each in replicas])
    for each in replicas:
        graph.sgd(each.parameters, each.gradients, each.momentum, rate=0.1, momentum=0.9)

    def run():
        for _ in range(STEPS):
            job = graph.run_async()
        job.result()

    return replicas, run


def check(context, replicas):
    found = [context.copy(np.empty(each.parameters.shape, np.float32), each.parameters) for each in replicas]
    assert np.isfinite(found[0]).all() and all((found[0] == each).all() for each in found), "the copies of the network differ"


def measure(context, runs, rounds):
    """The samples of each, in turn."""
    samples = [[] for _ in runs]
    for i in range(rounds + 2):
        for run, kept in zip(runs, samples):
            seconds = seconds_of(run, context)
            if i > 1:
                kept.append(seconds)
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0,1")
    parser.add_argument("--json", type=pathlib.Path, help="writes the record")
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    context, rows = sg.Context(options.device), []

    def keep(case, variant, samples, per, **keys):
        each = [sample / per for sample in samples]
        rows.append({"case": case, "variant": variant, "seconds": statistics.median(each), "samples": len(each), "min": min(each), "max": max(each), **keys})
        print(f"{case:48} {variant:24} {rows[-1]['seconds'] * 1e3:9.4f} ms", *(f"{key} {value * 1e3:9.4f} ms" for key, value in keys.items()), flush=True)
        return rows[-1]["seconds"]

    halves = [0] * (STAGES // 2) + [1] * (STAGES - STAGES // 2)
    pipelines = [streamed(context, devices) for devices in ([0] * STAGES, halves)]
    samples = measure(context, [run for _, run in pipelines], options.rounds)
    case = f"{STAGES} streamed stages of {WIDTH}, {ROWS} rows, f32"
    one, two = (keep(case, variant, of, BATCHES, predicted_seconds=pipeline.info.seconds_per_batch)
                for variant, of, (pipeline, _) in zip(("1 device", "2 devices"), samples, pipelines))  # fmt: skip
    print(f"  one device over two: {one / two:.3f}")
    for pipeline, _ in pipelines:
        pipeline.close()
    for name, widths, count in NETWORKS:
        half, both = (training(context, devices, widths, count * devices // 2) for devices in (1, 2))
        samples = measure(context, [half[1], both[1]], options.rounds)
        check(context, both[0])
        one = keep(f"training, {name}", "1 device, half the rows", samples[0], STEPS)
        two = keep(f"training, {name}", "2 devices", samples[1], STEPS)
        print(f"  two devices over one with half of the rows: {two / one:.3f}")
    if options.json:
        record = {"schema": "streamgemm-bench/1", "suite": "several_devices", "version": sg.__version__, "commit": options.commit,
                  "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                  "device": {"device": options.device, "name": context.device.description}, "rows": rows}  # fmt: skip
        options.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
