#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Freezes the interface of the version in version.h as FOLDER/frozen-MAJOR.MINOR: the public headers in streamgemm/, their binary
interface in abi.txt, and the program that was compiled against them, program.c. Until the version has a tag this may be repeated.

usage: freeze.py [--into FOLDER] [C-COMPILER...]      this folder and cc by default
       freeze.py --list                               the releases that are frozen here, the first one first
"""
import argparse
import pathlib
import shutil
import subprocess
import sys

import abi_dump

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"


def releases():
    found = (folder.name.removeprefix("frozen-") for folder in HERE.glob("frozen-*"))
    return sorted(found, key=lambda release: [int(part) for part in release.split(".")])


def write_dump(frozen, compiler):
    major, minor = abi_dump.version_of(frozen)
    head = f"# The binary interface of StreamGEMM {major}.{minor} where pointers have 64 bits. Written by tests/abi/freeze.py.\n"
    (frozen / "abi.txt").write_text(head + "".join(f"{line}\n" for line in abi_dump.dump(frozen, compiler)))


def freeze(folder, compiler):
    major, minor = abi_dump.version_of(INCLUDE)
    tags = subprocess.run(["git", "tag", "-l", f"v{major}.{minor}.*"], cwd=HERE, capture_output=True, text=True, check=False)
    if folder == HERE and tags.stdout.strip():
        sys.exit(f"{major}.{minor} is released ({' '.join(tags.stdout.split())}): its interface stays as it is")
    frozen = folder / f"frozen-{major}.{minor}"
    shutil.rmtree(frozen, ignore_errors=True)
    shutil.copytree(INCLUDE / "streamgemm", frozen / "streamgemm", ignore=lambda _, names: [n for n in names if not n.endswith(".h")])
    shutil.copy(HERE / "release_program.c", frozen / "program.c")
    write_dump(frozen, compiler)
    print(f"{frozen}: {len(list(frozen.glob('streamgemm/*.h')))} headers, abi.txt, program.c")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--into", type=pathlib.Path, default=HERE)
    parser.add_argument("compiler", nargs="*")
    given = parser.parse_args()
    if given.list:
        print(" ".join(releases()))
    else:
        freeze(given.into, given.compiler or ["cc"])


if __name__ == "__main__":
    main()
