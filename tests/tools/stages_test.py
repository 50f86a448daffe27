#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/test builds a stage while the tests of the one before run, counts a failed build, and prints each suite's time beside its budget.
Meson and Ninja are stand-ins.

usage: stages_test.py TOOLS-FOLDER
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(sys.argv[1])
SETUP = """
need() { :; }
offered() { :; }
gpu_architectures() { echo all; }
configure() { mkdir -p "$1/meson-logs"; echo "configured with ${CC-the usual compiler}"; }
"""
NINJA = """#!/bin/sh
echo "build $2" >>events
echo "warning: planted"
sleep 0.3
[ "$2" != "build-test/$BROKEN" ] || { echo "FAILED: planted"; exit 1; }
"""
MESON = """#!/bin/sh
[ "$1" = test ] || { echo "[]"; exit; }
name=${3#build-test/}
[ "$name" != release ] || while ! grep -q "build build-test/asan" events; do sleep 0.05; done  # for ever, were it built later
echo "tested $name" >>events
echo "$name soaks: $SG_SOAK" >>soaks
result=OK
[ "$name" != "$FAILS" ] || result=FAIL
printf '%s\\n' '{"name": "streamgemm:unit / a", "result": "'$result'", "duration": 1.5, "stdout": "first\\nlast\\n"}' >"$3/meson-logs/$name.json"
"""


class Stages(unittest.TestCase):
    def run_test(self, *arguments, broken="", fails=""):
        with tempfile.TemporaryDirectory() as temporary:
            root = pathlib.Path(temporary)
            (root / "tools").mkdir()
            (root / "tests").mkdir()
            for name in ("test", "test_summary.py", "test_targets.py"):
                shutil.copy(TOOLS / name, root / "tools")
            (root / "tools/setup").write_text(SETUP)
            (root / "tests/budget.txt").write_text("timed x 3\nrelease unit 2\ntsan unit 1\n")
            for package in re.findall(r"^  install_package (\w+)", (TOOLS / "test").read_text(), re.MULTILINE):
                (root / "build-test/packages" / package).mkdir(parents=True)
            (root / "bin").mkdir()
            for name, text in {"ninja": NINJA, "meson": MESON}.items():
                (root / "bin" / name).write_text(text)
                (root / "bin" / name).chmod(0o755)
            environment = {**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "BROKEN": broken, "FAILS": fails}
            done = subprocess.run([root / "tools/test", *arguments], capture_output=True, text=True, timeout=300, env=environment)
            self.soaks = (root / "soaks").read_text().splitlines()
            return done, (root / "events").read_text().splitlines()

    def test_stages_overlap(self):
        done, events = self.run_test()
        lines = done.stdout.splitlines()
        self.assertEqual((done.returncode, lines[-1]), (0, "3 passed, 0 failed, 0 skipped"), done.stdout + done.stderr)
        self.assertLess(events.index("build build-test/asan"), events.index("tested release"))
        self.assertEqual(lines.count("warning: planted"), 3)
        self.assertIn("     1.5      2  release: unit", lines)
        self.assertIn("     1.5      1  tsan: unit  over", lines)
        self.assertTrue(any(line.startswith("asan: build ") for line in lines), lines)

    def test_what_a_failed_test_printed_stands_at_the_end(self):
        done, _ = self.run_test(fails="asan")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[-4:], ["failed: asan: streamgemm:unit / a (FAIL)", "    first", "    last", "2 passed, 1 failed, 0 skipped"], done.stdout)
        self.assertEqual(done.returncode, 1)

    def test_a_failed_build_is_counted(self):
        done, events = self.run_test(broken="asan")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 1 failed, 0 skipped")
        self.assertIn("FAILED: planted", done.stdout)
        self.assertNotIn("tested asan", events)
        self.assertIn("tested tsan", events)

    def test_soak(self):
        done, events = self.run_test("--soak")
        self.assertEqual(done.stdout.splitlines()[-1], "4 passed, 0 failed, 0 skipped", done.stdout + done.stderr)
        self.assertEqual(events[-1], "tested aarch64")
        self.assertEqual(self.soaks, ["release soaks: 1", "asan soaks: 1", "tsan soaks: 1", "aarch64 soaks: 0"])

    def test_quick(self):
        done, events = self.run_test("--quick")
        self.assertEqual((events, done.stdout.splitlines()[-1]), (["build build-test/quick", "tested quick"], "1 passed, 0 failed, 0 skipped"))

    def test_some_stages(self):
        done, events = self.run_test("--soak", "aarch64")
        self.assertEqual((events, done.stdout.splitlines()[-1]), (["build build-test/aarch64", "tested aarch64"], "1 passed, 0 failed, 0 skipped"))
        _, events = self.run_test("tsan", "asan")
        self.assertEqual([each for each in events if each.startswith("tested")], ["tested asan", "tested tsan"])

    def test_wrong_usage(self):
        for arguments in (["--nothing"], ["nothing"], ["aarch64"], ["--soak", "asan", "nothing"]):
            done = subprocess.run([TOOLS / "test", *arguments], capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("usage: tools/test", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
