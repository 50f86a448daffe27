#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the program `streamgemm`: every verb, its JSON, its exit codes, and its errors for bad files.

usage: cli_test.py STREAMGEMM FAKE_PEERS [TEST...]     --but CLASS...: all but the tests of these classes
"""
import json
import os
import pathlib
import pty
import shutil
import struct
import subprocess
import sys
import unittest

import npy
from program import FAILED, NO_DEVICE, PROGRAM, USAGE, VERIFICATION, Program

FAKE_PEERS = sys.argv[2]


class Usage(Program):
    def test_help(self):
        for verb in ("", "info", "gemm", "plan", "bench", "report", "calibrate", "explain"):
            self.assertIn("--help", self.run_program(*verb.split(), "--help").stdout)

    def test_stdout_that_is_full(self):
        a, b = self.matrix("a.npy", 2, 2)[0], self.matrix("b.npy", 2, 2)[0]
        record = self.folder / "record.json"
        self.run_program("bench", "graph", "--quick", "--device", "sim:h200", "--json", record)
        for line in ("--help", "--version", "gemm --help", "info", "info --json", f"gemm {a} {b} --device cpu",
                     f"gemm {a} {b} --device cpu --json", "plan --m 8 --n 8 --k 8 --device sim:h200",
                     "plan --m 8 --n 8 --k 8 --device sim:h200 --json", f"report {record}"):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *line.split()], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
            self.assertEqual((done.returncode, done.stderr), (FAILED, "streamgemm: cannot write to stdout\n"), line)

    def test_version(self):
        self.assertRegex(self.run_program("--version").stdout, r"^\d+\.\d+\.\d+\n$")

    def test_wrong_usage(self):
        for line in ("", "nothing", "info --nothing", "gemm", "gemm one.npy", "plan --m 1 --n 1", "bench", "bench nothing",
                     "plan --m 0 --n 1 --k 1", "plan --m x --n 1 --k 1", "plan --m 1 --n 1 --k 1 --dtype f8",
                     "plan --m 1 --n 1 --k 1 --from nowhere", "plan --m 1 --n 1 --k 1 --memory-limit lots",
                     "plan --m 1 --n 1 --k 1 --memory-limit -4GiB", "plan --m 9223372036854775807 --n 2 --k 2",
                     "report", "report /nonexistent.json"):
            self.complaint(*line.split())


class Info(Program):
    def test_json(self):
        info = self.json_of("info")
        self.assertEqual({b["name"] for b in info["backends"]} & {"cpu", "sim", "cuda"}, {"cpu", "sim", "cuda"})
        for backend in info["backends"]:
            self.assertEqual(backend["available"], backend["reason"] == "")
        devices = {d["name"]: d for d in info["devices"]}
        self.assertTrue(devices["cpu"]["unified_memory"])
        self.assertEqual(devices["sim:h200"]["copy_engines"], 2)
        self.assertGreater(devices["sim:h200"]["link_in_bytes_per_second"], 1e10)
        for device in info["devices"]:
            on_gpu = device["name"].startswith("cuda")
            self.assertEqual(device["mig"] != "", on_gpu, device)
            self.assertEqual(device["uuid"] != "", on_gpu, device)
            self.assertIsInstance(device["nvlinks"], int)
            self.assertIsInstance(device["nvlink_bytes_per_second"], float)
            others = {d for d in devices if d != device["name"]} if on_gpu else set()
            self.assertEqual({peer["name"] for peer in device["peers"]} - others, set(), device)
            for peer in device["peers"]:
                self.assertEqual(info["devices"][peer["index"]]["name"], peer["name"])
                self.assertIn(peer["class"], ("unknown", "host", "pcie", "nvlink"))

    def test_text_names_every_device(self):
        text = self.run_program("info").stdout
        for device in self.json_of("info")["devices"]:
            self.assertIn(device["name"], text)

    def test_several_devices(self):
        names = [device["name"] for device in self.json_of("info", "--device", "sim:h200x2")["devices"]]
        self.assertEqual(names, ["sim:h200x2/0", "sim:h200x2/1"])

    def test_one_device(self):
        info = self.json_of("info", "--device", "sim:h200")
        self.assertEqual([d["name"] for d in info["devices"]], ["sim:h200"])

    def test_no_device(self):
        for device in ("nothing", "cuda:99"):
            self.assertIn(device, self.complaint("info", "--device", device, exits=NO_DEVICE))


class Gemm(Program):
    def check_gemm(self, a, b, wanted, *options):
        c = self.folder / "c.npy"
        said = self.json_of("gemm", a, b, "-o", c, "--verify", *options)
        self.assertTrue(said["verify"]["passed"])
        descr, values = npy.decode(c)
        self.assertEqual(values, wanted)
        return said, descr

    def test_types_layouts_and_devices(self):
        kept = {"|i1": "<i4"}
        for descr in ("<f4", "<f8", "<c8", "<c16", "<f2", "|i1"):
            for order_a, order_b in ((False, False), (True, False), (False, True)):
                a, x = self.matrix("a.npy", 7, 13, descr, order_a)
                b, y = self.matrix("b.npy", 13, 5, descr, order_b, seed=2)
                for device in ("cpu", "sim:h200"):
                    with self.subTest(descr=descr, order_a=order_a, order_b=order_b, device=device):
                        said, out = self.check_gemm(a, b, npy.matmul(x, y), "--device", device)
                        self.assertEqual(out, kept.get(descr, descr))
                        self.assertEqual((said["m"], said["n"], said["k"]), (7, 5, 13))

    def test_operations(self):
        for descr in ("<f4", "<c16"):
            for ta in "NTC":
                for tb in "NTC":
                    a, x = self.matrix("a.npy", *((7, 13) if ta == "N" else (13, 7)), descr)
                    b, y = self.matrix("b.npy", *((13, 5) if tb == "N" else (5, 13)), descr, seed=2)
                    with self.subTest(descr=descr, ta=ta, tb=tb):
                        self.check_gemm(a, b, npy.matmul(npy.apply(ta, x), npy.apply(tb, y)), "--ta", ta, "--tb", tb)

    def test_bias_and_activation(self):
        a, x = self.matrix("a.npy", 7, 13)
        b, y = self.matrix("b.npy", 13, 5, seed=2)
        row, values = self.matrix("row.npy", 1, 5, seed=3)
        column, lines = self.matrix("column.npy", 7, 1, seed=4)
        vector = self.file("vector.npy", npy.header(shape="(5,)") + struct.pack("<5f", *values[0]))
        c = npy.matmul(x, y)
        by_column = [[v + values[0][j] for j, v in enumerate(r)] for r in c]
        by_row = [[v + lines[i][0] for v in r] for i, r in enumerate(c)]
        for device in ("cpu", "sim:h200"):
            for bias, wanted in ((row, by_column), (vector, by_column), (column, by_row)):
                with self.subTest(device=device, bias=bias):
                    self.check_gemm(a, b, wanted, "--device", device, "--bias", bias)
                    kept = [[max(v, 0.0) for v in r] for r in wanted]
                    said, _ = self.check_gemm(a, b, kept, "--device", device, "--bias", bias, "--activation", "relu")
                    self.assertEqual((said["bias"], said["activation"]), (str(bias), "relu"))
        for descr in ("<f4", "<f8", "<f2"):
            a, _ = self.matrix("a.npy", 7, 13, descr)
            b, _ = self.matrix("b.npy", 13, 5, descr, seed=2)
            self.assertTrue(self.json_of("gemm", a, b, "--activation", "gelu", "--verify")["verify"]["passed"])
        self.assertIn("5 x 1", self.complaint("gemm", a, b, "--bias", self.matrix("c.npy", 5, 1, "<f2")[0]))
        self.assertIn("f32", self.complaint("gemm", a, b, "--bias", row))

    def test_splits_and_limits(self):
        a, x = self.matrix("a.npy", 40, 64)
        b, y = self.matrix("b.npy", 64, 48, seed=2)
        for options in ("--split m", "--split n", "--split k", "--split none", "--streams 2", "--memory-limit 1MiB"):
            for device in ("cpu", "sim:h200"):
                with self.subTest(options=options, device=device):
                    self.check_gemm(a, b, npy.matmul(x, y), "--device", device, *options.split())

    def test_bf16(self):
        a, x = self.matrix("a.npy", 6, 9)
        b, y = self.matrix("b.npy", 9, 4, seed=2)
        said, descr = self.check_gemm(a, b, npy.matmul(x, y), "--dtype", "bf16")
        self.assertEqual((said["dtype"], said["out_dtype"], descr), ("bf16", "f32", "<f4"))

    def test_f8(self):
        a, x = self.matrix("a.npy", 6, 9)
        b, y = self.matrix("b.npy", 9, 4, seed=2)
        for dtype in ("f8_e4m3", "f8_e5m2"):
            said, descr = self.check_gemm(a, b, npy.matmul(x, y), "--dtype", dtype)
            self.assertEqual((said["dtype"], said["out_dtype"], descr), (dtype, "f32", "<f4"))
            self.check_gemm(a, b, npy.matmul(x, y), "--dtype", dtype, "--compute", "f8", "--device", "sim:h200")
        self.assertIn("f8 operands", self.complaint("gemm", a, b, "--compute", "f8"))

    def test_rounding_to_f8(self):
        """Ties round to even, subnormals are kept, values out of range become the format's infinity or NaN."""
        given = (1.0, 1.0625, 1.1875, -17.0, -19.0, 0.013671875, 2.0**-10, 2.0**-17, 448.0, 464.0, 465.0, 61440.0)
        inf, nan = float("inf"), float("nan")
        wanted = {
            "f8_e4m3": (1.0, 1.0, 1.25, -16.0, -20.0, 0.013671875, 0.0, 0.0, 448.0, 448.0, nan, nan),
            "f8_e5m2": (1.0, 1.0, 1.25, -16.0, -20.0, 0.013671875, 2.0**-10, 0.0, 448.0, 448.0, 448.0, inf),
        }
        one, out = self.file("one.npy", npy.encode([[1.0]])), self.folder / "c.npy"
        for dtype, values in wanted.items():
            a = self.file("a.npy", npy.encode([[v] for v in given]))
            self.run_program("gemm", a, one, "--dtype", dtype, "-o", out)
            found = [row[0] for row in npy.decode(out)[1]]
            self.assertEqual([repr(v) for v in values], [repr(v) for v in found], dtype)

    def test_empty(self):
        a, b = self.file("a.npy", npy.header(shape="(0, 3)")), self.matrix("b.npy", 3, 4)[0]
        self.check_gemm(a, b, [])
        c = self.file("k.npy", npy.header(shape="(2, 0)")), self.file("l.npy", npy.header(shape="(0, 2)"))
        self.check_gemm(*c, [[0.0, 0.0], [0.0, 0.0]])

    def test_text(self):
        a, b = self.matrix("a.npy", 8, 8)[0], self.matrix("b.npy", 8, 8)[0]
        self.assertIn("0 wrong", self.run_program("gemm", a, b, "--verify").stdout)

    def test_verification_can_fail(self):
        """A simulated device that keeps time but computes nothing leaves a wrong result."""
        a, b = self.matrix("a.npy", 8, 8)[0], self.matrix("b.npy", 8, 8)[0]
        done = self.run_program("gemm", a, b, "--verify", "--json", "--device", "sim:h200?timing-only", exits=VERIFICATION)
        verify = json.loads(done.stdout)["verify"]
        self.assertFalse(verify["passed"])
        self.assertGreater(verify["wrong"], 0)

    def test_failures_of_the_device(self):
        a, b = self.matrix("a.npy", 8, 8)[0], self.matrix("b.npy", 8, 8)[0]
        for fault in ("taken=1TiB", "fail-copy=1", "fail-launch=1"):
            self.complaint("gemm", a, b, "--device", "sim:h200?" + fault, exits=FAILED)
        self.complaint("gemm", a, b, "--device", "cuda:99", exits=NO_DEVICE)

    def test_output_that_cannot_be_written(self):
        a, b = self.matrix("a.npy", 8, 8)[0], self.matrix("b.npy", 8, 8)[0]
        for output in ("/dev/full", self.folder / "none" / "c.npy"):
            self.assertIn(str(output), self.complaint("gemm", a, b, "-o", output, exits=FAILED))

    def test_operands_that_do_not_fit(self):
        a, b, c = self.matrix("a.npy", 8, 8)[0], self.matrix("b.npy", 7, 8)[0], self.matrix("c.npy", 8, 8, "<f8")[0]
        self.assertIn("8 x 8 times 7 x 8", self.complaint("gemm", a, b))
        self.assertIn("f64", self.complaint("gemm", a, c))

    def test_progress_on_a_terminal_only(self):
        """Every other test sees an empty stderr; here it is a terminal, and a copy takes five seconds."""
        a = self.matrix("a.npy", 8, 8)[0]
        main, secondary = pty.openpty()
        try:
            subprocess.run([PROGRAM, "gemm", a, a, "--device", "sim:h200?late-copy=1:5000000"], stdout=subprocess.DEVNULL,
                           stderr=secondary, check=True, timeout=300)
            os.set_blocking(main, False)
            self.assertIn(b"multiplying", os.read(main, 1 << 16))
        finally:
            os.close(main)
            os.close(secondary)


