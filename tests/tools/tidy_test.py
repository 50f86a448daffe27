#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy has no findings in the library and the command line, with the checks of .clang-tidy. It takes some minutes, so it runs
with SG_SOAK=1 only, which tools/test --soak sets, and where clang-tidy 14 is installed.

usage: tidy_test.py BUILD-ROOT [PATTERN]    only files whose path holds PATTERN
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys


def main():
    build, pattern = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    if os.environ.get("SG_SOAK") != "1" or not shutil.which("clang-tidy-14"):
        print("SG_SOAK is not 1, or clang-tidy-14 is not installed")
        return 77
    compiled = json.loads((build / "compile_commands.json").read_text())
    files = sorted({
        entry["file"] for entry in compiled
        if entry["output"].startswith(("lib/", "tools/")) and entry["file"].endswith(".cpp") and pattern in entry["file"]
    })
    assert files, f"no source of lib or tools in {build}"

    def look(file):
        run = subprocess.run(["clang-tidy-14", "-p", str(build), "--quiet", file], cwd=build, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        return run.returncode, run.stdout, run.stderr

    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, (code, said, errors) in zip(files, pool.map(look, files)):
            if code:
                failed = True
                print(f"{file}:\n{said}{errors}")
    print(f"{len(files)} files")
    return 1 if failed else 0


sys.exit(main())
