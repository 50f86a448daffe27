#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""High-Performance Linpack in one process, on its own BLAS and with the drop-in BLAS preloaded, and with NVBLAS where the toolkit has it, one after the
other: the operations per second that it reports itself. A run whose residual HPL does not accept fails.

usage: hpl.py LIBSTREAMGEMM-BLAS.SO.1 XHPL [--n N] [--nb NB,...] [--nvblas LIBNVBLAS.SO CPU-BLAS.SO] [--json FILE] [--commit COMMIT]
XHPL: built of HPL's sources or hpcc's; it reads HPL.dat or hpccinf.txt and writes to standard output or hpccoutf.txt.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

INPUT = """HPLinpack benchmark input file
of bench/hpl.py
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
{count}      # of NBs
{blocks}     NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
1            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
0            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""
NVBLAS = "NVBLAS_CPU_BLAS_LIB {}\nNVBLAS_GPU_LIST 0\n"  # with NVBLAS_AUTOPIN_MEM_ENABLED its cublasXtDgemm fails on parts of one matrix


def measure(program, n, blocks, environment):
    """Seconds by block."""
    with tempfile.TemporaryDirectory() as folder:
        text = INPUT.format(n=n, count=len(blocks), blocks=" ".join(map(str, blocks)))
        for name in ("HPL.dat", "hpccinf.txt"):
            pathlib.Path(folder, name).write_text(text)
        done = subprocess.run([program], cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False)
        written = pathlib.Path(folder, "hpccoutf.txt")
        said = done.stdout + (written.read_text() if written.exists() else "")
    rows = re.findall(rf"^W\S+ +{n} +(\d+) +1 +1 +(\S+) +\S+", said, re.MULTILINE)
    if done.returncode or len(rows) != len(blocks) or said.count("PASSED") < len(blocks) or "FAILED" in said:
        sys.exit(f"{program}: exit {done.returncode}\n{said}{done.stderr}")
    return {int(nb): float(seconds) for nb, seconds in rows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--n", type=int, default=30000)
    parser.add_argument("--nb", default="512,80", help="blocks, with commas between")
    parser.add_argument("--nvblas", type=pathlib.Path, nargs=2, metavar=("NVBLAS", "CPU-BLAS"))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    options = parser.parse_args()
    blocks = [int(each) for each in options.nb.split(",")]
    variants = {"its own BLAS": {}, "drop-in BLAS": {"LD_PRELOAD": str(options.library.resolve())}}
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings:
        if options.nvblas:
            settings.write(NVBLAS.format(options.nvblas[1].resolve()))
            settings.flush()
            variants["NVBLAS"] = {"LD_PRELOAD": str(options.nvblas[0].resolve()), "NVBLAS_CONFIG_FILE": settings.name}
        found = {}
        for variant, environment in variants.items():
            found[variant] = measure(options.program.resolve(), options.n, blocks, environment)
            print(variant, ", ".join(f"NB {nb}: {seconds:.2f} s" for nb, seconds in found[variant].items()), flush=True)
    operations = 2 / 3 * options.n**3 + 3 / 2 * options.n**2
    rows = []
    for nb in blocks:
        for variant, seconds in found.items():
            rows.append({"case": f"HPL float64 {options.n}, NB {nb}", "variant": variant, "seconds": seconds[nb], "samples": 1, "flops": operations})
            print(f"{rows[-1]['case']:26} {variant:14} {seconds[nb]:8.2f} s {operations / seconds[nb] / 1e12:7.3f} Tflop/s {found['its own BLAS'][nb] / seconds[nb]:6.2f} x")
    if options.json:
        options.json.write_text(json.dumps({"schema": "streamgemm-bench/1", "suite": "hpl", "commit": options.commit,
                                            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                                            "device": {"machine": platform.platform(), "cores": os.cpu_count()}, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
