#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_process.py reports every way in which a program can fail."""
import sys
import unittest

import run_process


def outcome(program, seconds=300):
    return run_process.failure([sys.executable, "-c", program], seconds)


class Driver(unittest.TestCase):
    def test_good(self):
        self.assertEqual("", outcome("print('fine')"))

    def test_wrong(self):
        self.assertIn("status 3", outcome("import sys; sys.exit(3)"))
        self.assertIn("signal 11", outcome("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"))
        self.assertIn("signal 6", outcome("import os; os.abort()"))
        self.assertIn("0.5 s", outcome("import time; time.sleep(60)", 0.5))
        self.assertIn("complaint", outcome("import sys; print('complaint', file=sys.stderr)"))

    def test_skipped(self):
        with self.assertRaises(SystemExit) as skipped:
            outcome("import sys; sys.exit(77)")
        self.assertEqual(77, skipped.exception.code)


if __name__ == "__main__":
    unittest.main()
