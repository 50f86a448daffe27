#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of one asynchronous GEMM of 4 x 4 matrices in Python: overhead.c in another language. Prints one line of
JSON.

usage: overhead.py CALLS
"""

import json
import statistics
import sys
from time import perf_counter_ns

import numpy as np
import streamgemm as sg

N, BLOCK, GATE, WARM_UP, PIPELINE = 4, 1000, 512, 20, 64

calls = int(sys.argv[1]) // BLOCK * BLOCK if len(sys.argv) > 1 else 100000
context = sg.Context("cpu", compute_lanes=1)  # the caller keeps a core for itself
stream = context.stream()
a, b = np.ones((N, N), np.float32), np.ones((N, N), np.float32)
results = [np.empty((N, N), np.float32) for _ in range(BLOCK)]
gate_in, gate_out = np.ones((GATE, GATE)), np.empty((GATE, GATE))


def run_behind_gate(blocks):
    """Calls that the worker cannot start yet, behind a GEMM of some milliseconds: only the submission is
    timed."""
    costs = []
    for _ in range(blocks):
        gate = context.gemm_async(gate_in, gate_in, gate_out, stream=stream)
        jobs = []
        for c in results:
            before = perf_counter_ns()
            job = context.gemm_async(a, b, c, stream=stream)
            costs.append(perf_counter_ns() - before)
            jobs.append(job)
        gate.result()
        for job in jobs:
            job.result()
    return costs


def run_pipelined(count):
    """Calls that run at once, some in flight together. Nanoseconds for each, start to end."""
    start = perf_counter_ns()
    for _ in range(0, count, PIPELINE):
        for job in [context.gemm_async(a, b, c) for c in results[:PIPELINE]]:
            job.result()
    return (perf_counter_ns() - start) / count


def timed(call, count):
    """Calls that are waited for one by one."""
    costs = []
    for _ in range(count):
        before = perf_counter_ns()
        call()
        costs.append(perf_counter_ns() - before)
    return statistics.median(costs)


run_behind_gate(WARM_UP)
figures = {
    "call_us": statistics.median(run_behind_gate(calls // BLOCK)),
    "pipelined_us": run_pipelined(calls // PIPELINE * PIPELINE),
    "lone_us": timed(lambda: context.gemm_async(a, b, results[0]).result(), calls // 10),
    "blocking_us": timed(lambda: context.gemm(a, b, results[0]), calls // 10),
}
assert all((c == N).all() for c in results)
print(json.dumps({"language": "Python", "calls": calls, **{name: round(ns * 1e-3, 3) for name, ns in figures.items()}}))
