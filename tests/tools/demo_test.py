#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/demo runs the same job on any device, and prints a clear message where it cannot.

usage: demo_test.py TOOLS-DEMO BUILD-FOLDER
"""
import subprocess
import sys
import unittest

DEMO, BUILT = sys.argv[1:]


def run(*arguments):
    return subprocess.run([DEMO, *arguments], text=True, capture_output=True, timeout=200)


class Demo(unittest.TestCase):
    def test_a_simulated_device(self):
        done = run("--built", BUILT, "--device", "sim:h200")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("== on sim:h200", done.stdout)
        page = done.stdout.splitlines()[-1].strip()
        self.assertTrue(page.endswith("digits.html"), done.stdout)
        with open(page, encoding="utf-8") as file:
            self.assertIn("sim:h200", file.read())

    def test_the_page_has_the_measured_and_the_predicted_timeline(self):
        done = run("--built", BUILT, "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(done.stdout.splitlines()[-1].strip(), encoding="utf-8") as file:
            page = file.read()
        for device in ("cpu", "sim:h200"):
            self.assertIn(device, page)
        self.assertIn("known 0.", done.stdout)

    def test_devices_that_are_not_there(self):
        for device in ("cuda:99", "sim:nothing", "nothing"):
            done = run("--built", BUILT, "--device", device)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("SG_STATUS_NO_DEVICE", done.stderr)
            self.assertIn(f'it did not work on "{device}"', done.stderr)
            self.assertNotIn("known", done.stdout)

    def test_wrong_usage(self):
        self.assertEqual(run("--nothing").returncode, 2)
        self.assertNotEqual(run("--device").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
