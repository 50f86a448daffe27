#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Freezes the public headers as those of their version: copies them to frozen-MAJOR.MINOR/streamgemm beside this file and
writes their binary interface to frozen-MAJOR.MINOR/abi.txt. Until the version has a tag this may be repeated.
freeze.py [C-COMPILER...]     cc by default"""
import pathlib
import shutil
import subprocess
import sys

import abi_dump

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"


def write_dump(frozen, compiler):
    major, minor = abi_dump.version_of(frozen)
    head = f"# The binary interface of StreamGEMM {major}.{minor} where pointers have 64 bits. Written by tests/abi/freeze.py.\n"
    (frozen / "abi.txt").write_text(head + "".join(f"{line}\n" for line in abi_dump.dump(frozen, compiler)))


def main():
    compiler = sys.argv[1:] or ["cc"]
    major, minor = abi_dump.version_of(INCLUDE)
    tags = subprocess.run(["git", "tag", "-l", f"v{major}.{minor}.*"], cwd=HERE, capture_output=True, text=True, check=False)
    if tags.stdout.strip():
        sys.exit(f"{major}.{minor} is released ({' '.join(tags.stdout.split())}): its headers stay as they are")
    frozen = HERE / f"frozen-{major}.{minor}"
    shutil.rmtree(frozen, ignore_errors=True)
    shutil.copytree(INCLUDE / "streamgemm", frozen / "streamgemm", ignore=lambda _, names: [n for n in names if not n.endswith(".h")])
    write_dump(frozen, compiler)
    print(f"{frozen.relative_to(HERE.parent.parent)}: {len(list(frozen.glob('streamgemm/*.h')))} headers, abi.txt")


if __name__ == "__main__":
    main()
