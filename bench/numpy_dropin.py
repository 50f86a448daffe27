#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy's A @ B of square matrices, or with --linalg its solve, inv, cholesky, qr and eigh, on its own BLAS and with the drop-in BLAS preloaded,
in two processes one after the other.

usage: numpy_dropin.py LIBSTREAMGEMM-BLAS.SO.1 [--linalg] [--sizes N,...] [--json FILE] [--commit COMMIT]    libstreamgemm.so.1 must be where the loader looks
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

SIZES = (64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192)
LINALG_SIZES = (1024, 2048, 4096, 8192)
SLOW = 5  # seconds: a call that takes longer is measured once


def median_of(call, seconds):
    """The median time of a call, its number, and its latest result: after a first one, for so many seconds, at least twice;
    or the time of the first, if that is slow."""
    began = time.perf_counter()
    result = call()
    if (first := time.perf_counter() - began) > SLOW:
        return first, 1, result
    samples, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples) < 2:
        began = time.perf_counter()
        result = call()
        samples.append(time.perf_counter() - began)
    samples.sort()
    return samples[len(samples) // 2], len(samples), result


def measure_linalg(sizes):
    """Prints the median seconds of each function and size; the results are checked."""
    import numpy as np

    rows = []
    for n in sizes or LINALG_SIZES:
        a = np.random.default_rng(1).standard_normal((n, n))
        b = np.random.default_rng(2).standard_normal((n, 1))
        definite = a @ a.T + n * np.eye(n)
        symmetric = a + a.T
        size = abs(definite).max()
        calls = {"solve": (lambda: np.linalg.solve(a, b), lambda x: abs(a @ x - b).max() < 1e-6 * n),
                 "inv": (lambda: np.linalg.inv(a), lambda x: abs(a @ x[:, :1] - np.eye(n)[:, :1]).max() < 1e-6 * n),
                 "cholesky": (lambda: np.linalg.cholesky(definite), lambda x: abs(x @ x.T[:, :1] - definite[:, :1]).max() < 1e-10 * size),
                 "qr": (lambda: np.linalg.qr(a), lambda x: abs(x[0] @ x[1][:, :1] - a[:, :1]).max() < 1e-9 * n),
                 "eigh": (lambda: np.linalg.eigh(symmetric), lambda x: abs(symmetric @ x[1][:, :1] - x[1][:, :1] * x[0][:1]).max() < 1e-9 * n)}
        for name, (call, is_right) in calls.items():
            seconds, samples, result = median_of(call, 0.5)
            if not is_right(result):
                sys.exit(f"{name} {n}: wrong")
            rows.append({"case": f"linalg.{name} float64 {n}", "seconds": seconds, "samples": samples})
    json.dump({"rows": rows, "numpy": np.__version__}, sys.stdout)


def measure(sizes):
    """Prints the median seconds of each type and size."""
    import numpy as np

    rows = []
    for dtype in (np.float64, np.float32):
        for n in sizes or SIZES:
            a = np.random.default_rng(1).standard_normal((n, n)).astype(dtype)
            b = a.T.copy()
            seconds, samples, _ = median_of(lambda: a @ b, 0.25 if n < 4096 else 0.7)
            rows.append({"case": f"A @ B {np.dtype(dtype).name} {n}", "seconds": seconds, "samples": samples})
    json.dump({"rows": rows, "numpy": np.__version__}, sys.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--linalg", action="store_true", help="functions of numpy.linalg")
    parser.add_argument("--sizes", default="", help="rows and columns, with commas between")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    options = parser.parse_args()
    found = {}
    for variant, preload in (("NumPy's own BLAS", None), ("drop-in BLAS", str(options.library.resolve()))):
        environment = dict(os.environ) | ({"LD_PRELOAD": preload} if preload else {})
        command = [sys.executable, __file__, "--measure-linalg" if options.linalg else "--measure", *filter(None, options.sizes.split(","))]
        found[variant] = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)
    for own, dropin in zip(*(each["rows"] for each in found.values())):
        print(f"{own['case']:22} {own['seconds'] * 1e3:10.3f} ms {dropin['seconds'] * 1e3:10.3f} ms {dropin['seconds'] / own['seconds']:7.3f}")
    if options.json:
        rows = [row | {"variant": variant} for variant, each in found.items() for row in each["rows"]]
        device = {"machine": platform.platform(), "cores": os.cpu_count(), "numpy": found["drop-in BLAS"]["numpy"]}
        options.json.write_text(json.dumps({"schema": "streamgemm-bench/1", "suite": "numpy_linalg" if options.linalg else "numpy_dropin", "commit": options.commit,
                                            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                                            "device": device, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    measures = {"--measure": measure, "--measure-linalg": measure_linalg}
    if len(sys.argv) > 1 and sys.argv[1] in measures:
        measures[sys.argv[1]]([int(size) for size in sys.argv[2:]])
    else:
        main()
