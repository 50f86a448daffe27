#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The driver reports every way in which a case can fail, and goes on with the next one. driver_test.py DRIVER_CASES"""
import os
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)


def results(*wanted):
    environment = {name: value for name, value in os.environ.items() if name != "SG_SOAK"}
    done = subprocess.run([PROGRAM, *wanted], capture_output=True, text=True, timeout=300, env=environment, check=False)
    return done.returncode, done.stdout


class Driver(unittest.TestCase):
    def test_good(self):
        status, said = results("fine:3")
        self.assertEqual(0, status, said)
        self.assertRegex(said, r"\A1\.\.1\nok 1 - fine: 3 of 3 runs were right, in [0-9.]+ s\n\Z")

    def test_wrong(self):
        faults = {"wrong": "ended with status 3", "dies": "killed by signal 11", "aborts": "killed by signal 6",
                  "hangs": "did not end within 0.5 s", "leaves_a_child_that_hangs": "did not end within 0.5 s",
                  "complains": "ended with status 0\n#   a complaint"}
        status, said = results(*(f"{name}:1" for name in faults), "fine:1")
        self.assertEqual(1, status, said)
        for number, (name, fault) in enumerate(faults.items(), 1):
            self.assertIn(f"# {name}, run 0: {fault}\n", said)
            self.assertIn(f"\nnot ok {number} - {name}: 0 of 1 runs", said)
        self.assertIn(f"\nok {len(faults) + 1} - fine: 1 of 1 runs", said)

    def test_each_run_counts(self):
        self.assertIn("\nnot ok 1 - fails_once: 2 of 3 runs", results("fails_once:3")[1])

    def test_skipped(self):
        self.assertEqual((0, "1..1\nok 1 - skips # SKIP\n"), results("skips:3"))

    def test_unknown(self):
        for wanted in ("nothing:1", "fine", "fine:0"):
            self.assertEqual(2, results(wanted)[0], wanted)


if __name__ == "__main__":
    unittest.main()
