#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs that the random tester prints compile, and reproduce the results of the tester.
programs_test.py RANDOM-TEST INCLUDE LIBRARY C-COMPILER..."""
import os
import pathlib
import random
import subprocess
import sys
import tempfile

PROGRAMS = 12


def compiled(program, folder, include, library, compiler):
    """The path of a program made from its text."""
    source, made = folder / "program.c", folder / "program"
    source.write_text(program)
    subprocess.run([*compiler, "-std=gnu99", "-I", include, source, "-o", made, library, f"-Wl,-rpath,{pathlib.Path(library).parent}"],
                   check=True)
    return made


def main():
    tester, include, library, *compiler = sys.argv[1:]
    first = int(os.environ.get("SG_TEST_SEED", random.SystemRandom().randrange(1 << 40)))
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + PROGRAMS):
            device = ["cpu", "sim:h200", "sim:a100", "sim:h200x2"][seed % 4]
            program = subprocess.run([tester, "--device", device, "--seed", str(seed), "--program"], check=True,
                                     capture_output=True, text=True).stdout
            made = compiled(program, pathlib.Path(folder), include, library, compiler)
            run = subprocess.run([made], capture_output=True, text=True, timeout=120)
            if run.returncode:
                failures += 1
                print(f"seed {seed} on {device}: exit {run.returncode}\n{run.stdout}{run.stderr}", file=sys.stderr)
    print(f"{PROGRAMS} programs from seed {first}, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