class Traces(Program):
    """--trace, explain, and plan --html."""

    def test_figures_and_advice(self):
        trace = self.folder / "run.json"
        size = ("--m", 4096, "--n", 3072, "--k", 4096, "--from", "pinned", "--device", "sim:h200?timing-only", "--run")
        self.run_program("plan", *size, "--trace", trace)
        said = self.json_of("explain", trace)
        (context,) = said["contexts"]
        self.assertEqual(6, context["jobs"], "one to warm up, and five")
        idle = sum(context["idle_seconds"].values())
        self.assertAlmostEqual(context["span_seconds"], context["compute_seconds"] + idle)
        titles = [each["title"] for each in said["advice"]]
        self.assertTrue(any("tf32" in title for title in titles), titles)
        self.assertTrue(any("device memory" in title for title in titles), titles)
        self.assertFalse(any("pin " in title for title in titles), titles)
        gains = [each["gain_seconds"] for each in said["advice"]]
        self.assertEqual(sorted(gains, reverse=True), gains)
        self.assertLess(gains[0], context["span_seconds"])
        by_plan = [each for each in said["advice"] if "tf32" in each["title"] or "device memory" in each["title"]]
        for each in by_plan:  # a slow machine has other advice beside it, as to have several jobs in flight
            self.assertIn("6 jobs of 4096 x 3072 x 4096 f32, ", each["evidence"])
        text = self.run_program("explain", trace).stdout
        for title in titles:
            self.assertIn(title, text)
        self.assertIn("6 jobs", text)

    def test_formats(self):
        a, b = self.matrix("a.npy", 40, 40)[0], self.matrix("b.npy", 40, 40)[0]
        for name, begins in (("t.html", "<!DOCTYPE html>"), ("t.svg", "<?xml"), ("t.txt", "cpu")):
            self.run_program("--trace", self.folder / name, "gemm", a, b, "--device", "cpu")
            self.assertTrue((self.folder / name).read_text().startswith(begins), name)
        self.complaint("gemm", a, b, "--trace", self.folder / "trace", exits=USAGE)

    def test_a_wrong_variable_is_shown_escaped(self):
        a = self.matrix("a.npy", 4, 4)[0]
        done = subprocess.run([PROGRAM, "gemm", a, a, "--device", "cpu"], capture_output=True, timeout=300,
                              env={**os.environ, "SG_TRACE": "red\x1b[31m.what"})
        self.assertIn(b"SG_TRACE is \"red\\x1b[31m.what\"", done.stderr)
        self.assertNotIn(b"\x1b", done.stderr)

    def test_a_pipe_as_trace_does_not_block(self):
        a, pipe = self.matrix("a.npy", 4, 4)[0], self.folder / "pipe.json"
        os.mkfifo(pipe)
        done = subprocess.run([PROGRAM, "gemm", a, a, "--device", "cpu"], capture_output=True, timeout=300,
                              env={**os.environ, "SG_TRACE": str(pipe)})
        self.assertIn(b"cannot be written", done.stderr)

    def test_no_trace(self):
        self.complaint("explain", self.folder / "none.json")
        self.complaint("explain", self.file("other.json", b'{"traceEvents": []}'))
        self.complaint("explain", self.file("broken.json", b"{"))

    def test_page_of_a_plan(self):
        page = self.folder / "plan.html"
        self.run_program("plan", "--m", 8192, "--n", 8192, "--k", 8192, "--device", "sim:h200", "--html", page)
        text = page.read_text()
        self.assertIn("sim", text)
        self.assertIn('"copy in 0"', text)
        self.assertIn('"summary":["Predicted, not run: ', text)
        self.assertNotIn("took", text.partition('"advice":')[2].partition('"names":')[0], "nothing ran")
        self.complaint("plan", "--m", 8, "--n", 8, "--k", 8, "--html", self.folder / "none" / "plan.html", exits=FAILED)


