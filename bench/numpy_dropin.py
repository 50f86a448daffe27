#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy's A @ B of square matrices, on its own BLAS and with the drop-in BLAS preloaded, in two processes one after the other.

usage: numpy_dropin.py LIBSTREAMGEMM-BLAS.SO.0 [--json FILE] [--commit COMMIT]    libstreamgemm.so.0 must be where the loader looks
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


def measure():
    """Prints the median seconds of each type and size."""
    import numpy as np

    rows = []
    for dtype in (np.float64, np.float32):
        for n in SIZES:
            a = np.random.default_rng(1).standard_normal((n, n)).astype(dtype)
            b = a.T.copy()
            a @ b
            samples, end = [], time.perf_counter() + (0.25 if n < 4096 else 0.7)
            while time.perf_counter() < end or len(samples) < 3:
                began = time.perf_counter()
                a @ b
                samples.append(time.perf_counter() - began)
            samples.sort()
            rows.append({"case": f"A @ B {np.dtype(dtype).name} {n}", "seconds": samples[len(samples) // 2], "samples": len(samples)})
    json.dump({"rows": rows, "numpy": np.__version__}, sys.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    options = parser.parse_args()
    found = {}
    for variant, preload in (("NumPy's own BLAS", None), ("drop-in BLAS", str(options.library.resolve()))):
        environment = dict(os.environ) | ({"LD_PRELOAD": preload} if preload else {})
        found[variant] = json.loads(subprocess.run([sys.executable, __file__, "--measure"], env=environment, check=True, capture_output=True).stdout)
    for own, dropin in zip(*(each["rows"] for each in found.values())):
        print(f"{own['case']:22} {own['seconds'] * 1e3:10.3f} ms {dropin['seconds'] * 1e3:10.3f} ms {dropin['seconds'] / own['seconds']:7.3f}")
    if options.json:
        rows = [row | {"variant": variant} for variant, each in found.items() for row in each["rows"]]
        device = {"machine": platform.platform(), "cores": os.cpu_count(), "numpy": found["drop-in BLAS"]["numpy"]}
        options.json.write_text(json.dumps({"schema": "streamgemm-bench/1", "suite": "numpy_dropin", "commit": options.commit,
                                            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                                            "device": device, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    measure() if sys.argv[1:] == ["--measure"] else main()
