#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A random tester finds the planted defect SG_PLANTED in time, with three fresh seeds; with SG_PLANTED_PROGRAM=1 it
prints a program, which fails with the defect alone. The defect is in the library SG_PLANTED_LIBRARY, or in the plugin SG_PLANTED_PLUGIN.
planted_test.py TESTER DEVICE SECONDS INCLUDE LIBRARY C-COMPILER..."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from programs_test import compiled

SEEDS = 3


def with_defect():
    changed = {"SG_SOAK": "0"}
    if "SG_PLANTED_LIBRARY" in os.environ:
        changed["LD_PRELOAD"] = os.environ["SG_PLANTED_LIBRARY"]
    if "SG_PLANTED_PLUGIN" in os.environ:
        changed["SG_PLUGIN_PATH"] = os.environ["SG_PLANTED_PLUGIN"]
    return {**os.environ, **changed}


def check_program(text, include, library, compiler):
    with tempfile.TemporaryDirectory() as folder:
        made = compiled(text, pathlib.Path(folder), include, library, compiler)
        sound, broken = (subprocess.run([made], env=environment, stdout=subprocess.DEVNULL, timeout=120).returncode
                         for environment in (os.environ, with_defect()))
    print(f"its program ends with {broken}, and with {sound} where there is no defect")
    if sound != 0 or broken == 0:
        sys.exit(f"the program does not show the defect:\n{text}")


def main():
    tester, device, seconds, include, library, *compiler = sys.argv[1:]
    sound = subprocess.run([tester, "--device", device, "--seconds", "1"], env={**with_defect(), "SG_PLANTED": ""},
                           capture_output=True, text=True)
    if sound.returncode != 0:
        sys.exit(f"a fault without the defect:\n{sound.stdout}{sound.stderr}")
    prints_program = os.environ.get("SG_PLANTED_PROGRAM") == "1"
    for _ in range(SEEDS - prints_program):
        find(tester, device, seconds, as_drawn=True)
    if prints_program:
        # The addresses of operands are not part of a seed: a failure may not repeat, and then has no program.
        found = next((said for said in (find(tester, device, seconds, as_drawn=False) for _ in range(5)) if "#include" in said), None)
        if found is None:
            sys.exit("no seed's failure was printed as a program")
        check_program(found[found.index("#include"):], include, library, compiler)


def find(tester, device, seconds, as_drawn):
    """What the tester says of a failure that a fresh seed finds."""
    begin = time.monotonic()
    seed = int.from_bytes(os.urandom(6), "little")
    how = ["--as-drawn"] if as_drawn and pathlib.Path(tester).name == "random_test" else []
    run = subprocess.run([tester, "--device", device, "--seconds", seconds, "--seed", str(seed), *how],
                         env=with_defect(), capture_output=True, text=True)
    if run.returncode == 0:
        sys.exit(f"seed {seed}: not found within {seconds} s:\n{run.stdout}{run.stderr}")
    print(f"seed {seed}: found in {time.monotonic() - begin:.1f} s\n{run.stdout}{run.stderr[:600]}")
    return run.stderr


if __name__ == "__main__":
    main()
