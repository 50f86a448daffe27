#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ranks of one host as an MPI program starts them, on one GPU: each multiplies square f64 matrices of its own for a time, on NumPy's own BLAS with
its share of the cores, and with the drop-in BLAS preloaded. What all of them compute a second, and that none fails.

usage: blas_ranks.py LIBSTREAMGEMM-BLAS.SO.1 [--ranks 1,4,8] [--n 4096] [--seconds 3] [--json FILE] [--commit COMMIT]
       libstreamgemm.so.1 must be where the loader looks
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


def measure(n, seconds):
    """Prints the products made within the time, and the drop-in BLAS's report."""
    import ctypes

    import numpy as np

    a, b = (np.random.default_rng(seed).standard_normal((n, n)) for seed in (1, 2))
    c = a @ b
    print("ready", flush=True)
    sys.stdin.readline()
    products, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        c = np.matmul(a, b)
        products += 1
    took = time.perf_counter() - began
    if not np.allclose(c[:1], a[:1] @ b):
        sys.exit("wrong")
    on_device = 0
    if os.environ.get("LD_PRELOAD"):
        blas, size = ctypes.CDLL(None), ctypes.c_uint64()
        blas.sg_blas_report.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]
        blas.sg_blas_report(None, 0, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        blas.sg_blas_report(text, size, None)
        on_device = sum(row["calls"].get("device", 0) for row in json.loads(text.value)["rows"])
    print(json.dumps({"products": products, "seconds": took, "on_device": on_device}), flush=True)


def run(ranks, options, environment):
    """The sum of the operations a second, and the calls that went to the device."""
    started = []
    for rank in range(ranks):
        own = {"SG_LOCAL_RANK": str(rank), "SG_LOCAL_RANKS": str(ranks), "OPENBLAS_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // ranks))}
        started.append(subprocess.Popen([sys.executable, __file__, "--measure", str(options.n), str(options.seconds)], env=os.environ | own | environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for each in started:
        if each.stdout.readline() != "ready\n":
            sys.exit("a rank failed")
    for each in started:
        each.stdin.write("go\n")
        each.stdin.flush()
    done = [json.loads(each.communicate()[0]) for each in started]
    if any(each.returncode for each in started):
        sys.exit("a rank failed")
    return sum(each["products"] * 2 * options.n**3 / each["seconds"] for each in done), [each["on_device"] for each in done]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--ranks", default="1,4,8")
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    options = parser.parse_args()
    rows = []
    for ranks in map(int, options.ranks.split(",")):
        for variant, environment in (("NumPy's own BLAS", {}), ("drop-in BLAS", {"LD_PRELOAD": str(options.library.resolve())})):
            rate, on_device = run(ranks, options, environment)
            rows.append({"case": f"{ranks} ranks, float64 {options.n}", "variant": variant, "seconds": 2 * options.n**3 / rate, "samples": ranks,
                         "flops": 2 * options.n**3, "calls_on_device": on_device})
            print(f"{rows[-1]['case']:24} {variant:18} {rate / 1e12:8.3f} Tflop/s, calls on the device: {on_device}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"schema": "streamgemm-bench/1", "suite": "blas_ranks", "commit": options.commit,
                                            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                                            "device": {"machine": platform.platform(), "cores": os.cpu_count()}, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(int(sys.argv[2]), float(sys.argv[3]))
    else:
        main()
