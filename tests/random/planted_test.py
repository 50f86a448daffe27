#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The random tester detects a planted defect of the library in time, and prints a program that shows it.
planted_test.py RANDOM-TEST INCLUDE LIBRARY DEFECTIVE-LIBRARY DEVICE SECONDS C-COMPILER..."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from programs_test import compiled


def main():
    tester, include, library, defective, device, seconds, *compiler = sys.argv[1:]
    preloaded = {**os.environ, "LD_PRELOAD": defective, "SG_SOAK": "0"}
    begin = time.monotonic()
    run = subprocess.run([tester, "--device", device, "--seconds", seconds], env=preloaded, capture_output=True, text=True)
    if run.returncode != 1 or "#include" not in run.stderr:
        sys.exit(f"the tester does not see the defect within {seconds} s:\n{run.stdout}{run.stderr}")
    program = run.stderr[run.stderr.index("#include"):]
    with tempfile.TemporaryDirectory() as folder:
        made = compiled(program, pathlib.Path(folder), include, library, compiler)
        sound, broken = (subprocess.run([made], env=environment, stdout=subprocess.DEVNULL, timeout=120).returncode
                         for environment in (os.environ, preloaded))
    print(f"seen and made small in {time.monotonic() - begin:.1f} s; its program ends with {broken}, and with {sound} where "
          f"there is no defect\n{run.stdout}{run.stderr}")
    return 0 if (sound, broken) == (0, 1) else 1


if __name__ == "__main__":
    sys.exit(main())