class Prediction(Program):
    """Predicted against measured times: on a simulated device, in virtual time, they agree."""

    size = ("--m", 8192, "--n", 8192, "--k", 8192)

    def test_plans_that_are_run(self):
        for place in ("pinned", "device"):
            for compute in ("exact", "tf32"):
                with self.subTest(place=place, compute=compute):
                    said = self.json_of("plan", *self.size, "--compute", compute, "--from", place, "--run",
                                        "--device", "sim:h200?timing-only")
                    self.assertAlmostEqual(said["prediction_ratio"], said["device_seconds"] / said["predicted_seconds"])
                    self.assertAlmostEqual(said["prediction_ratio"], 1, delta=0.03)
                    self.assertGreater(said["seconds"], 0)
        self.assertNotIn("device_seconds", self.json_of("plan", *self.size, "--device", "sim:h200"))
        large = ("plan", "8192x8192x8192", "--device", "sim:h200x2")
        self.assertEqual(self.json_of(*large, "--devices", 1)["on_more_devices"],
                         [{"devices": 2, "predicted_seconds": self.json_of(*large, "--devices", 2)["predicted_seconds"]}])
        self.assertEqual(self.json_of("plan", "512x512x512", "--device", "sim:h200x2", "--devices", 1)["on_more_devices"], [])
        text = self.run_program("plan", *self.size, "--run", "--device", "sim:h200?timing-only").stdout
        self.assertRegex(text, r"predicted .* took .* ratio (0\.9[789]|1\.0[0123])")

    def test_plans_over_ranks(self):
        # n^3 on a cubic grid: every rank holds 3 n^2 / P words and needs 3 n^2 / P^(2/3).
        n, ranks, network = 16384, 64, 1e9
        said = self.json_of("plan", f"{n}x{n}x{n}", "--dtype", "f64", "--ranks", ranks, "--network", "1e9", "--device", "sim:h200")
        words = 3 * n * n * (ranks ** (-2 / 3) - 1 / ranks)
        self.assertEqual([4, 4, 4], said["grid"])
        self.assertEqual((n // 4,) * 3, tuple(said["local"][key] for key in "mnk"))
        self.assertAlmostEqual(said["received_bytes"] / (8 * words), 1)
        self.assertAlmostEqual(said["network_seconds"] / (8 * words / network), 1)
        self.assertAlmostEqual(said["grid_network_seconds"] / said["network_seconds"], 1)  # the grid reaches the bound
        self.assertEqual([8, 8, 1], said["flat_grid"])
        self.assertAlmostEqual(said["flat_grid_network_seconds"] / (2 * n * n / 8 * (1 - 1 / 8) * 8 / network), 1)
        self.assertEqual(("network", said["network_seconds"]), (said["limit"], said["seconds"]))
        local = self.json_of("plan", f"{n // 4}x{n // 4}x{n // 4}", "--dtype", "f64", "--device", "sim:h200")
        self.assertEqual(local["predicted_seconds"], said["local"]["predicted_seconds"])
        # The network takes over where the bound is longer than a rank's share of the work.
        fast = self.json_of("plan", f"{n}x{n}x{n}", "--dtype", "f64", "--ranks", ranks, "--network", "1e13", "--device", "sim:h200")
        self.assertEqual(fast["local"]["limit"], fast["limit"])
        p, work = fast["network_binds_from_ranks"], ranks * fast["local"]["predicted_seconds"]
        for ranks, binds in ((p, True), (p - 1, False)):
            seconds = 8 * 3 * n * n * (ranks ** (-2 / 3) - 1 / ranks) / 1e13
            self.assertEqual(binds, seconds > work / ranks)
        # One rank receives nothing; a thin product is cut along its long side, and only the small matrix is sent.
        one = self.json_of("plan", "2048x2048x2048", "--ranks", 1, "--gpus-per-rank", 2, "--device", "sim:h200x2")
        self.assertEqual((0, [1, 1, 1]), (one["network_seconds"], one["grid"]))
        thin = self.json_of("plan", "65536x64x64", "--ranks", 16, "--device", "sim:h200")
        self.assertEqual([16, 1, 1], thin["grid"])
        self.assertAlmostEqual(thin["received_bytes"], 4 * 64 * 64 * 15 / 16)
        said = self.json_of("plan", f"{n}x{n}x{n}", "--dtype", "i8", "--ranks", 64, "--device", "sim:h200")
        self.assertAlmostEqual(said["grid_network_seconds"] / (2 * n * n / 8 * (7 / 8) / 50e9), 1)  # partial sums are i32
        said = self.json_of("plan", "1000000x1000000x1000000", "--from", "device", "--ranks", 4096, "--network", "1e9", "--device", "sim:h200")
        self.assertGreater(said["network_binds_from_ranks"], 1)  # one rank receives nothing
        text = self.run_program("plan", f"{n}x{n}x{n}", "--ranks", 64, "--device", "sim:h200").stdout
        self.assertRegex(text, r"64 ranks of 1 GPU as 4 x 4 x 4, 4096 x 4096 x 4096 each")
        self.assertRegex(text, r"the network binds from \d+ ranks on")
        for line in ("plan 8x8x8 --ranks 1024 --device sim:h200", "plan 8x8x8 --ranks 2 --batch 2 --device sim:h200",
                     "plan 8x8x8 --network 1e9 --device sim:h200", "plan 8x8x8 --ranks 2 --run --device sim:h200",
                     "plan 8x8x8 --ranks 2 --network 0 --device sim:h200",
                     "plan 1000000x1000000x1000000 --from device --ranks 2 --device sim:h200"):
            with self.subTest(line=line):
                self.complaint(*line.split())

    def test_predicted_gemms(self):
        a, b = self.matrix("a.npy", 300, 300)[0], self.matrix("b.npy", 300, 300)[0]
        said = self.json_of("gemm", a, b, "--pinned", "--verify", "--device", "sim:h200")
        self.assertAlmostEqual(said["prediction_ratio"], said["device_seconds"] / said["predicted_seconds"])
        self.assertTrue(0.2 < said["prediction_ratio"] < 1.1, said)  # latencies are most of such a small one
        self.assertTrue(said["verify"]["passed"])
        self.assertRegex(self.run_program("gemm", a, b).stdout, r"predicted .* took .* ratio")

    def test_benchmarks(self):
        record = self.json_of("bench", "host", "--quick", "--device", "sim:h200", "--only", "bf16 1024^3 pinned")
        (row,) = record["rows"]
        self.assertGreater(row["predicted_seconds"], 0)
        self.assertAlmostEqual(row["device_seconds"] / row["predicted_seconds"], 1, delta=0.3)  # of a tenth of a millisecond


class Calibrate(Program):
    def setUp(self):
        super().setUp()
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
        self.addCleanup(os.environ.pop, "XDG_CACHE_HOME")
        self.addCleanup(os.environ.pop, "SG_CALIBRATION", None)

    def model_of(self, device="sim:h200"):
        return json.loads(self.run_program("info", "--model", "--device", device).stdout)

    def distorted(self, device="sim:h200"):
        """The device's model with every rate and gap wrong, as if it had been measured."""
        model = self.model_of(device)
        def change(value, path=""):
            for key, inner in list(value.items()) if isinstance(value, dict) else enumerate(value):
                if isinstance(inner, (dict, list)):
                    change(inner, f"{path}.{key}")
                elif str(key).endswith("_per_second") and "staging" not in path and "pageable" not in key:
                    value[key] = inner * 0.55
                elif str(key).endswith("gap_seconds"):
                    value[key] = inner * 3
        change(model)
        model["calibrated"] = {"device": device, "date": "2020-01-01"}
        return model

    def write(self, model, name="model.json", mode=0o600):
        path = self.file(name, (model if isinstance(model, str) else json.dumps(model)).encode())
        path.chmod(mode)
        return path

    def assert_alike(self, measured, truth, path="model"):
        if isinstance(truth, dict):
            for key in truth:
                self.assert_alike(measured[key], truth[key], f"{path}.{key}")
        elif isinstance(truth, list):
            self.assertEqual(len(measured), len(truth), path)
            for i, (x, y) in enumerate(zip(measured, truth)):
                self.assert_alike(x, y, f"{path}[{i}]")
        elif isinstance(truth, float):
            self.assertLess(abs(measured - truth), 0.03 * truth, f"{path}: {measured} instead of {truth}")
        else:
            self.assertEqual(measured, truth, path)

    def test_reproduces_a_simulated_device(self):
        """Calibration from a wrong model finds the simulated device's true model."""
        truth = self.model_of()
        os.environ["SG_CALIBRATION"] = str(self.write(self.distorted()))
        off = self.model_of()
        self.assertAlmostEqual(off["link"]["in_bytes_per_second"], 0.55 * truth["link"]["in_bytes_per_second"])
        out = self.folder / "measured.json"
        self.json_of("calibrate", "--device", "sim:h200", "-o", out)
        measured = json.loads(out.read_text())
        for model in (truth, measured):
            del model["sources"]
        self.assertEqual(measured.pop("calibrated")["device"], "sim:h200")
        self.assert_alike(measured, truth)
        # It is a valid model, and predicts the device's times.
        del os.environ["SG_CALIBRATION"]
        for place in ("pinned", "device"):
            size = ("--m", 8192, "--n", 8192, "--k", 8192, "--compute", "tf32", "--from", place)
            wanted = self.json_of("plan", *size, "--device", "sim:h200")["predicted_seconds"]
            said = self.json_of("plan", *size, "--device", f"sim:{out}")["predicted_seconds"]
            self.assertAlmostEqual(said / wanted, 1, delta=0.03)

    def test_kept_in_the_cache_and_used_when_asked(self):
        said = self.json_of("calibrate", "--device", "sim:pcie3")
        path = pathlib.Path(said["file"])
        self.assertEqual(path, self.folder / "cache" / "streamgemm" / "sim-pcie3.json")
        self.assertEqual((path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777), (0o600, 0o700))
        self.assertEqual([entry.name for entry in path.parent.iterdir()], [path.name])
        self.assertEqual({(row["direction"], row["bytes"]) for row in said["copies"]},
                         {(way, kib << 10) for way in ("in", "out") for kib in (64, 1024, 16384, 65536)})
        for row in (*said["copies"], *said["products"]):
            self.assertAlmostEqual(row["measured_seconds"] / row["predicted_seconds"], 1, delta=0.05, msg=row)
        info = lambda: self.json_of("info", "--device", "sim:pcie3")["devices"][0]
        own = info()
        self.assertNotIn("calibration", own)
        path.write_text(json.dumps({**said["model"], "link": {**said["model"]["link"], "in_bytes_per_second": 9e9}}))
        os.environ["SG_CALIBRATION"] = "1"
        self.assertIn(str(path), info()["calibration"])
        self.assertEqual(info()["link_in_bytes_per_second"], 9e9)
        self.assertIn("calibration: " + str(path), self.run_program("info").stdout)
        os.environ["SG_CALIBRATION"] = "0"
        self.assertEqual(info(), own)

    def machine_of(self, *options):
        """The machine's keys but its devices, and the file that it is in."""
        out = self.folder / "machine.json"
        self.json_of("calibrate", "--quick", "-o", out, *options)
        return {key: value for key, value in json.loads(out.read_text()).items() if key != "devices"}, out

    def test_reproduces_simulated_machines(self):
        for name, limits, edge in (("h200x2", (110e9, 110e9, 153e9), ("nvlink", 392e9)), ("pcie4x2", (48e9, 48e9, 70e9), ("host", 25e9)),
                                   ("unequal2", (75e9, 75e9, 120e9), ("pcie", 22e9))):
            with self.subTest(name):
                os.environ.pop("SG_CALIBRATION", None)
                device = f"sim:{name}"
                first, out = self.machine_of("--device", device)
                wrong = json.loads(out.read_text())
                wrong["peers"][0]["bytes_per_second"] /= 10
                wrong["shared"] = [{"name": "x", "devices": [0, 1], "sum": 2e10}]
                os.environ["SG_CALIBRATION"] = str(self.write(wrong))
                plan = ("plan", "8192x8192x8192", "--dtype", "bf16", "--from", "pinned", "--devices", 2, "--device", device)
                slow = self.json_of(*plan)["predicted_seconds"]
                for machine in (first, self.machine_of("--device", device)[0]):  # plans with wrong figures do not change it
                    (host,), (link,) = machine["shared"], machine["peers"]
                    self.assertEqual(host["devices"], [0, 1])
                    self.assertEqual(link["class"], edge[0])
                    # The order of calls decides which copies of several devices wait.
                    for rate, truth in zip((host["in"], host["out"], host["sum"], link["bytes_per_second"]), (*limits, edge[1])):
                        self.assertAlmostEqual(rate / truth, 1, delta=0.06)
                os.environ["SG_CALIBRATION"] = str(out)
                self.assertIn(str(out), self.json_of("info", "--device", device)["devices"][0]["calibration"])
                fast = self.json_of(*plan)["predicted_seconds"]
                self.assertLess(fast, 0.8 * slow)
                del os.environ["SG_CALIBRATION"]
                self.assertAlmostEqual(fast / self.json_of(*plan)["predicted_seconds"], 1, delta=0.05)

    def test_keeps_a_machine_and_its_devices_in_the_cache(self):
        text = self.run_program("calibrate", "--quick", "--device", "sim:h200x2").stdout
        for part in ("links      of sim:h200x2/0, sim:h200x2/1: in 110 GB/s", "peers      from sim:h200x2/1 to sim:h200x2/0: 392 GB/s",
                     "shared     host: in 110 GB/s"):
            self.assertIn(part, text)
        folder = self.folder / "cache" / "streamgemm"
        self.assertEqual(sorted((path.name, path.stat().st_mode & 0o777) for path in folder.iterdir()),
                         [(f"sim-h200x2-{which}.json", 0o600) for which in ("0-sim-h200x2-1", "0", "1")])
        os.environ["SG_CALIBRATION"] = "1"
        used = lambda device: self.json_of("info", "--device", device)["devices"][0]["calibration"]
        self.assertIn("sim-h200x2-0-sim-h200x2-1.json of", used("sim:h200x2"))
        self.assertIn("sim-h200x2-1.json of", used("sim:h200x2/1"))
        (folder / "sim-h200x2-0-sim-h200x2-1.json").unlink()
        self.assertIn("sim-h200x2-0.json of", used("sim:h200x2"))

    def test_machines_that_are_passed_over(self):
        good = json.loads(self.machine_of("--device", "sim:h200x2")[1].read_text())
        first, second = (row["model"] for row in good["devices"])
        cases = (
            ({**good, "peers": [{**good["peers"][0], "bytes_per_second": 1e17}]}, "beyond belief"),
            ({**good, "peers": [{**good["peers"][0], "class": "wire"}]}, "wire"),
            ({**good, "shared": [{"name": "x", "devices": [0, 2], "in": 1e11}]}, "shared[0].devices"),
            ({**good, "host": {**good["host"], "staging": [{"workers": 4, "bytes_per_second": 1}]}}, "beyond belief"),
            ({**good, "devices": [{"model": second}, {"model": first}]}, "another device, 'sim:h200x2/1'"),
            ({**good, "devices": [{"model": first, "count": 2}]}, "another device, 'sim:h200x2/0'"),
            ({**good, "devices": [{"model": first}], "peers": [], "shared": [], "host": {"nodes": []}}, "measured on 1 devices"),
            ({**good, "wheels": 4}, "wheels"), (first, "devices"), (json.dumps(good)[:-1], ""),
            (json.dumps(good) + " " * (128 << 10), "larger than 128 KiB"),
        )
        for i, (machine, reason) in enumerate(cases):
            with self.subTest(i=i, reason=reason):
                os.environ["SG_CALIBRATION"] = str(self.write(machine))
                said = self.json_of("info", "--device", "sim:h200x2")["devices"][0]["calibration"]
                self.assertIn("passed over", said)
                self.assertIn(reason, said)
        os.environ["SG_CALIBRATION"] = str(self.write(good))
        self.assertNotIn("passed over", self.json_of("info", "--device", "sim:h200x2")["devices"][0]["calibration"])
        for device in ("sim:pcie4x2", "sim:h200x2/1", "sim:h200x4"):
            self.assertIn("passed over", self.json_of("info", "--device", device)["devices"][0]["calibration"])

    def test_cpu(self):
        out = self.folder / "cpu.json"
        said = self.json_of("calibrate", "--device", "cpu", "-o", out)
        self.assertGreater(len(said["products"]), 3)
        os.environ["SG_CALIBRATION"] = str(out)
        info = self.json_of("info", "--device", "cpu")["devices"][0]
        self.assertIn(str(out), info["calibration"])
        self.assertEqual(info["memory_bytes_per_second"], said["model"]["kernels"]["memory_bytes_per_second"])
        a, b = self.matrix("a.npy", 40, 40)[0], self.matrix("b.npy", 40, 40)[0]
        self.run_program("gemm", a, b, "--verify", "--device", "cpu")

    def test_what_is_passed_over(self):
        good = self.distorted()
        def with_link(**figures):
            return {**good, "link": {**good["link"], **figures}}
        text = json.dumps(good)
        cases = (
            (with_link(in_bytes_per_second=1e17), "beyond belief"), (with_link(in_bytes_per_second=1), "beyond belief"),
            (with_link(in_bytes_per_second=-1), "in_bytes_per_second"), (with_link(in_bytes_per_second="x"), "number"),
            (with_link(copy_gap_seconds=5), "beyond belief"), (with_link(wheels=4), "wheels"), ({**good, "wheels": 4}, "wheels"),
            (text.replace('"in_bytes_per_second": ', '"in_bytes_per_second": NaN, "x": ', 1), ""),
            (text.replace('"in_bytes_per_second": ', '"in_bytes_per_second": 1e999, "x": ', 1), ""),
            ({**good, "calibrated": {"device": "sim:a100", "date": "x"}}, "another device"),
            ({k: v for k, v in good.items() if k != "calibrated"}, "calibrated"),
            ({**good, "memory_bytes": 1 << 30}, "other memory"),
            ({**good, "kernels": {**good["kernels"], "units": 7}}, "multiprocessors"),
            ({**good, "kernels": {**good["kernels"], "gemm": [*good["kernels"]["gemm"],
              {"dtype": "f16", "compute": "tf32", "flops_per_second": 1e12}]}}, "which the device does not have"),
            (text + " " * (64 << 10), "larger than 64 KiB"), ("", ""), ("[]", "object"), ("{", ""),
        )
        own = self.model_of()
        for i, (model, reason) in enumerate(cases):
            with self.subTest(i=i, reason=reason):
                os.environ["SG_CALIBRATION"] = str(self.write(model))
                self.passed_over(reason, own)
        usable = self.write(good)
        for mode, reason in ((0o620, "others"), (0o602, "others"), (0o600, None)):
            usable.chmod(mode)
            os.environ["SG_CALIBRATION"] = str(usable)
            if reason:
                self.passed_over(reason, own)
            else:
                self.assertNotIn("passed over", self.model_of()["sources"]["calibration"])
        link = self.folder / "link.json"
        link.symlink_to(usable)
        for value in (str(link), str(self.folder / "none.json"), str(self.folder), "/dev/null", "model.json", "yes", "1"):
            os.environ["SG_CALIBRATION"] = value
            self.passed_over("", own)

    def passed_over(self, reason, own):
        model = self.model_of()
        said = model["sources"].pop("calibration")
        self.assertIn("passed over", said)
        self.assertIn(reason, said)
        self.assertEqual(model, own)

    def test_wrong_usage(self):
        self.complaint("calibrate", "--device", "cuda:99", exits=NO_DEVICE)
        self.complaint("calibrate", "--device", "sim:pcie3", "-o", "/nonexistent/x.json", exits=FAILED)


class BadFiles(Program):
    elements = npy.encode([[1, 2], [3, 4]])[-16:]

    def refused(self, data, reason):
        good, bad = self.file("good.npy", npy.encode([[1, 2], [3, 4]])), self.file("bad.npy", data)
        for pair in ((good, bad), (bad, good)):
            said = self.complaint("gemm", *pair)
            self.assertIn("bad.npy", said)
            self.assertIn(reason, said)

    def test_good_versions(self):
        for version in (1, 2, 3):
            a, x = self.matrix("a.npy", 3, 3, version=version)
            self.run_program("gemm", a, a, "--verify")
        reordered = self.file("r.npy", npy.header(text="{\"shape\":(2,2,),'fortran_order':False,'descr':'<f4'}") + self.elements)
        self.run_program("gemm", reordered, reordered, "--verify")

    def test_not_npy(self):
        self.refused(b"", "not a .npy file")
        self.refused(b"PK\3\4" + bytes(100), "not a .npy file")
        self.refused(b"\x93NUMPY\x04\x00" + bytes(100), "version 4.0")

    def test_truncated(self):
        whole = npy.encode([[1, 2], [3, 4]])
        self.refused(whole[:-1], "truncated")
        self.refused(whole[:-16], "truncated")
        self.refused(whole[:40], "ends within its header")
        self.refused(whole[:9], "ends within its header")

    def test_shapes(self):
        for shape, reason in (("(1000000, 1000000)", "truncated"), ("(4294967296, 4294967296)", "address space"),
                              ("(9223372036854775808, 1)", "64 bits"), ("(-2, 2)", "malformed"), ("(2x7, 2)", "malformed"),
                              ("(2 2)", "malformed"), ("()", "0 dimensions"), ("(4,)", "1 dimensions"),
                              ("(1, 2, 2)", "3 dimensions"), ("4", "malformed")):
            with self.subTest(shape=shape):
                self.refused(npy.header(shape=shape) + self.elements, reason)

    def test_types(self):
        for descr, reason in ((">f4", "big-endian"), ("|O", "objects"), ("<U4", "not supported"), ("<i8", "not supported"),
                              ("<f16", "not supported"), ("|b1", "not supported"), ("<f4\x1b[2J", "not supported")):
            with self.subTest(descr=descr):
                self.refused(npy.header(descr) + self.elements, reason)
        self.refused(npy.header(text="{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2, 2)}"), "structured")

    def test_messages_hold_no_control_characters(self):
        bad = self.file("bad.npy", npy.header("<f4\x1b[2J") + self.elements)
        self.assertNotIn("\x1b", self.complaint("gemm", bad, bad))

    def test_headers(self):
        for text, reason in (("", "malformed"), ("{", "malformed"), ("{}", "lacks"), ("[]", "malformed"),
                             ("{'descr': '<f4", "does not end"), ("{'descr': '<f4', 'descr': '<f4'}", "repeated"),
                             ("{'other': 1}", "unknown"), ("{'fortran_order': 1}", "neither True nor False"),
                             ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} x", "behind")):
            with self.subTest(text=text):
                self.refused(npy.header(text=text) + self.elements, reason)
        self.refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100), "too long")

    def test_no_such_file(self):
        self.assertIn("No such file", self.complaint("gemm", "/nonexistent.npy", "/nonexistent.npy"))
        self.assertIn("not a", self.complaint("gemm", self.folder, self.folder))
        self.assertIn("not a", self.complaint("gemm", "/dev/zero", "/dev/zero"))


