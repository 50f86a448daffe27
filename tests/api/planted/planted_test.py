#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each defect of planted.c makes the test of its row in proofs.txt fail; without a defect all these tests succeed.
planted_test.py PROOFS SHIM API-TESTS LIFECYCLE-TEST"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

def rows(proofs):
    """(defect, file, test) of each row."""
    lines = pathlib.Path(proofs).read_text().splitlines()
    return [tuple(column.strip() for column in line.split("|")) for line in lines if not line.startswith("#")]


def passes(shim, command, defect):
    """Does the test succeed with the defect in front of the library? A hang or a crash is a failure."""
    environment = {**os.environ, "LD_PRELOAD": shim, "PLANTED_DEFECT": defect}
    try:
        run = subprocess.run(command, env=environment, capture_output=True,
                             timeout=300 if defect == "none" else 20)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def main():
    proofs, shim, api_tests, lifecycle_test = sys.argv[1:]
    # Defect: the topic whose tests must fail, and a filter of them.
    defects = {defect: tuple(test.split()) for defect, _, test in rows(proofs) if " / " not in test}
    failures = 0

    def command(topic, argument):
        return [lifecycle_test, argument] if topic == "lifecycle" else [api_tests, topic, f"--gtest_filter={argument}"]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # a test that fails may hang until its time limit

        def attempts(of):
            """Each of (defect, topic, argument), and whether the test succeeds."""
            return zip(of, pool.map(lambda x: passes(shim, command(x[1], x[2]), x[0]), of))

        for (_, topic, argument), succeeds in attempts([("none", *test) for test in sorted(set(defects.values()))]):
            if not succeeds:
                failures += 1
                print(f"{topic} {argument} fails without any defect", file=sys.stderr)
        for (defect, topic, argument), succeeds in attempts([(defect, *test) for defect, test in defects.items()]):
            if succeeds:
                failures += 1
                print(f"{topic} {argument} does not detect {defect}", file=sys.stderr)
    print(f"{len(defects)} defects, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
