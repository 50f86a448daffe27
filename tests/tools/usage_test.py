#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the program `streamgemm` as a user meets it: what it says of a wrong command line, help, man pages, completions, colours,
and the demo.

usage: usage_test.py STREAMGEMM BUILD-FOLDER
"""
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import unittest

from program import NO_DEVICE, PROGRAM, Program

BUILT = pathlib.Path(sys.argv[2])
VERBS = ("info", "gemm", "plan", "bench", "report", "explain", "calibrate", "demo", "run", "manual")


class Complaints(Program):
    def test_each_names_what_is_wrong_and_the_nearest(self):
        for line, *parts in (
            ("", "a verb is missing", "gemm"),
            ("gem a b", "gem is no verb", "did you mean gemm?"),
            ("paln 8x8x8", "paln is no verb", "did you mean plan?"),
            ("gemm --comput exact", "--comput is no option of streamgemm gemm", "did you mean --compute?"),
            ("info --jsn", "--jsn is no option of streamgemm info", "did you mean --json?"),
            ("bench compare a b --tolerence=3", "--tolerence is no option of streamgemm bench compare", "did you mean --tolerance?"),
            ("gemm a b c", 'gemm takes no "c"'),
            ("gemm one.npy", "B is required", "streamgemm gemm --help"),
            ("bench smal", "SUITE: smal is none of", "did you mean small?"),
            ("bench", "SUITE", "overlap", "is required"),
            ("plan", "8192x8192x8192", "is required"),
            ("plan 8x8", "8x8 is no shape"),
            ("plan 8x0x8", "8x0x8 is no shape"),
            ("plan --m 0 --n 1 --k 1", "--m: 0 is too small: it must be at least 1"),
            ("plan --m x --n 1 --k 1", "--m: x is no whole number"),
            ("plan 8x8x8 --beta x", "--beta: x is no number"),
            ("plan 8x8x8 --compute tf23", "--compute: tf23 is none of exact, tf32", "did you mean tf32?"),
            ("plan 8x8x8 --memory-limit lots", "--memory-limit: lots is no size", "4GiB"),
            ("plan 8x8x8 --memory-limit -4GiB", "--memory-limit: -4GiB is no size", "4GiB"),
            ("plan 8x8x8 --streams -1", "--streams: -1 is too small: it must be at least 0"),
            ("bench compare a b --tolerance 50", "--tolerance: 50 is not from 0 to 10"),
            ("bench small --seconds 0", "--seconds: 0 is too small: it must be above 0"),
            ("manual gem", "VERB: gem is no verb", "did you mean gemm?"),
            ("info --trace run.htm", "run.htm", "format is unknown", ".html"),
            ("info --trace /no/such/place/run.html", "/no/such/place/run.html", "No such file"),
        ):  # fmt: skip
            with self.subTest(line):
                said = self.complaint(*line.split())
                self.assertTrue(said.startswith("streamgemm: "), said)
                for part in parts:
                    self.assertIn(part, said)
                self.assertNotRegex(said, r"e\+308|\[0 - |\{[a-z]+,")

    def test_a_shape(self):
        self.assertEqual(self.json_of("plan", "64x32x16", "--device", "sim:h200")["n"], 32)
        self.assertEqual(self.json_of("plan", "--m", 64, "--n", 32, "--k", 16, "--device", "sim:h200")["k"], 16)


class Help(Program):
    def test_an_example_for_each_verb(self):
        for verb in VERBS:
            self.assertIn("Example: streamgemm", self.run_program(verb, "--help").stdout, verb)

    def test_a_line_for_each_suite(self):
        text = self.run_program("bench", "--help").stdout
        suites = re.search(r"SUITE ([a-z|]+)", text)[1].split("|")
        self.assertGreater(len(suites), 10)
        for suite in suites:
            self.assertRegex(text, rf"\n  {suite} +\w+ \w+")

    def test_choices_stand_once(self):
        self.assertEqual(self.run_program("gemm", "--help").stdout.count("3xtf32"), 1)

    def on_terminal(self, *arguments, **variables):
        near, far = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | variables
        subprocess.run([PROGRAM, *arguments], stdout=far, stderr=far, env=environment, timeout=300, check=False)
        os.close(far)
        said = os.read(near, 65536).decode()
        os.close(near)
        return said

    def test_colours_on_a_terminal_only(self):
        self.assertIn("\033[1;31mstreamgemm:\033[0m ", self.on_terminal("gem"))
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\033", self.on_terminal("gem", **variables))
        self.assertNotIn("\033", self.complaint("gem"))

    def test_progress_of_a_suite(self):
        said = self.on_terminal("bench", "heads", "--quick", "--device", "sim:h200")
        if "measuring" in said:  # cases of less than half a second show nothing
            self.assertRegex(said, r"case \d of 3")


class Manual(Program):
    def test_each_verb_has_a_page(self):
        self.assertIn("streamgemm\\-gemm", self.run_program("manual").stdout)
        for verb in VERBS:
            page = self.run_program("manual", verb).stdout
            self.assertTrue(page.startswith(f".TH streamgemm-{verb} 1"), page[:80])
            names = re.findall(r"--[a-z][a-z-]+", self.run_program(verb, "--help").stdout.partition("Example:")[0])
            for name in names:
                self.assertIn(name.replace("-", "\\-"), page)
            built = BUILT / f"streamgemm-{verb}.1"
            self.assertEqual(built.read_text(), page)
            if shutil.which("man"):
                shown = subprocess.run(["man", "--warnings", "-l", built], capture_output=True, text=True, timeout=300, env={**os.environ, "MANROFFOPT": "-ww"})
                self.assertEqual(shown.stderr, "")
                self.assertIn("SYNOPSIS", shown.stdout)

    def bash(self, *words):
        """What bash completes the last word to."""
        script = f"source {BUILT}/completions/streamgemm; COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; _streamgemm; echo ${{COMPREPLY[@]}}"
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=300).stdout.split()

    def test_bash(self):
        self.assertEqual(self.bash("streamgemm", "ge"), ["gemm"])
        self.assertEqual(self.bash("streamgemm", "gemm", "--comp"), ["--compute"])
        self.assertEqual(self.bash("streamgemm", "gemm", "--compute", "bf"), ["bf16", "bf16x3"])
        self.assertEqual(self.bash("streamgemm", "bench", "sm"), ["small"])
        self.assertIn("--trace", self.bash("streamgemm", "demo", "--"))

    def test_each_shell_reads_its_file(self):
        for shell, file in (("bash", "streamgemm"), ("zsh", "_streamgemm"), ("fish", "streamgemm.fish")):
            text = self.run_program("manual", "--completion", shell).stdout
            self.assertEqual((BUILT / "completions" / file).read_text(), text)
            for word in ("calibrate", "compute", "bf16x3", "outofcore"):
                self.assertIn(word, text, shell)
            if shutil.which(shell):
                subprocess.run([shell, "-n", BUILT / "completions" / file], check=True, timeout=300)


class Demo(Program):
    def test_digits(self):
        for device in ("cpu", "sim:h200"):
            said = self.json_of("demo", "--device", device)
            self.assertEqual([(a["right"], a["of"]) for a in said["accuracies"]], [(173, 180), (1776, 1797)])
            self.assertEqual(said["device"], device)
        text = self.run_program("demo", "--device", "cpu").stdout
        self.assertIn("0.961111 (173 of 180), known 0.961111", text)
        self.complaint("demo", "--device", "cuda:99", exits=NO_DEVICE)

    def test_traced(self):
        page = self.folder / "digits.html"
        self.run_program("demo", "--device", "sim:h200", "--trace", page)
        self.assertIn("<html", page.read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
