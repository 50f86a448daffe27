#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blocking GEMMs of NumPy arrays on the cpu, small ones first, beside NumPy's matmul: both in one process, alternately, on the
same OpenBLAS where NumPy uses the system's. Prints a table, and a record with --json.

usage: numpy_calls.py [--json FILE [--commit COMMIT]] [--rounds N]
"""
import argparse
import statistics
from time import perf_counter_ns

import cpu_record
import numpy as np
import streamgemm as sg

SHAPES = [(n, n, n) for n in (4, 8, 16, 32, 64, 128, 256, 512)]
VECTORS = [(100, 1, 100), (1, 100, 100), (1000, 1, 1000), (1, 1000, 1000)]


def microseconds(call, calls):
    start = perf_counter_ns()
    for _ in range(calls):
        call()
    return (perf_counter_ns() - start) * 1e-3 / calls


def measure(context, shape, dtype, rounds):
    m, n, k = shape
    a, b = np.ones((m, k), dtype), np.ones((k, n), dtype)
    c, d = np.empty((m, n), dtype), np.empty((m, n), dtype)
    ways = {
        "numpy": lambda: np.matmul(a, b, out=c),
        "numpy, new result": lambda: a @ b,
        "streamgemm": lambda: context.gemm(a, b, d),
        "streamgemm, new result": lambda: context.matmul(a, b),
        "streamgemm, job and result": lambda: context.gemm_async(a, b, d).result(),
    }
    calls = max(1, min(2000, int(2e7 / (2 * m * n * k))))
    samples = {name: [] for name in ways}
    for _ in range(rounds):
        for name, call in ways.items():
            microseconds(call, calls)  # caches, cores and threads as in a row of such calls
            samples[name].append(microseconds(call, calls))
    assert (c == d).all()
    return {name: statistics.median(values) for name, values in samples.items()}


def main():
    parser = argparse.ArgumentParser()
    cpu_record.add_arguments(parser, rounds=7)
    options = parser.parse_args()
    rows = []
    with sg.Context("cpu") as context:
        cases = [(shape, dtype) for dtype in ("float32", "float64") for shape in SHAPES]
        cases += [(shape, "float64") for shape in VECTORS]
        for shape, dtype in cases:
            medians = measure(context, shape, dtype, options.rounds)
            name = f"{dtype} {'x'.join(map(str, shape))}"
            print(f"{name:24}" + "".join(f"  {way} {us:9.2f}" for way, us in medians.items()), flush=True)
            rows += [(name, way, us) for way, us in medians.items()]
    if options.json:
        cpu_record.write(options.json, "numpy calls", options.commit, rows)


if __name__ == "__main__":
    main()
