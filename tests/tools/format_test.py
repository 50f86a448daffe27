#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every C, C++ and CUDA file is formatted by clang-format 14 and .clang-format; other versions differ in places, so without that one
the test is skipped. Public headers are left out, whose comments are in columns, and frozen releases.

usage: format_test.py SOURCE-ROOT    To repair: clang-format-14 -i FILE...
"""
import pathlib
import shutil
import subprocess
import sys

ROOMS = ("lib", "bindings", "tools", "tests", "bench", "examples")
SUFFIXES = {".c", ".cpp", ".cu", ".h", ".hpp"}


def main():
    root = pathlib.Path(sys.argv[1])
    if not shutil.which("clang-format-14"):
        print("clang-format-14 is not installed")
        return 77
    files = sorted(str(f) for room in ROOMS for f in (root / room).rglob("*") if f.suffix in SUFFIXES and "abi/frozen-" not in str(f))
    assert len(files) > 400, f"only {len(files)} files under {root}"
    run = subprocess.run(["clang-format-14", "--dry-run", "-Werror", *files], cwd=root)
    return run.returncode


sys.exit(main())
