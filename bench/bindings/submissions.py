#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one submission of each operation costs its thread in Python, once its plan is cached, beside a GEMM's: the operations of
`streamgemm bench submit`, on NumPy arrays. Prints a table, and a record with --json.

usage: submissions.py [--json FILE [--commit COMMIT]] [--rounds N]

The calls wait behind one that the only worker is busy with, so that nothing but the submission is timed.
"""
import argparse
import statistics
from time import perf_counter_ns

import cpu_record
import numpy as np
import streamgemm as sg

ROWS = COLS = 64
CALLS, GATE = 200, 1024


def array(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def submissions(context, stream):
    """By name: a function that submits the operation once."""
    x, w, out = array(ROWS, COLS), array(COLS, COLS), array(ROWS, COLS)
    gamma, beta, indices = array(COLS), array(COLS), np.zeros(ROWS, np.int32)
    half = array(ROWS, COLS, dtype=np.float16)
    q, k, v, o, d_out, dq, dk, dv = (array(1, 4, 64, 64, dtype=np.float16) for _ in range(8))
    image, kernel, image_out = array(2, 16, 8, 8), array(16, 16, 3, 3), array(2, 16, 8, 8)
    sequence, states, w_ih, w_hh = array(16, 1, 16), array(16, 1, 16), array(64, 16), array(64, 16)
    hn, cn = array(1, 16), array(1, 16)
    dx, dw, dbias = array(ROWS, COLS), array(COLS, COLS), array(COLS)
    on = {"stream": stream}
    return {
        "gemm": lambda: context.gemm_async(x, w, out, **on),
        "axpby": lambda: context.axpby_async(x, out, **on),
        "gelu": lambda: context.elementwise_async("gelu", x, out=out, **on),
        "softmax": lambda: context.softmax_async(x, out, **on),
        "layer norm": lambda: context.layer_norm_async(x, gamma, beta, out, **on),
        "convert": lambda: context.convert_async(x, half, **on),
        "gather": lambda: context.gather_async(x, indices, out, **on),
        "attention": lambda: context.attention_async(q, k, v, o, **on),
        "attention backward": lambda: context.attention_backward_async(q, k, v, d_out, dq=dq, dk=dk, dv=dv, **on),
        "conv2d": lambda: context.conv2d_async(image, kernel, out=image_out, padding=1, **on),
        "lstm of 16 steps": lambda: context.lstm_async(sequence, w_ih, w_hh, out=states, hn=hn, cn=cn, **on),
        "linear": lambda: context.linear_async(x, w, beta, out, **on),
        "linear backward": lambda: context.linear_backward_async(out, x, w, dx=dx, dw=dw, dbias=dbias, **on),
    }


def microseconds(context, stream, submit):
    """The median of calls behind one that takes some milliseconds."""
    gate = np.ones((GATE, GATE))
    held = context.gemm_async(gate, gate, np.empty_like(gate), stream=stream)
    costs, jobs = [], []
    for _ in range(CALLS):
        before = perf_counter_ns()
        job = submit()
        costs.append(perf_counter_ns() - before)
        jobs.append(job)
    was_held = not held.done()
    for job in jobs:
        job.result()
    assert was_held, "the worker was not busy for long enough"
    return statistics.median(costs) * 1e-3


def main():
    parser = argparse.ArgumentParser()
    cpu_record.add_arguments(parser, rounds=7)
    options = parser.parse_args()
    with sg.Context("cpu", compute_lanes=1) as context:  # the caller keeps a core for itself
        stream = context.stream()
        calls = submissions(context, stream)
        samples = {name: [] for name in calls}
        for submit in calls.values():
            submit().result()
        for _ in range(options.rounds):
            for name, submit in calls.items():
                samples[name].append(microseconds(context, stream, submit))
    medians = {name: statistics.median(values) for name, values in samples.items()}
    for name, us in medians.items():
        print(f"{name:20} {us:7.2f} us {us / medians['gemm']:6.2f} of a GEMM's")
    if options.json:
        rows = [("one submission", name, us) for name, us in medians.items()]
        cpu_record.write(options.json, "python submissions", options.commit, rows)


if __name__ == "__main__":
    main()
