#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What further devices gain: a pipeline whose weights are streamed, and data-parallel training, on all of a context's devices beside one.

Pipeline: eight layers of 4096 in f32, whose weights of 64 MiB each come from pinned memory for every batch of 64 rows. The ratios are
the time of a batch with all stages on device 0 over that with equal groups of stages on all devices, and over that with all stages on
each device (replicas), whose batches are pushed one by one, or one for each device at once: these share one stream of weights.
Training: an MLP's forward pass, its gradients, their sum over the devices and a step of SGD, as one recorded graph. The ratio is the time
of a step on all devices over that on one with its share of the rows.

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
NETWORKS = (("digits: 64, 32, 10", (64, 32, 10), 648), ("1024, 4096, 4096, 1000", (1024, 4096, 4096, 1000), 8192))  # rows of a device
STEPS = 20


def seconds_of(work, context):
    context.synchronize()
    began = time.perf_counter()
    work()
    context.synchronize()
    return time.perf_counter() - began


def streamed(context, devices, at_once=1):
    """A pipeline whose stages are on these devices, or all on all (None); its values are checked."""
    random = np.random.default_rng(3)
    weights = []
    for _ in range(STAGES):
        weights.append(context.pinned_empty((WIDTH, WIDTH), "f32"))
        weights[-1][...] = random.standard_normal((WIDTH, WIDTH), np.float32) * WIDTH**-0.5
    x, *outs = (context.pinned_empty((ROWS, WIDTH), "f32") for _ in range(1 + at_once))
    x[...] = random.standard_normal((ROWS, WIDTH), np.float32)
    pipeline = context.pipeline((ROWS, WIDTH), "f32", batches_in_flight=BATCHES, replicas="none" if devices else "batches")
    for device, w in zip(devices or [None] * STAGES, weights):
        stage = pipeline.stage((ROWS, WIDTH), weights=[w], place="streamed", device=device)
        stage.gemm(stage.input, stage.weights[0], stage.output, activation="relu")
    pipeline.push_batches([x] * at_once, outs)
    known = x
    for w in weights:
        known = np.maximum(known @ w, 0)
    for out in outs:
        assert abs(out - known).max() < 1e-3 * abs(known).max()
    pushed, targets = [sg.Matrix(x)] * at_once, [sg.Matrix(out) for out in outs]

    def run():
        for _ in range(0, BATCHES, at_once):
            job = pipeline.push_async(pushed[0], targets[0]) if at_once == 1 else pipeline.push_batches_async(pushed, targets)
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

    count = len(context.devices)
    variants = {
        "1 device": streamed(context, [0] * STAGES),
        f"{count} devices": streamed(context, [s * count // STAGES for s in range(STAGES)]),
        f"{count} replicas, one by one": streamed(context, None),
        f"{count} replicas, at once": streamed(context, None, count),
    }
    samples = measure(context, [run for _, run in variants.values()], options.rounds)
    case = f"{STAGES} streamed stages of {WIDTH}, {ROWS} rows, f32"
    times = {}
    for (variant, (pipeline, _)), of in zip(variants.items(), samples):
        # The prediction for replicas is that of batches pushed at once.
        keys = {} if "one by one" in variant else {"predicted_seconds": pipeline.info.seconds_per_batch}
        at_once = count if "at once" in variant else 1
        times[variant] = keep(case, variant, of, -(-BATCHES // at_once) * at_once, **keys)
    for variant, seconds in times.items():
        print(f"  one device over {variant}: {times['1 device'] / seconds:.3f}")
    for pipeline, _ in variants.values():
        pipeline.close()
    for name, widths, rows_of_one in NETWORKS:
        name += f", {rows_of_one} rows a device"
        alone, together = (training(context, devices, widths, rows_of_one * devices) for devices in (1, count))
        samples = measure(context, [alone[1], together[1]], options.rounds)
        check(context, together[0])
        one = keep(f"training, {name}", "1 device, its rows", samples[0], STEPS)
        all_of_them = keep(f"training, {name}", f"{count} devices", samples[1], STEPS)
        print(f"  {count} devices over one with its share of the rows: {all_of_them / one:.3f}")
    if options.json:
        record = {"schema": "streamgemm-bench/1", "suite": "several_devices", "version": sg.__version__, "commit": options.commit,
                  "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                  "device": {"device": options.device, "name": context.device.description}, "rows": rows}  # fmt: skip
        options.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
