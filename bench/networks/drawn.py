#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers of drawn forms beside PyTorch, interleaved in one process; or, with --values, their results beside those in f64.

The forms come from the tables of layers of some networks (drawn_forms.py), in f32, f16 and bf16, forward and backward, by a seed that
the record keeps. Ratio graph: a recorded graph over the faster of PyTorch's eager calls and its CUDA graph. Ratio calls: calls of the
library in a row over PyTorch's eager calls. PyTorch's attention backward has its forward pass, too; its norm backward has the mean and
the deviation of the forward pass, which the library computes. A form that raises or whose values are off is listed as FAILED.

usage: drawn.py [--device DEVICE] [--forms N] [--seed N] [--values] [--kinds linear,attention,...] [--json FILE] [--commit COMMIT]
"""

import argparse
import contextlib
import itertools
import math
import os
import pathlib
import random
import statistics
import sys
import time

import drawn_forms
import drawn_layers
import record as records
import streamgemm as sg
import torch

SAMPLE_SECONDS, MOST_REPEATS, MOST_RUNS, MOST_ROUNDS = 2e-3, 64, 16, 9
OURS, CALLS, EAGER, GRAPH = "streamgemm", "streamgemm, calls", "PyTorch", "PyTorch, CUDA graph"
TOLERANCE = {"bf16": 1.5e-2, "f16": 2e-3, "f32": 2e-5}  # of the largest value, from f64; twice that from PyTorch in the same type
# Floating-point operations of the largest form in bf16 (an eighth of them in f32), and bytes of its operands.
LIMITS = {"cuda": (4e12, 4 << 30), "cpu": (2e8, 16 << 20), "cuda values": (2e11, 1 << 30), "cpu values": (1e8, 8 << 20),
          "sim values": (2e7, 2 << 20)}  # fmt: skip


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0", help="cuda:0, cpu, or with --values a simulated one; the last two draw smaller forms")
    parser.add_argument("--forms", type=int, default=300)
    parser.add_argument("--seed", type=int, help="of forms and values; by default another each time, which is printed")
    parser.add_argument("--kinds", type=lambda text: text.split(","), help="only these: " + ", ".join(drawn_forms.KINDS))
    parser.add_argument("--values", action="store_true", help="measures nothing, compares the results with f64")
    parser.add_argument("--seconds", type=float, default=0.25, help="of a form, in samples")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds in all, after which no form begins")
    parser.add_argument("--json", type=pathlib.Path, help="writes the record")
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    return parser.parse_args()


class Placed:
    """The operands of a layer as the library takes them: tensors in place, or copies in the memory of a simulated device."""

    def __init__(self, context, layer):
        self._context, self._layer = context, layer
        tensors = {name: layer.in_memory_order(tensor) for name, tensor in (layer.inputs | layer.outputs).items()}
        self._in_place = context.device.unified_memory or next(iter(tensors.values())).is_cuda
        self.operands = {name: self._operand(tensor) for name, tensor in tensors.items()}

    def _operand(self, tensor):
        if self._in_place:
            return sg.Matrix(tensor)
        flat = sg.Matrix(self._flat(tensor))
        made = self._context.buffer(tensor.element_size() * flat.shape[0]).matrix(flat.shape, flat.dtype)
        self._context.copy(made, flat)
        return made.part(tuple(tensor.shape), [stride * tensor.element_size() for stride in tensor.stride()])

    @staticmethod
    def _flat(tensor):
        """Its memory, which has no gaps."""
        return torch.as_strided(tensor, (tensor.numel(),), (1,))

    def forget(self):
        """The results become NaN."""
        for name, tensor in self._layer.outputs.items():
            tensor.fill_(math.nan)
            if not self._in_place:
                self._copy(name, tensor, to_device=True)
        records.synchronize()

    def results(self):
        if not self._in_place:
            for name, tensor in self._layer.outputs.items():
                self._copy(name, tensor, to_device=False)
        return self._layer.outputs

    def _copy(self, name, tensor, to_device):
        operand, flat = self.operands[name], sg.Matrix(self._flat(self._layer.in_memory_order(tensor)))
        there = operand.part(flat.shape)
        self._context.copy(*((there, flat) if to_device else (flat, there)))


def checked(found, known, tolerance):
    """The largest difference of the results, each relative to its largest value."""
    differences = {name: records.difference(result, expected) for (name, result), expected in zip(found.items(), known)}
    for name, each in differences.items():
        if not each < tolerance:
            raise AssertionError(f"{name} differs by {each:.3g} of the largest value")
    return max(differences.values())


def reference(layer):
    """The results by PyTorch in f64."""
    wide = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in layer.inputs.items()}
    return layer.by_torch(layer.prepare(wide))


def peer_of(layer):
    """PyTorch's calls and their results; neither where PyTorch has no such operation in the form's type."""
    try:
        tensors = layer.prepare(layer.inputs)
        return (lambda: layer.by_torch(tensors)), layer.by_torch(tensors)
    except RuntimeError as problem:
        print(f"    without a peer: {str(problem).splitlines()[0]}")
        return None, None


def ours_of(context, layer, form, by_torch=None):
    """The calls of the library, and what records them, after the results of both are checked; and the largest difference.

    by_torch: results by PyTorch in the form's type, which are compared first. Where they differ, and without them, f64 decides.
    """
    placed = Placed(context, layer)

    def calls(suffix):
        return layer.ours(lambda name, *given, **how: getattr(context, name + suffix)(*given, **how), placed.operands)

    def record(graph, stream):
        return layer.ours(lambda name, *given, **how: getattr(graph, name)(*given, **how), placed.operands)

    def compare():
        if by_torch:
            with contextlib.suppress(AssertionError):
                return checked(placed.results(), by_torch, 2 * TOLERANCE[form["dtype"]])
        return checked(placed.results(), reference(layer), TOLERANCE[form["dtype"]])

    placed.forget()
    calls("")
    difference = compare()
    placed.forget()
    records.recorded(context, record, 1)().result()
    return (lambda: calls("_async")), record, max(difference, compare())


def captured(work, repeats):
    try:
        return records.cuda_graph(work, repeats)
    except RuntimeError as problem:
        print(f"    without a CUDA graph: {str(problem).splitlines()[0]}")
        return None


def samples_of(variants, seconds):
    """Seconds of samples of each variant, in turn; a sample lasts some milliseconds."""
    runs = {}
    for name, work in variants.items():
        records.timed(work)  # the first one loads kernels
        runs[name] = min(MOST_RUNS, max(1, math.ceil(SAMPLE_SECONDS / records.timed(work))))
    samples, began = {name: [] for name in variants}, time.perf_counter()
    for done in itertools.count():
        if done == MOST_ROUNDS or (done >= 3 and time.perf_counter() - began > seconds):
            return samples
        for name, work in variants.items():
            samples[name].append(records.timed(records.repeated(work, runs[name])) / runs[name])


def measured(context, record, form, options):
    """Times a form, after its values are checked; the ratios and the medians."""
    cuda = options.device.startswith("cuda")
    layer = drawn_layers.layer(form, "cuda" if cuda else "cpu")
    eager, by_torch = peer_of(layer)
    records.synchronize()
    calls, recording, difference = ours_of(context, layer, form, by_torch if cuda else None)  # on the cpu its sums may be in bf16
    del by_torch
    once = max(records.timed(work) for work in (calls, eager) if work)
    repeats = min(MOST_REPEATS, max(1, math.ceil(SAMPLE_SECONDS / once)))
    variants = {OURS: records.recorded(context, recording, repeats), CALLS: records.repeated(calls, repeats),
                EAGER: eager and records.repeated(eager, repeats), GRAPH: captured(eager, repeats) if cuda and eager else None}  # fmt: skip
    samples = samples_of({name: work for name, work in variants.items() if work}, options.seconds)
    medians = {}
    for name, of in samples.items():
        of = [each / repeats for each in of]
        medians[name] = statistics.median(of)
        record.add(drawn_forms.text(form), name, of, form=form, difference=difference)
    peers = {name: medians[name] for name in (EAGER, GRAPH) if name in medians}
    ratios = {"graph": medians[OURS] / min(peers.values()), "calls": medians[CALLS] / medians[EAGER]} if peers else {}
    return medians, ratios


def compared(context, record, form, options):
    """Compares the values of a form with f64: the largest difference."""
    layer = drawn_layers.layer(form, "cuda" if options.device.startswith("cuda") else "cpu")
    records.synchronize()
    return ours_of(context, layer, form)[2]


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(each) for each in values))


def print_table(done):
    """done: (form, medians, ratios) of each form that was measured beside a peer."""
    for key in ("kind", "dtype"):
        print(f"\n{key:20} forms  graph: mean  worst   calls: mean  worst")
        for value in [*dict.fromkeys(sorted(form[key] for form, _, _ in done)), "all"]:
            of = [ratios for form, _, ratios in done if value in (form[key], "all")]
            both = [(geometric_mean([each[way] for each in of]), max(each[way] for each in of)) for way in ("graph", "calls")]
            print(f"{value:20} {len(of):5}  {both[0][0]:11.2f} {both[0][1]:6.2f}  {both[1][0]:11.2f} {both[1][1]:6.2f}")
    print("\nthe 25 worst graphs, in microseconds: " + "; ".join((OURS, CALLS, EAGER, GRAPH)))
    for form, medians, ratios in sorted(done, key=lambda each: -each[2]["graph"])[:25]:
        print(f"{ratios['graph']:6.2f} {ratios['calls']:6.2f} {times(medians)}  {drawn_forms.text(form)}")


def times(medians):
    return " ".join(f"{medians[name] * 1e6:9.1f}" if name in medians else f"{'-':>9}" for name in (OURS, CALLS, EAGER, GRAPH))


def libraries():
    """How the process finds cuDNN, which decides how the library computes convolutions."""
    with open("/proc/self/maps") as maps:
        loaded = "libcudnn" in maps.read()
    return {"SG_CUDA_CUDNN": os.environ.get("SG_CUDA_CUDNN", ""), "cudnn_loaded": loaded}


def free_memory():
    """Frees the device memory that PyTorch caches."""
    if torch.cuda.is_available() and torch.cuda.memory_reserved() > 16 << 30:
        torch.cuda.empty_cache()


def run(context, options):
    record, device = records.Record("drawn", context, options.commit), options.device.split(":")[0]
    draw = random.Random(options.seed)
    most = LIMITS[device + (" values" if options.values else "")]
    done, failed, began = [], [], time.monotonic()
    record.note(seed=options.seed, forms=options.forms, **libraries())
    for number, form in enumerate(drawn_forms.forms(draw, options.forms, *most, device != "cuda", options.kinds)):
        if time.monotonic() - began > options.limit:
            print(f"stopped after {number} forms")
            break
        torch.manual_seed(options.seed + number)
        text = drawn_forms.text(form)
        try:
            if options.values:
                difference = compared(context, record, form, options)
                done.append((form, difference))
                print(f"{difference:9.2e}  {text}", flush=True)
            else:
                medians, ratios = measured(context, record, form, options)
                done += [(form, medians, ratios)] if ratios else []
                print(" ".join(f"{ratios.get(way, math.nan):6.2f}" for way in ("graph", "calls")), f"{times(medians)}  {text}", flush=True)
        except Exception as problem:  # the form fails; the next one may not
            failed.append({"form": form, "message": f"{type(problem).__name__}: {problem}"})
            print(f"FAILED  {text}: {failed[-1]['message']}", flush=True)
        free_memory()
        if number % 20 == 19:
            record.write(options.json)
    took = time.monotonic() - began
    record.note(seconds=took, failed=failed, **libraries())
    if options.values:
        record.note(values=[{"form": form, "difference": difference} for form, difference in done])
    elif done:
        print_table(done)
    record.write(options.json)
    print(f"\nseed {options.seed}; {len(done)} forms in {took:.0f} s; {libraries()}; FAILED: {len(failed)}")
    for each in failed:
        print(f"FAILED  {drawn_forms.text(each['form'])}: {each['message']}")
    return len(failed)


def main():
    options = arguments()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    if options.device.startswith("sim") and not options.values:
        sys.exit("a simulated device has no times to compare: give --values")
    print(f"seed {options.seed}; device {options.device}; PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # the library computes exactly, too
    with torch.no_grad(), drawn_layers.best_attention(), sg.Context(options.device) as context:
        sys.exit(1 if run(context, options) else 0)


if __name__ == "__main__":
    main()