class Plan(Program):
    size = ("--m", 8192, "--n", 8192, "--k", 8192)

    def plan(self, *options):
        plan = self.json_of("plan", "--device", "sim:h200", *options)
        self.assertGreaterEqual(plan["predicted_seconds"], plan["bound_seconds"])
        self.assertAlmostEqual(plan["ratio"], plan["predicted_seconds"] / plan["bound_seconds"])
        self.assertTrue(plan["strategy"] and plan["timeline"])
        return plan

    def test_close_to_the_bound(self):
        plan = self.plan(*self.size, "--dtype", "f32", "--compute", "tf32", "--from", "pinned")
        self.assertLessEqual(plan["ratio"], 1.10)
        self.assertAlmostEqual(plan["bytes_in"], 2 * 4 * 8192**2)
        self.assertAlmostEqual(plan["bytes_out"], 4 * 8192**2)

    def test_places(self):
        seconds = [self.plan(*self.size, "--from", place)["predicted_seconds"] for place in ("device", "pinned", "pageable")]
        self.assertEqual(seconds, sorted(seconds))

    def test_memory_limit(self):
        limited = self.plan(*self.size, "--memory-limit", "256MiB")
        self.assertLessEqual(limited["device_bytes"], 256 << 20)
        self.assertGreater(limited["bytes_in"], self.plan(*self.size)["bytes_in"])
        self.complaint("plan", *self.size, "--device", "sim:h200", "--memory-limit", "100", exits=FAILED)

    def test_splits(self):
        resident = (*self.size, "--from", "device", "--layout", "column")
        free = self.plan(*resident)["predicted_seconds"]
        for split in "mnk":
            forced = self.plan(*resident, "--split", split, "--parts", 2)
            self.assertIn("split-" + split, forced["strategy"])
            self.assertGreaterEqual(forced["predicted_seconds"], free)

    def test_types(self):
        for dtype in ("f64", "f32", "c64", "c128", "f16", "bf16", "i8", "f8_e4m3", "f8_e5m2"):
            self.plan("--m", 100, "--n", 200, "--k", 300, "--batch", 3, "--dtype", dtype)

    def test_schedule(self):
        plan = self.plan(*self.size, "--schedule")
        for key in ("strategy", "predicted_seconds", "bound_seconds"):
            self.assertEqual(plan["schedule"][key], plan[key])
        self.assertNotIn("schedule", self.plan(*self.size))

    def test_text(self):
        text = self.run_program("plan", *self.size, "--device", "sim:h200").stdout
        for word in (self.plan(*self.size)["strategy"], "bound", "ratio"):
            self.assertIn(word, text)


