# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of this folder share: interleaved samples, the speed of the links, and the record."""

import argparse
import datetime
import json
import pathlib
import statistics
import time

import streamgemm as sg
import torch

REPEATS = 20


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=pathlib.Path, help="writes the record")
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    parser.add_argument("--rounds", type=int, default=5)
    return parser


def synchronize():
    """Waits for PyTorch's work on its CUDA device, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(work):
    """Seconds until the device has done the work, which may return a job."""
    synchronize()
    began = time.perf_counter()
    job = work()
    if isinstance(job, sg.Job):
        job.result()
    synchronize()
    return time.perf_counter() - began


def operands(*tensors):
    """The tensors as the library's calls take them quickest."""
    return [sg.Matrix(tensor) for tensor in tensors]


def difference(found, known):
    """The largest difference of two tensors, relative to the largest known value; NaN if one has a NaN."""
    known = known if known.is_floating_point() and known.element_size() == 8 else known.float()
    found = found.to(known)
    return ((found - known).abs().max() / known.abs().max()).item()


def near(found, known, what, tolerance=2e-2):
    error = difference(found.cuda(), known.cuda())
    assert error < tolerance, f"{what}: {error} of the largest value off"


def cuda_graph(work, repeats):
    """A CUDA graph of the work of PyTorch, `repeats` times; None if it cannot be captured."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            work()
    return graph.replay


def repeated(work, repeats=REPEATS):
    def run():
        for _ in range(repeats):
            latest = work()
        return latest

    return run


def recorded(context, record, repeats=REPEATS, stream=None):
    """A graph of the library with what `record` records, `repeats` times."""
    graph = context.graph()
    for _ in range(repeats):
        record(graph, stream)
    return graph.run_async


def best_link():
    """Bytes a second over the link from pinned memory, and to it: the quicker of some copies of 512 MiB, each direction alone."""
    host, device = torch.empty(1 << 29, dtype=torch.uint8).pin_memory(), torch.empty(1 << 29, dtype=torch.uint8, device="cuda")
    return tuple(
        len(host) / min(timed(lambda: to.copy_(of, non_blocking=True)) for _ in range(5))
        for to, of in ((device, host), (host, device))
    )


class Record:
    """Rows of a case and a variant, and the conditions they were measured in."""

    def __init__(self, suite, context, commit):
        self._content = {
            "schema": "streamgemm-bench/1", "suite": suite, "version": sg.__version__, "commit": commit,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "device": {"device": context.device.name, "name": context.device.description, "torch": torch.__version__,
                       "cudnn": torch.backends.cudnn.version()},
            "rows": [],
        }  # fmt: skip

    def measure(self, case, variants, rounds, repeats=1, ours="streamgemm", **keys):
        """Times the variants in turn. repeats: how often each call does the work. Returns the medians by name."""
        samples = {name: [] for name in variants}
        for i in range(rounds + 2):
            for name, work in variants.items():
                seconds = timed(work) / repeats
                if i > 1:  # the first load kernels, and measure for plans
                    samples[name].append(seconds)
        medians = {name: statistics.median(of) for name, of in samples.items()}
        peers = [name for name in medians if not name.startswith(ours)]
        best = min(peers, key=medians.get) if peers else None
        for name, of in samples.items():
            self.add(case, name, of, baseline=best if name == ours else None, **keys)
            ratio = f"{medians[name] / medians[best]:6.3f} x {best}" if best else ""
            bound = f", {medians[name] / keys['bound_seconds']:.3f} x the bound" if "bound_seconds" in keys else ""
            print(f"{case:44} {name:34} {medians[name] * 1e3:10.4f} ms {ratio}{bound}", flush=True)
        return medians

    def add(self, case, variant, samples, **keys):
        self._content["rows"].append({
            "case": case, "variant": variant, "seconds": statistics.median(samples), "samples": len(samples),
            "min": min(samples), "max": max(samples), **keys,
        })  # fmt: skip

    def note(self, **keys):
        self._content["device"].update(keys)

    def write(self, path):
        if path:
            path.write_text(json.dumps(self._content, indent=2) + "\n")
