#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program repeatedly, 30 times as often with SG_SOAK=1, each run with a time limit: every run must exit by itself with status 0
and without output. run_process.py RUNS SECONDS PROGRAM ARGUMENT...; "{run}" in an argument becomes the number of the run.
If the program exits with status 77 (no device to run on), so does this one."""
import os
import subprocess
import sys


def failure(command, seconds):
    """The fault of one run, or ""."""
    try:
        run = subprocess.run(command, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        return f"did not end within {seconds} s\n{(late.stderr or b'').decode(errors='replace')}"
    if run.returncode == 77:
        sys.exit(77)
    said = run.stderr.decode(errors="replace")
    if run.returncode < 0:
        return f"killed by signal {-run.returncode}\n{said}"
    return f"ended with status {run.returncode}\n{said}" if run.returncode or said else ""


def main():
    runs, seconds = int(sys.argv[1]) * (30 if os.environ.get("SG_SOAK") == "1" else 1), float(sys.argv[2])
    failures = 0
    for run in range(runs):
        wrong = failure([argument.replace("{run}", str(run)) for argument in sys.argv[3:]], seconds)
        if wrong:
            failures += 1
            print(f"run {run}: {wrong}", file=sys.stderr)
    print(f"{runs - failures} of {runs} runs were right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
