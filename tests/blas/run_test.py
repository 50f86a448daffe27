#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""streamgemm run: the environment of the program, its exit code, and the report of its processes.

usage: run_test.py FOLDER-OF-THE-LIBRARIES STREAMGEMM
"""
import json
import subprocess
import sys
import unittest

from dropin import PLAIN, PRELUDE, PYTHON, run

PROGRAM = sys.argv.pop(2)


class Run(unittest.TestCase):
    def streamgemm(self, *words, exits=0, variables=()):
        done = subprocess.run([PROGRAM, "run", *words], text=True, capture_output=True, timeout=300, env=PLAIN | dict(variables))
        self.assertEqual(done.returncode, exits, done.stdout + done.stderr)
        return done

    def report(self, code, *options, **others):
        done = self.streamgemm(*options, "--json", "--", PYTHON, "-c", PRELUDE + code, **others)
        return json.loads(done.stderr)

    def test_the_report(self):
        said = self.streamgemm("--device", "cpu", "--min", "0", "--", PYTHON, "-c", PRELUDE + "print(multiplies('cblas_dgemm'))")
        self.assertEqual(said.stdout, "True\n")
        self.assertRegex(said.stderr, r"processes with calls of level 3: 1; device: cpu")
        self.assertRegex(said.stderr, r"dgemm +128x128x128 +1 +1 ")

    def test_processes_are_added(self):
        code = """
import subprocess
for _ in range(2): multiplies("cblas_dgemm")
if len(sys.argv) == 1:
    subprocess.run([sys.executable, "-c", open("/proc/self/cmdline").read().split("\\0")[2], "child"])
"""
        report = self.report(code, "--device", "cpu", "--min", "0")
        self.assertEqual(report["processes"], 2)
        self.assertEqual([(row["routine"], row["m"], row["calls"]) for row in report["rows"]], [("dgemm", 128, {"device": 4})])
        self.assertAlmostEqual(report["rows"][0]["gflop"], 4 * 2e-9 * 96 * 101 * 105, 6)
        self.assertGreater(report["rows"][0]["device_seconds"], 0)
        self.assertIsNone(report["ranks"])

    def test_residency(self):
        code = "a, b, c = operands(300, 300, 300)\nfor _ in range(4): gemm('cblas_dgemm', a, b, c)"
        report = self.report(code, "--device", "cpu", "--min", "0", variables={"SG_BLAS_RESIDENCY": "hash"})
        self.assertEqual([report["residency"][name] for name in ("copies", "hits", "bytes_avoided")], [2, 4, 4 * 300 * 300 * 8])
        said = self.streamgemm("--device", "cpu", "--min", "0", "--residency", "hash", "--", PYTHON, "-c", PRELUDE + code)
        self.assertRegex(said.stderr, r"operands kept on the device: 2 copies, used 4 times; 2.* not copied again")
        said = self.streamgemm("--residency", "always", "--", "true", exits=2)
        self.assertIn("--residency", said.stderr)

    def test_ranks(self):
        code = """
import subprocess
multiplies("cblas_dgemm")
if os.environ["OMPI_COMM_WORLD_LOCAL_RANK"] == "0":
    subprocess.run([sys.executable, "-c", open("/proc/self/cmdline").read().split("\\0")[2]], env=os.environ | {"OMPI_COMM_WORLD_LOCAL_RANK": "1"})
"""
        report = self.report(code, "--device", "cpu", "--min", "0", variables={"OMPI_COMM_WORLD_LOCAL_RANK": "0"})
        self.assertEqual(report["ranks"]["count"], 2)
        self.assertGreater(report["ranks"]["device_seconds"]["max"], 0)
        self.assertGreaterEqual(report["ranks"]["device_seconds"]["max"], report["ranks"]["device_seconds"]["min"])

    def test_advice(self):
        thin = self.report("a, b, c = operands(2000, 2000, 1)\ngemm('cblas_dgemm', a, b, c)", "--device", "sim:h200", variables={"OPENBLAS_NUM_THREADS": "1"})
        self.assertEqual(thin["rows"][0]["calls"], {"the model says CPU": 1})
        self.assertIn("1 calls of dgemm up to 2048x2048x1 stayed on the CPU", thin["advice"][0])
        self.assertIn("raise the program's block size", thin["advice"][0])
        said = self.streamgemm("--", "/bin/true").stderr
        self.assertIn("/bin/true called no level 3 of a shared BLAS", said)

    def test_exit_codes(self):
        self.streamgemm("--", "/bin/sh", "-c", "exit 7", exits=7)
        self.streamgemm("--", "/bin/sh", "-c", "kill -9 $$", exits=137)
        for words, part in ((["--", "no-such-program"], "no-such-program: No such file"), ([], "CMD is required"), (["--min", "x", "--", "true"], "--min: x is neither auto nor"),
                            (["--", "true"], "")):
            said = self.streamgemm(*words, exits=2 if part else 0)
            self.assertIn(part, said.stderr)

    def test_a_report_that_cannot_be_written(self):
        said = self.streamgemm("--report", "/no/such/folder/report", "--", "/bin/true", exits=1)
        self.assertIn("/no/such/folder/report", said.stderr)

    def test_other_preloads_stay(self):
        said = self.streamgemm("--", "/bin/sh", "-c", "echo $LD_PRELOAD", variables={"LD_PRELOAD": "libc.so.6"})
        self.assertRegex(said.stdout, r"libstreamgemm-blas\.so\.1:libc\.so\.6\n")


run()
