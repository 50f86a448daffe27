#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What residency of the drop-in BLAS gains and costs: the times of the first to the last of 100 uses of a product whose large factor is 1.8 GB,
32 x 93536 times 93536 x 2400 in f64, in each mode, when the factor stays the same, when all of it changes before each use, and when one
column in a hundred does. Each mode and pattern runs in a process of its own.

usage: blas_residency.py LIBSTREAMGEMM-BLAS.SO.1 [--json FILE] [--commit COMMIT] [--uses 100] [--k 93536] [--modes off,hash,auto,verify]
       libstreamgemm.so.1 must be where the loader looks; SG_DEVICE and others as for any program
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

M, N = 32, 2400
PATTERNS = ("unchanged", "all changes", "a hundredth changes")


def measure(pattern, uses, k):
    """Prints the seconds of each use, and the drop-in BLAS's report."""
    import ctypes

    import numpy as np

    a, b, c = np.ones((M, k)), np.ones((k, N)), np.empty((M, N))
    a *= np.arange(1, M + 1)[:, None]
    np.ones((M, k // 4)) @ np.ones((k // 4, N))  # opens the device
    seconds = []
    for use in range(uses):
        if pattern == "all changes":
            b += 1
        elif pattern == "a hundredth changes":
            rows = k // 100
            b[use % 100 * rows : (use % 100 + 1) * rows] += 1
        began = time.perf_counter()
        np.matmul(a, b, out=c)
        seconds.append(time.perf_counter() - began)
        wanted = b.sum(axis=0) if use in (0, 1, 2, uses - 1) else None
        if wanted is not None and not (np.allclose(c[0], wanted) and np.allclose(c[-1], M * wanted)):
            sys.exit(f"{pattern}, use {use + 1}: wrong")
    blas = ctypes.CDLL(None)
    size = ctypes.c_uint64()
    blas.sg_blas_report.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]
    blas.sg_blas_report(None, 0, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    blas.sg_blas_report(text, size, None)
    report = json.loads(text.value)
    json.dump({"seconds": seconds, "residency": report["residency"], "device": report["device"], "calls": [row["calls"] for row in report["rows"]]}, sys.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    parser.add_argument("--uses", type=int, default=100)
    parser.add_argument("--k", type=int, default=93536)
    parser.add_argument("--modes", default="off,hash,auto,verify")
    options = parser.parse_args()
    rows, without, device = [], {}, ""
    for pattern in PATTERNS:
        for mode in options.modes.split(","):
            uses = min(options.uses, 10) if mode == "verify" else options.uses
            environment = os.environ | {"LD_PRELOAD": str(options.library.resolve()), "SG_BLAS_RESIDENCY": mode, "SG_BLAS_MIN": "0", "SG_BLAS_REPORT": "/dev/null"}
            command = [sys.executable, __file__, "--measure", pattern, str(uses), str(options.k)]
            found = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
            device, seconds = found["device"], found["seconds"]
            total = sum(seconds)
            if mode == "off":
                without[pattern] = total
            middle = sorted(seconds[3:] or seconds)[len(seconds[3:] or seconds) // 2]
            ratio = total / without[pattern] if pattern in without and uses == options.uses else None
            rows.append({"case": f"{M} x {N} x {options.k} f64, {pattern}", "variant": mode, "seconds": middle, "samples": len(seconds), "each_use": seconds,
                         "all_uses_beside_off": ratio, "residency": found["residency"]})
            first = " ".join(f"{each * 1e3:8.2f}" for each in seconds[:4])
            print(f"{pattern:20} {mode:7} uses 1 to 4: {first} ms, later {middle * 1e3:8.2f} ms" + (f", all beside off {ratio:.3f}" if ratio else ""), flush=True)
    if options.json:
        record = {"schema": "streamgemm-bench/1", "suite": "blas_residency", "commit": options.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                  "device": {"name": device, "machine": platform.platform(), "cores": os.cpu_count()}, "rows": rows}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])) if sys.argv[1:2] == ["--measure"] else main()
