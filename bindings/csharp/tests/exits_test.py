#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A .NET process that ends with work in flight ends at once, with the status that it should; each way once, with SG_SOAK=1 ten times.

usage: exits_test.py DEVICE WAYS COMMAND...     the ways, with commas between; the command that runs Exits.exe
"""
import os
import signal
import subprocess
import sys
import time


def main():
    device, ways, *command = sys.argv[1:]
    for way in ways.split(","):
        for _ in range(10 if os.environ.get("SG_SOAK") == "1" else 1):
            start = time.monotonic()
            done = subprocess.run([*command, device, way], capture_output=True, text=True, timeout=300)
            if done.returncode == 77:
                print(done.stdout)
                sys.exit(77)  # without the runtime
            print(f"{way}: status {done.returncode} after {time.monotonic() - start:.2f} s, {done.stdout.strip()}")
            right = done.returncode not in (0, -signal.SIGSEGV) if way.endswith("throw") else done.returncode == 0
            if not right or done.stdout.strip() != "in flight":
                sys.exit(done.stdout + done.stderr)


if __name__ == "__main__":
    main()
