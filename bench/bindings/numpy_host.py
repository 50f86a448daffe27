#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pageable NumPy arrays multiplied on a CUDA device by the package, beside PyTorch doing the same job: NumPy arrays in,
a NumPy array out. Interleaved, in one process. usage: numpy_host.py [RECORD.json COMMIT]"""

import datetime
import json
import statistics
import sys
import time

import numpy as np
import streamgemm as sg
import torch

ROUNDS = 5


def check(a, b, c, unit):
    """Some elements against f64: the error of a sum of k products is a few units of |a||b|."""
    rows, columns = slice(0, None, a.shape[0] // 16), slice(0, None, b.shape[1] // 16)
    left, right = a[rows].astype(np.float64), b[:, columns].astype(np.float64)
    error = np.abs(c[rows, columns] - left @ right) / (np.abs(left) @ np.abs(right))
    assert error.max() < unit, error.max()


def by_torch(a, b, c):
    result = torch.from_numpy(a).to("cuda") @ torch.from_numpy(b).to("cuda")
    torch.from_numpy(c).copy_(result)


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main():
    context = sg.Context("cuda:0")
    values = np.random.default_rng(1)
    rows = []
    for n in (8192, 16384):
        a, b = (values.random((n, n), np.float32) - np.float32(0.5) for _ in range(2))
        c = np.zeros((n, n), np.float32)
        for compute in ("exact", "tf32"):
            torch.backends.cuda.matmul.allow_tf32 = compute == "tf32"
            variants = {
                "streamgemm": lambda: context.gemm(a, b, c, compute=compute),
                "PyTorch": lambda: by_torch(a, b, c),
            }
            seconds = {name: [] for name in variants}
            for _ in range(ROUNDS + 1):
                for name, work in variants.items():
                    c[...] = np.nan
                    seconds[name].append(timed(work))
                    check(a, b, c, 1e-5 if compute == "exact" else 1e-3)
            plan = context.plan(a, b, c, compute=compute).prediction
            for name, taken in seconds.items():
                taken = taken[1:]  # the first warms up
                rows.append(
                    {
                        "case": f"{'f32' if compute == 'exact' else compute} {n}^3 NumPy",
                        "variant": name,
                        "seconds": statistics.median(taken),
                        "samples": len(taken),
                        "min": min(taken),
                        "max": max(taken),
                        "bound_seconds": plan.bound_seconds,
                    }
                )
                print(
                    f"{rows[-1]['case']:22} {name:12} {rows[-1]['seconds'] * 1e3:9.1f} ms "
                    f"({min(taken) * 1e3:.1f} to {max(taken) * 1e3:.1f}), bound {plan.bound_seconds * 1e3:.1f}",
                    flush=True,
                )
    record = {
        "schema": "streamgemm-bench/1",
        "suite": "python",
        "version": sg.__version__,
        "commit": sys.argv[2] if len(sys.argv) > 2 else "unknown",
        "date": datetime.date.today().isoformat(),
        "device": {"name": context.device.description, "torch": torch.__version__, "numpy": np.__version__},
        "rows": rows,
    }
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="ascii") as file:
            json.dump(record, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