class Bench(Program):
    def test_record_and_report(self):
        path = self.folder / "record.json"
        self.run_program("bench", "cpu", "--quick", "--json", path)
        record = json.loads(path.read_text())
        self.assertEqual((record["schema"], record["suite"], record["quick"]), ("streamgemm-bench/1", "cpu", True))
        self.assertTrue(record["commit"] and record["date"] and record["device"]["cores"])
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                self.assertEqual(record["device"]["processor"], line.partition(": ")[2])
        cases = {}
        for row in record["rows"]:
            self.assertTrue(0 < row["min"] <= row["seconds"] <= row["max"] and row["samples"] >= 3 and row["flops"] > 0)
            cases.setdefault(row["case"], []).append(row["variant"])
        self.assertEqual(len(cases), 8)
        self.assertTrue(all("streamgemm" in variants for variants in cases.values()))
        # A peer that lacks a case's type on this processor is left out, and the record says so.
        for left_out in record["left_out"]:
            self.assertNotIn(left_out["variant"], cases[left_out["case"]])
        self.assertIn({"case": "gemm bf16 512^3", "variant": "OpenBLAS x1"}, record["left_out"])
        held = {"streamgemm, queue held, median", "streamgemm, queue held, mean"}
        self.assertLessEqual(held, set(cases["one call, gemm f32 32^3"]))

        record["rows"].append({**record["rows"][0], "variant": "added by a script"})
        path.write_text(json.dumps(record))
        report = self.json_of("report", path)
        self.assertEqual(report["cases"][0]["variants"][-1]["variant"], "added by a script")
        self.assertEqual([case["case"] for case in report["cases"]], list(cases))
        for case in report["cases"]:
            own = next(v["seconds"] for v in case["variants"] if v["variant"] == "streamgemm")
            for variant in case["variants"]:
                self.assertAlmostEqual(variant["ratio"], variant["seconds"] / own)
        self.assertIn("ratio 1.000", self.run_program("report", path).stdout)

    def test_without_the_peers_module(self):
        program = pathlib.Path(shutil.copy(PROGRAM, self.folder))  # the module is beside the original
        library = pathlib.Path(PROGRAM).resolve().parents[2] / "lib/api"
        for place, has_peers in ((PROGRAM, True), (program, False)):
            done = subprocess.run([place, "bench", "cpu", "--quick", "--only", "one call", "--json"], env={**os.environ, "LD_LIBRARY_PATH": str(library)},
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            variants = {row["variant"] for row in json.loads(done.stdout)["rows"]}
            self.assertIn("streamgemm", variants)
            self.assertEqual(any(variant.startswith("OpenBLAS") for variant in variants), has_peers)

    def test_json_on_stdout(self):
        record = self.json_of("bench", "cpu", "--quick", "--only", "one call")
        self.assertEqual({row["case"] for row in record["rows"]}, {"one call, gemm f32 32^3"})

    def rows(self, suite, device, *options):
        record = self.json_of("bench", suite, "--quick", "--device", device, *options)
        self.assertEqual((record["suite"], record["device"]["device"]), (suite, device))
        rows = {}
        for row in record["rows"]:
            self.assertTrue(0 < row["min"] <= row["seconds"] <= row["max"] and row["samples"] >= 3, row)
            rows.setdefault(row["case"], {})[row["variant"]] = row
        return rows

    def test_gpus(self):
        rows = self.rows("gpus", "sim:h200x2", "--peers", FAKE_PEERS)
        self.assertEqual(set(rows), {f"f32 384^3 {memory}, 2 devices" for memory in ("pinned", "pageable")})
        for case in rows.values():
            self.assertEqual(set(case), {"streamgemm", "streamgemm, 2 devices", "1 device", "devices 0 and 1"})
            for row in case.values():
                self.assertGreater(row["seconds"], row["bound_seconds"])
        self.assertIn("several", self.complaint("bench", "gpus", "--quick", "--device", "sim:h200"))

    def test_gpus_of_drawn_cases(self):
        record = self.json_of("bench", "gpus", "--quick", "--device", "sim:h200x2", "--draw", "4", "--seed", "5")
        self.assertEqual({row["variant"] for row in record["rows"]}, {"streamgemm", "1 device"})
        ratios = record["drawn"]["ratios"]
        self.assertEqual(sum(of["over_peer"]["cases"] for of in ratios.values()), 4)
        self.assertLessEqual(set(ratios), {"pinned", "pageable", "mixed"})

    def test_small(self):
        """Every variant's results are compared with a reference before it is measured."""
        ours = {"streamgemm", "streamgemm, one batch", "streamgemm, recorded graph", "streamgemm, no coalescing",
                *(f"streamgemm, {threads} threads" for threads in (4, 8, 16))}
        rows = self.rows("small", "cpu")
        ways = {name: case for name, case in rows.items() if not name.startswith("one ")}
        self.assertEqual(len(ways), 9)
        for case in (*ways.values(), *self.rows("small", "sim:h200", "--only", "mix").values()):
            self.assertLessEqual(ours, set(case))
            self.assertGreater(case["streamgemm"]["products"], 1)
        costs = [case for name, case in rows.items() if name.startswith("one submission of ")]
        self.assertEqual(len(costs), 2)
        for case in costs:
            self.assertEqual({"submit, median", "submit, mean", "submit, 99th percentile", "submit with handles, median",
                              "submit with handles, mean",
                              *(f"submit from {threads} threads, 99th percentile" for threads in (4, 8, 16))}, set(case))
        self.assertIn("streamgemm", rows["one gemm f32 128^3 alone"])

    def test_heads(self):
        for device in ("cpu", "sim:h200"):
            rows = self.rows("heads", device)
            self.assertEqual([case["streamgemm"]["products"] for case in rows.values()], [48, 48, 12])
            for case in rows.values():
                self.assertLessEqual({"streamgemm", "streamgemm, 12 streams", "streamgemm, one strided call"}, set(case))

    def test_priority(self):
        for device, types in (("cpu", ["f32"]), ("sim:h200", ["bf16", "f64"])):
            rows = self.rows("priority", device)
            self.assertEqual([case.split()[1] for case in rows if case.startswith("gemm")], types)
            cases = list(rows.values())
            for latencies, rates in zip(cases[::2], cases[1::2]):
                flooded = {"streamgemm", "streamgemm, a share each", "streamgemm, without priority"}
                self.assertEqual(set(latencies), flooded | {"streamgemm, alone"})
                for variant, row in latencies.items():
                    self.assertTrue(row["seconds"] <= row["p99"] <= row["max"] and row["samples"] >= 40)
                    self.assertEqual("flood_flops" in row, variant != "streamgemm, alone")
                self.assertEqual(set(rates), flooded | {"streamgemm, nothing beside it"})

    def test_graph(self):
        for device in ("cpu", "sim:h200"):
            independent, chain = self.rows("graph", device).values()
            self.assertLessEqual({"streamgemm", "streamgemm, one by one", "streamgemm, one batch"}, set(independent))
            self.assertEqual({"streamgemm", "streamgemm, one by one"}, set(chain))
            self.assertEqual((independent["streamgemm"]["products"], chain["streamgemm"]["products"]), (16, 8))

    def test_accuracy(self):
        for device, peers in (("cpu", ("--peers", FAKE_PEERS)), ("sim:h200", ())):
            rows = self.rows("accuracy", device, *peers)
            self.assertEqual([case.split(", ")[1] for case in rows], ["of both signs", "positive"])
            for case in rows.values():
                self.assertEqual({"streamgemm", "streamgemm, bf16x3", "streamgemm, tf32", "streamgemm, exact"}
                                 | ({"cublasGemmEx", "cublasGemmEx, tf32"} if peers else set()), set(case))
                for variant, row in case.items():
                    self.assertTrue(0 < row["rms_error"] <= row["largest_error"] < 1e-5, (variant, row))

    def test_peers(self):
        """The peers get the same GEMMs as the library: their results are compared too."""
        peers = ("--peers", FAKE_PEERS)
        several = {"cuBLAS, synchronous", "cuBLAS, one stream", *(f"cuBLAS, {n} streams" for n in (4, 8, 16, 32)),
                   "cuBLAS, strided batch", "cuBLAS, grouped", "CUDA graph, one stream", "CUDA graph, 32 streams"}
        (case,) = self.rows("small", "cpu", *peers, "--only", "mix").values()
        self.assertLessEqual(several, set(case))
        self.assertNotIn("cuBLAS, pointer batch", case)
        (case,) = self.rows("small", "cpu", *peers, "--only", "alone").values()
        self.assertIn("cuBLAS, call and synchronize", case)
        independent, chain = self.rows("graph", "cpu", *peers).values()
        for case in (independent, chain):
            self.assertLessEqual({"cuBLAS, one stream", "CUDA graph, one stream"}, set(case))
        latencies, rates = self.rows("priority", "cpu", *peers).values()
        flooded = {"cuBLAS, a stream of high priority", "cuBLAS, an SM count target each",
                   "cuBLAS, a stream of the same priority"}
        self.assertLessEqual(flooded | {"cuBLAS, alone"}, set(latencies))
        self.assertLessEqual(flooded, set(rates))

    def test_absent_peers(self):
        for suite in ("accuracy", "small", "heads", "priority", "graph"):
            self.complaint("bench", suite, "--quick", "--device", "cpu", "--peers", "/nonexistent.so")
            self.complaint("bench", suite, "--quick", "--device", "cuda:99", exits=NO_DEVICE)
            self.complaint("bench", suite, "--quick", "--device", "cpu", "--only", "no such case")

    def test_wrong_results_are_reported(self):
        """A simulated device that keeps time but computes nothing."""
        for suite in ("accuracy", "small", "heads", "priority", "graph", "host"):
            said = self.complaint("bench", suite, "--quick", "--device", "sim:h200?timing-only", exits=VERIFICATION)
            self.assertIn("streamgemm", said)

    def test_no_such_case(self):
        self.complaint("bench", "cpu", "--quick", "--only", "no such case")

    def test_bad_records(self):
        for text in ("", "[]", "{}", '{"schema": "other/1", "rows": []}', '{"schema": "streamgemm-bench/1", "rows": [{}]}',
                     '{"schema": "streamgemm-bench/1", "rows": [{"case": 1}]}', '{"schema": "streamgemm-bench/1"}',
                     '{"schema": "streamgemm-bench/1", "device": ' + "[" * 200000 + "]" * 200000 + ', "rows": []}'):
            self.complaint("report", self.file("bad.json", text.encode()))


if __name__ == "__main__":
    chosen = sys.argv[3:]
    if chosen[:1] == ["--but"]:
        classes = [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Program)]
        assert set(chosen[1:]) <= set(classes), chosen
        chosen = [name for name in classes if name not in ("Program", *chosen[1:])]
    unittest.main(argv=[sys.argv[0], *chosen], verbosity=2)
