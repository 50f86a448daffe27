#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the files that the tests of some suites need built, one a line: Meson itself would build everything.
Usage: test_targets.py BUILD-DIRECTORY SUITE..."""
import json
import os
import subprocess
import sys


def introspect(directory, what):
    said = subprocess.run(["meson", "introspect", directory, what], check=True, capture_output=True, text=True)
    return json.loads(said.stdout)


def main():
    directory, suites = os.path.abspath(sys.argv[1]), set(sys.argv[2:])
    files = {target["id"]: target["filename"] for target in introspect(directory, "--targets")}
    wanted = set()
    for test in introspect(directory, "--tests"):
        if suites & {suite.split(":")[-1] for suite in test["suite"]}:
            wanted.update(file for target in test["depends"] for file in files[target])
    print("\n".join(sorted(os.path.relpath(file, directory) for file in wanted)))


main()
