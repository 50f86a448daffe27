#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SG_LOG: each area logs its messages, one a line, escaped; nothing is logged without it; no result changes.
log_test.py SCENARIOS"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

LINE = re.compile(r"streamgemm: (error|warn|info|debug): (plan|plugin|memory|fallback|job|log): [^\x00-\x1f\x7f]+")
PROGRAM = sys.argv.pop(1)
# The locks of a sanitizer may be held by another thread at a fork, and then stay so in the child.
FORKS = ["fork"] if os.environ.get("SG_TEST_SANITIZER", "none") == "none" else []


def run(*arguments, log=None, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SG_")}
    environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # it writes there, too
    environment.update(variables)
    if log is not None:
        environment["SG_LOG"] = log
    return subprocess.run([PROGRAM, *arguments], capture_output=True, env=environment, check=False, timeout=300)


class Log(unittest.TestCase):
    def lines(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(0, done.returncode, done)
        lines = done.stderr.decode().splitlines()
        for line in lines:
            self.assertTrue(LINE.fullmatch(line), line)
        return lines

    def one(self, lines, *words):
        found = [line for line in lines if all(word in line for word in words)]
        self.assertTrue(found, (words, lines))
        return found[0]

    def test_nothing_is_logged_by_default(self):
        for mode in (["plan"], ["cpu"], ["memory"], ["failing", "a"], ["deadline"], ["batch"], ["streamed"], ["threads"], *([each] for each in FORKS), ["exit"]):
            for value in (None, "", "off", "off,plan"):
                self.assertEqual([], self.lines(*mode, log=value, SG_CALIBRATION="/nowhere"), (mode, value))

    def test_plans(self):
        lines = self.lines("plan", log="info,plan")
        chosen = self.one(lines, "info: plan: 192 x 192 x 192 f64 on ", "predicted ", "bound ", "commands", "the fastest")
        self.assertEqual([chosen], lines, "one for the shape")
        debug = self.lines("plan", log="debug,plan")
        self.assertGreater(len([line for line in debug if "debug: plan: candidate " in line]), 1)
        self.one(debug, "the first of its search")
        self.assertIn(chosen, debug)

    def test_pipelines(self):
        lines = self.lines("streamed", log="warn,plan")
        self.one(lines, "warn: plan: a pipeline streams 0.3 MB of weights for each batch, and all of them would fit: ")
        self.one(lines, "warn: plan: a pipeline's transfers to the device take ", " ms for each batch, and its work ")
        self.assertEqual(2, len(lines), lines)

    def test_plugins(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = self.lines("plan", log="info,plugin", SG_PLUGIN_PATH=folder)
            self.one(lines, "info: plugin: backend cpu, built in, table version ", "available")
            self.one(lines, "info: plugin: backend sim, built in")
            self.one(lines, "info: plugin: no plugin for cuda", folder)
            broken = pathlib.Path(folder) / "libstreamgemm-broken.so"
            broken.write_text("no library")
            lines = self.lines("plan", log="warn,plugin", SG_PLUGIN_PATH=folder)
            self.assertEqual(1, len(lines), lines)
            self.one(lines, "warn: plugin:", str(broken), "is refused: ")

    def test_memory(self):
        lines = self.lines("memory", log="warn")
        self.one(lines, "warn: memory: job \"large \\x1b[31m\\x0a\": ", "bytes of device memory were refused; planned again for")
        debug = self.lines("memory", log="debug,memory")
        self.one(debug, "debug: memory:", "bytes of device memory allocated on sim:h200")

    def test_fallbacks(self):
        lines = self.lines("batch", log="info,fallback")
        self.one(lines, "info: fallback: a batch of 8 GEMMs was refused and goes out one by one: ")
        lines = self.lines("plan", log="warn,fallback", SG_CALIBRATION="/nowhere\n/x")
        self.one(lines, "warn: fallback: sim:h200 plans with its own figures", "/nowhere\\x0a/x")

    def test_a_plugin_s_device(self):
        device = os.environ.get("SG_TEST_DEVICE", "")
        if not device.startswith("cuda"):
            self.skipTest("SG_TEST_DEVICE is no cuda device")
        plugin = os.environ["SG_PLUGIN_PATH"]
        lines = self.lines("graph", device, log="info", SG_PLUGIN_PATH=plugin)
        self.one(lines, f"info: plugin: backend cuda, {plugin}, table version ", "available")
        self.one(lines, "info: fallback: a graph of 1 submissions is replayed one by one: some are not on the device alone")

    def test_convolutions_that_cudnn_does_not_have(self):
        plugin = os.environ.get("SG_PLUGIN_PATH", "")
        if "/emulated/" not in plugin:
            self.skipTest("SG_PLUGIN_PATH is not the plugin for the emulated GPU")
        with_cudnn = self.lines("conv", "cuda:0", log="info,fallback", SG_PLUGIN_PATH=plugin, SG_CUDA_CUDNN="1")
        self.assertEqual(1, len(with_cudnn), with_cudnn)
        self.one(with_cudnn, "info: fallback: cuDNN has no convolution of 1 x 8 x 8 with 1 of 7 x 1, of type ")
        self.assertEqual([], self.lines("conv", "cuda:0", log="info,fallback", SG_PLUGIN_PATH=plugin, SG_CUDA_CUDNN="0"))

    def test_jobs(self):
        lines = self.lines("failing", "q · k", log="error")
        self.assertEqual(1, len(lines), lines)
        self.one(lines, 'error: job: SG_STATUS_BACKEND_FAILURE on sim:h200?fail-launch=1: job "q · k": ')
        self.one(self.lines("failing", "a\nb\x1b]0;x\x07\\", log="error,job"), 'job "a\\x0ab\\x1b]0;x\\x07\\x5c": ')
        lines = self.lines("failing_on_second", log="error,job")
        self.one(lines, 'SG_STATUS_BACKEND_FAILURE on sim:h200x2/1?d1.fail-launch=1: job "alone": ')
        self.one(lines, 'SG_STATUS_BACKEND_FAILURE on sim:h200x2/0?d1.fail-launch=1, sim:h200x2/1?d1.fail-launch=1: job "together": ')
        self.one(self.lines("deadline", log="info,job"), 'info: job: SG_STATUS_DEADLINE_EXCEEDED on sim:h200: job "late": ')
        self.assertEqual([], self.lines("deadline", log="warn,job"))

    def test_a_malformed_value_is_reported_once(self):
        for value in ("verbose", "info,planning", "plan", "info,", "x" * 5000, "a\nb\x1b"):
            for mode in ("plan", "threads", *FORKS):
                lines = self.lines(mode, log=value)
                self.assertEqual(1, len(lines), (value, mode, lines))
                shown = value[:60].replace("\n", "\\x0a").replace("\x1b", "\\x1b")
                self.one(lines, f'warn: log: SG_LOG is "{shown}"', "nothing is logged")

    def test_no_result_changes(self):
        for mode in ("plan", "cpu", "memory", "batch", "streamed"):
            quiet = run(mode)
            self.assertIn(b"result", quiet.stdout)
            self.assertEqual(quiet.stdout, run(mode, log="debug").stdout, mode)

    def test_lines_of_threads_do_not_mix(self):
        lines = self.lines("threads", log="debug")
        shapes = {re.search(r"info: plan: (\d+) x", line)[1] for line in lines if "info: plan: " in line}
        self.assertEqual({str(n) for n in range(1, 100)}, shapes)

    def test_beside_a_fork_and_an_exit(self):
        if FORKS:
            self.one(self.lines("fork", log="error,job"), "SG_STATUS_BACKEND_FAILURE", 'job "child"')
        for _ in range(5):
            self.lines("exit", log="debug")

    def test_a_file_in_the_place_of_a_closed_standard_error(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "file"
            done = run("closed", str(file), log="debug")
            self.assertEqual((0, b""), (done.returncode, done.stderr), done)
            self.assertEqual("", file.read_text())

    def test_a_pipe_that_nobody_reads(self):
        reader, writer = os.pipe()
        os.close(reader)
        environment = {**os.environ, "SG_LOG": "debug"}
        done = subprocess.run([PROGRAM, "plan"], stderr=writer, stdout=subprocess.PIPE, env=environment, check=False, timeout=300)
        os.close(writer)
        self.assertEqual(0, done.returncode)
        self.assertIn(b"result", done.stdout)


if __name__ == "__main__":
    unittest.main()
