#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A square GEMM in pageable memory by the Fortran name of BLAS: of the CPU's BLAS, of the drop-in BLAS preloaded over it, and of NVBLAS where the
toolkit has it; beside sg_gemm on the same arrays. Each variant runs in processes of its own, in turns; a result is compared with the CPU's.

usage: blas_gemm.py LIBSTREAMGEMM-BLAS.SO.1 CPU-BLAS.SO [--nvblas LIBNVBLAS.SO] [--sizes N,...] [--rounds 3] [--json FILE] [--commit COMMIT]
       libstreamgemm.so.1 must be where the loader looks, and the Python package where Python looks
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

NVBLAS = "NVBLAS_CPU_BLAS_LIB {}\nNVBLAS_GPU_LIST 0\n"
AUTOPIN = "NVBLAS_AUTOPIN_MEM_ENABLED\n"


def measure(library, dtype, n):
    """Prints the seconds of each call, and some elements of C."""
    import ctypes

    import numpy as np

    a, b = (np.random.default_rng(seed).standard_normal((n, n)).astype(dtype) for seed in (1, 2))
    c = np.zeros((n, n), dtype)
    if library == "sg_gemm":
        import streamgemm as sg

        context = sg.Context()

        def call():
            context.gemm(a, b, c=c)
    else:
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
        gemm = getattr(ctypes.CDLL(None), {"float32": "sgemm_", "float64": "dgemm_"}[dtype])  # the preloaded one, if there is one
        scalar = {"float32": ctypes.c_float, "float64": ctypes.c_double}[dtype]
        size, one, zero, no = ctypes.c_int(n), scalar(1), scalar(0), ctypes.c_char(b"N")
        pointers = [ctypes.c_void_p(each.ctypes.data) for each in (b, a, c)]  # columns: C' = B' A'
        by = ctypes.byref

        def call():
            gemm(by(no), by(no), by(size), by(size), by(size), by(one), pointers[0], by(size), pointers[1], by(size), by(zero), pointers[2], by(size))

    seconds = []
    call()
    end = time.perf_counter() + 1
    while time.perf_counter() < end or len(seconds) < 3:
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    rows = np.random.default_rng(3).integers(0, n, 4)
    error = np.abs(c[rows] - a[rows].astype(np.float64) @ b).max()
    if not error < (1e-3 if dtype == "float32" else 1e-10) * n**0.5:
        sys.exit(f"{library} {dtype} {n}: wrong by {error}")
    json.dump(seconds, sys.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("cpu", type=pathlib.Path, metavar="CPU-BLAS")
    parser.add_argument("--nvblas", type=pathlib.Path)
    parser.add_argument("--sizes", default="4096,8192")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    options = parser.parse_args()
    cpu = str(options.cpu.resolve())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        variants = {"sg_gemm": ("sg_gemm", {}), "drop-in BLAS": (cpu, {"LD_PRELOAD": str(options.library.resolve())})}
        for name, settings in {"NVBLAS": NVBLAS, "NVBLAS, pinning": NVBLAS + AUTOPIN}.items() if options.nvblas else ():
            file = pathlib.Path(folder, f"{len(variants)}.conf")
            file.write_text(settings.format(cpu))
            variants[name] = (cpu, {"LD_PRELOAD": str(options.nvblas.resolve()), "NVBLAS_CONFIG_FILE": str(file)})
        variants["CPU's BLAS"] = (cpu, {})
        for dtype in ("float32", "float64"):
            for n in map(int, options.sizes.split(",")):
                seconds = {name: [] for name in variants}
                for _ in range(options.rounds):
                    for name, (library, environment) in variants.items():
                        done = subprocess.run([sys.executable, __file__, "--measure", library, dtype, str(n)], cwd=folder,
                                              env=os.environ | environment, check=True, stdout=subprocess.PIPE)
                        seconds[name].append(statistics.median(json.loads(done.stdout)))
                for name, each in seconds.items():
                    rows.append({"case": f"gemm {dtype} {n}", "variant": name, "seconds": statistics.median(each), "samples": len(each),
                                 "min": min(each), "max": max(each), "all_seconds": each, "flops": 2 * n**3})
                    ratio = rows[-1]["seconds"] / statistics.median(seconds["sg_gemm"])
                    print(f"{rows[-1]['case']:20} {name:16} {rows[-1]['seconds'] * 1e3:10.2f} ms {ratio:7.3f} x", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"schema": "streamgemm-bench/1", "suite": "blas_gemm", "commit": options.commit,
                                            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                                            "device": {"machine": platform.platform(), "cores": os.cpu_count()}, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
