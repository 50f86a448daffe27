#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses allocations of processes that have not used the library before: every STEP-th, each in a process of its own,
up to the last. refuse_first_use.py PROGRAM DEVICE STEP, with the shim preloaded into PROGRAM by SHIM."""
import os
import subprocess
import sys


def main():
    program, device, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
    environment = {**os.environ, "LD_PRELOAD": os.environ["SHIM"]}

    def run(refused):
        command = [program, device, "first", str(refused)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    asked = int(run(0).stdout)
    failures = 0
    for refused in range(1, asked, step):
        result = run(refused)
        if result.returncode:
            failures += 1
            print(f"allocation {refused}: ended with {result.returncode}\n{result.stderr}", file=sys.stderr)
    print(f"{asked} allocations, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
