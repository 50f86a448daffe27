#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the program `streamgemm` measures over streams, and of what it does with records: `bench streams`, `bench
overlap`, `bench compare` and `report`.

usage: records_test.py STREAMGEMM [TEST...]
"""
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

from program import FAILED, OK, PROGRAM, USAGE, Program

RESULTS = sorted((pathlib.Path(__file__).resolve().parents[2] / "bench/results").glob("*.json"))


def row(case, variant, samples, **more):
    return {"case": case, "variant": variant, "seconds": statistics.median(samples), "samples": len(samples),
            "min": min(samples), "max": max(samples), "flops": 1e9, "bytes_in": 0, "bytes_out": 0, "bound_seconds": None,
            "all_seconds": samples, **more}


class Records(Program):
    def record(self, name, rows, suite="planted", **more):
        content = {"schema": "streamgemm-bench/1", "suite": suite, "version": "0.0.0", "commit": "0123456789ab",
                   "date": "2026-01-01T00:00:00Z", "command": "streamgemm bench planted",
                   "device": {"device": "cuda:0", "gpu": "NVIDIA H200", "driver": "580.1"}, "rows": rows, **more}
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
        return path


class Suites(Program):
    def cases(self, suite, device, *options):
        record = self.json_of("bench", suite, "--quick", "--device", device, *options)
        self.assertEqual((record["suite"], record["device"]["device"]), (suite, device))
        self.assertIn(f"bench {suite} --quick", record["command"])
        self.assertEqual(record["device"].get("clock"), "virtual" if device.startswith("sim") else None)
        cases = {}
        for each in record["rows"]:
            self.assertEqual(each["samples"], len(each["all_seconds"]))
            self.assertEqual(each["seconds"], statistics.median(each["all_seconds"]))
            self.assertTrue(0 < each["min"] <= each["seconds"] <= each["max"], each)
            self.assertGreater(each["bound_seconds"], 0)
            cases.setdefault(each["case"], {})[each["variant"]] = each
        for case in cases.values():
            self.assertEqual(len({each["baseline"] for each in case.values()}), 1)
            self.assertIn(case["streamgemm"]["baseline"], case)
        return cases

    def test_streams(self):
        """Each variant's results are compared with a reference before it is measured."""
        counts = {f"streamgemm, {n} stream{'s' if n > 1 else ''}" for n in (1, 2, 4, 8, 16)}
        for device in ("sim:h200", "cpu"):
            cases = self.cases("streams", device)
            self.assertEqual(len(cases), 8)
            for name, case in cases.items():
                self.assertEqual(case["streamgemm"]["baseline"], "streamgemm, 1 stream")
                extra = {"streamgemm, one batch"} if "gemm" in name else set()
                if "gemm" not in name and name.endswith("pinned"):
                    extra = {f"{count}, B copied once" for count in counts}
                self.assertEqual(set(case), {"streamgemm"} | counts | extra, name)
                self.assertEqual(case["streamgemm"]["bytes_in"] > 0, name.endswith("pinned"), name)

    def test_virtual_time(self):
        """The time of a GEMM alone is the same in each sample, and near the bound for a large one."""
        record = self.json_of("bench", "streams", "--seconds", 0.01, "--device", "sim:h200?timing-only", "--only", "f32 8192^3 res")
        rows = {each["variant"]: each for each in record["rows"] if each["case"].startswith("f32")}
        self.assertEqual(record["device"]["results"], "not computed")
        for each in rows.values():
            self.assertTrue(1 <= each["seconds"] / each["bound_seconds"] < 1.1, each)
        self.assertEqual(len(set(rows["streamgemm"]["all_seconds"])), 1)

    def test_overlap(self):
        parts = {"copies in alone", "GEMMs alone", "copies out alone"}
        for device in ("sim:h200", "cpu"):
            (case,) = self.cases("overlap", device).values()
            ways = {"streamgemm", "streamgemm, in sequence on 1 stream", "streamgemm, grouped by kind, a stream each"}
            ways |= {f"streamgemm, {way}, {n} streams" for way in ("GEMM by GEMM", "grouped by kind") for n in (2, 4, 8)}
            self.assertEqual(set(case), ways | parts)
            self.assertEqual({name for name, each in case.items() if each.get("part")}, parts)
            for each in case.values():
                self.assertEqual(each["bound_seconds"], max(case[part]["seconds"] for part in parts))
            sequence = case["streamgemm, in sequence on 1 stream"]
            self.assertAlmostEqual(sequence["sum_of_parts"], sum(case[part]["seconds"] for part in parts))
            self.assertEqual(case["copies in alone"]["flops"], 0)
            if device == "cpu":
                continue
            for way in ways:
                self.assertGreaterEqual(case[way]["seconds"], 0.999 * case[way]["bound_seconds"], way)
            self.assertLess(case["streamgemm, grouped by kind, a stream each"]["seconds"], 0.8 * sequence["seconds"])

    def test_drawn(self):
        """Drawn GEMMs are the same from a seed; each result is compared with sums of products."""
        for device in ("cpu", "sim:h200"):
            drawn = [self.json_of("bench", "host", "--quick", "--draw", 24, "--seed", seed, "--most-flops", 4e6, "--device", device)
                     for seed in (3, 3, 4)]
            first, again, other = ([row["case"] for row in record["rows"]] for record in drawn)
            self.assertEqual((first, len(first)), (again, 24))
            self.assertNotEqual(first, other)
            words = {word for case in first for word in case.split()}
            self.assertLessEqual({"f64", "f32", "f16", "bf16", "NN", "NT", "TN", "TT", "pinned", "pageable"}, words)
            said = drawn[0]["drawn"]
            self.assertEqual((said["seed"], said["cases"], said["most_flops"]), (3, 24, 4e6))
            key = "device_seconds" if device.startswith("sim") else "seconds"
            ratios = {row["case"]: row[key] / row["bound_seconds"] for row in drawn[0]["rows"] if row["case"].endswith(" pinned")}
            pinned = said["ratios"]["pinned"]["over_bound"]
            self.assertEqual((pinned["cases"], pinned["worst_case"]), (len(ratios), max(ratios, key=ratios.get)))
            self.assertAlmostEqual(pinned["mean"], math.exp(statistics.fmean(math.log(each) for each in ratios.values())))
        text = self.run_program("bench", "host", "--quick", "--draw", 2, "--most-flops", 2e6, "--device", "cpu").stdout
        self.assertRegex(text, r"ratios of the drawn cases, seed \d+\n.*over_bound .* mean .* worst ")
        resident = self.json_of("bench", "resident", "--quick", "--draw", 12, "--seed", 3, "--most-flops", 4e6, "--device", "sim:h200")
        names = {row["case"] for row in resident["rows"]}
        self.assertEqual((len(names), resident["drawn"]["cases"]), (12, 12))
        self.assertEqual(resident["drawn"]["ratios"], {})  # there is no peer without a GPU
        few = self.json_of("bench", "host", "--quick", "--draw", 40, "--seed", 3, "--most-flops", 4e6, "--device", "cpu", "--limit", 1e-6)
        self.assertEqual(len({row["case"] for row in few["rows"]}), 1)  # the first case is always measured
        self.assertIn("only the suites gpus, host and resident", self.complaint("bench", "cpu", "--draw", 2))
        self.assertIn("requires --draw", self.complaint("bench", "host", "--seed", 2))

    def test_failures(self):
        for suite in ("streams", "overlap"):
            self.complaint("bench", suite, "--quick", "--device", "sim:h200?fail-copy=9", exits=FAILED)
            self.assertIn("no such case", self.complaint("bench", suite, "--quick", "--device", "cpu", "--only", "no such case"))
            self.assertIn("nonexistent", self.complaint("bench", suite, "--peers", "/nonexistent.so"))


class Compare(Records):
    def judge(self, *arguments, exits=OK):
        """The rows of a comparison by case, and its record."""
        done = subprocess.run([PROGRAM, "bench", "compare", *map(str, arguments), "--json"], text=True, capture_output=True,
                              timeout=300)
        self.assertEqual(done.returncode, exits, done.stdout + done.stderr)
        self.assertEqual(bool(done.stderr), exits != OK)
        record = json.loads(done.stdout)
        return {each["case"]: each for each in record["rows"]}, record

    def pair(self, factors, noise, samples, seed=1):
        """Two records whose cases differ by these factors, apart from noise."""
        chance = random.Random(seed)
        def made(factor):
            return [1e-3 * factor * math.exp(chance.gauss(0, noise)) for _ in range(samples)]
        cases = {f"case {i}": factor for i, factor in enumerate(factors)}
        return (self.record("a.json", [row(case, "streamgemm", made(1)) for case in cases]),
                self.record("b.json", [row(case, "streamgemm", made(factor)) for case, factor in cases.items()]))

    def test_planted_differences(self):
        rows, record = self.judge(*self.pair([1, 1.1, 0.9], 0.005, 9), exits=FAILED)
        self.assertEqual([each["verdict"] for each in rows.values()], ["same", "slower", "faster"])
        self.assertTrue(rows["case 1"]["low"] <= 1.1 <= rows["case 1"]["high"])
        mean = math.exp(statistics.fmean(math.log(each["ratio"]) for each in rows.values()))
        self.assertAlmostEqual(record["mean_ratio"], mean)
        self.assertAlmostEqual(record["mean_ratios"]["planted"], mean)
        text = subprocess.run([PROGRAM, "bench", "compare", self.folder / "a.json", self.folder / "b.json"], text=True,
                              capture_output=True)
        self.assertEqual(text.returncode, FAILED)
        self.assertIn("3 rows: 1 faster, 1 slower, 1 same, 0 with not enough samples; geometric mean", text.stdout)
        self.assertIn("b.json: 1 of 3 rows is slower than in", text.stderr)

    def test_tolerance(self):
        pair = self.pair([1.1], 0.005, 9)
        self.assertEqual(self.judge(*pair, "--tolerance", 0.2)[0]["case 0"]["verdict"], "same")
        self.assertEqual(self.judge(*pair, "--tolerance", 0.1)[0]["case 0"]["verdict"], "not enough samples")

    def test_noise_is_not_judged(self):
        pair = self.pair([1] * 400, 0.05, 10)
        rows, _ = self.judge(*pair)
        self.assertTrue(all(each["verdict"] != "slower" for each in rows.values()))
        # Without tolerance one row in forty may be called slower by chance, and one in forty faster.
        rows, _ = self.judge(*pair, "--tolerance", 0, exits=FAILED)
        for verdict in ("slower", "faster"):
            self.assertLessEqual(sum(each["verdict"] == verdict for each in rows.values()), 20)

    def test_intervals_hold_the_true_ratio(self):
        for samples in (4, 5, 12, 25):
            rows, _ = self.judge(*self.pair([1.02] * 400, 0.03, samples), "--tolerance", 1)
            held = sum(each["low"] <= 1.02 <= each["high"] for each in rows.values())
            self.assertGreaterEqual(held, 370, samples)

    def test_known_intervals(self):
        """By the tables of the rank sum test: of 4 and 4 samples all 16 ratios, of 8 and 8 those from the 14th on."""
        for count, place in ((4, 1), (5, 3), (8, 14)):
            a, b = [1 + i / 100 for i in range(count)], [2 + i * i / 100 for i in range(count)]
            rows, _ = self.judge(self.record("a.json", [row("x", "streamgemm", a)]), self.record("b.json", [row("x", "streamgemm", b)]),
                                 "--tolerance", 9)
            ratios = sorted(y / x for x in a for y in b)
            self.assertAlmostEqual(rows["x"]["low"], ratios[place - 1])
            self.assertAlmostEqual(rows["x"]["high"], ratios[-place])
            self.assertAlmostEqual(rows["x"]["ratio"], statistics.median(ratios))

    def test_few_samples(self):
        rows, _ = self.judge(*self.pair([3], 0.01, 3))
        self.assertEqual((rows["case 0"]["verdict"], rows["case 0"]["low"]), ("not enough samples", None))

    def test_records_without_samples(self):
        """Older ones have the extremes only, which give a wider interval."""
        a, b = self.pair([1.5], 0.01, 9)
        for path in (a, b):
            content = json.loads(path.read_text())
            del content["rows"][0]["all_seconds"]
            path.write_text(json.dumps(content))
        (each,) = self.judge(a, b, exits=FAILED)[0].values()
        rows = [json.loads(path.read_text())["rows"][0] for path in (a, b)]
        self.assertAlmostEqual(each["low"], rows[1]["min"] / rows[0]["max"])
        self.assertAlmostEqual(each["high"], rows[1]["max"] / rows[0]["min"])

    def test_folders(self):
        """With four records on each side, each counts once: the samples of a run say nothing of how runs differ."""
        for turn, (a, b) in enumerate(((1.0, 1.3), (1.2, 1.1), (1.1, 1.2), (1.3, 1.0))):
            for side, seconds in (("a", a), ("b", b)):
                rows = [row("x", "streamgemm", [seconds * (1 + i / 1000) for i in range(9)], p99=2 * seconds),
                        row("x", "OpenBLAS x2", [seconds] * 9)]
                self.record(f"{side}/{turn}.json", rows)
        record = self.judge(self.folder / "a", self.folder / "b", "--skip", "OpenBLAS")[1]
        self.assertEqual([each["variant"] for each in record["rows"]], ["streamgemm", "streamgemm, p99"])
        self.assertEqual((record["a_records"], record["rows"][0]["a_samples"]), (4, 4))
        self.assertEqual(record["rows"][0]["verdict"], "not enough samples")
        self.assertTrue(record["rows"][0]["low"] < 0.8 and record["rows"][0]["high"] > 1.25)

    def test_a_run_with_itself(self):
        path = self.folder / "record.json"
        self.run_program("bench", "overlap", "--quick", "--device", "sim:h200", "--json", path)
        rows, record = self.judge(path, path)
        self.assertEqual(record["mean_ratio"], 1)
        self.run_program("bench", "compare", path, path, "--json", self.folder / "comparison.json")
        self.assertIn("geometric mean", self.run_program("report", self.folder / "comparison.json").stdout)

    def test_bad_usage(self):
        good = self.record("good.json", [row("x", "streamgemm", [1.0] * 5)])
        other = self.record("other.json", [row("y", "streamgemm", [1.0] * 5)], suite="unlike")
        (self.folder / "empty").mkdir()
        for arguments, words in (((), ["A is required"]), ((good,), ["B is required"]),
                                 ((good, other), ["good.json", "other.json", "planted", "unlike", "in common"]),
                                 ((good, "/nonexistent.json"), ["/nonexistent.json"]),
                                 ((good, self.folder / "empty"), ["empty", "*.json"]),
                                 ((good, good, "--tolerance", "-1"), ["--tolerance", "-1"]),
                                 ((good, good, "--tolerance", "much"), ["--tolerance", "much"]),
                                 ((good, good, "--confidence", "95"), ["--confidence", "95"])):
            said = self.complaint("bench", "compare", *arguments)
            for word in words:
                self.assertIn(word, said)
        for change, words in (({"seconds": 0}, ["row 1", "'seconds' is 0"]), ({"seconds": "1"}, ["'seconds'"]),
                              ({"case": 5}, ["'case'"]), ({"all_seconds": [1, -1]}, ["'all_seconds' has -1"]),
                              ({"all_seconds": 3}, ["'all_seconds'"]), ({"samples": -2}, ["'samples' is -2"])):
            rows = [row("x", "streamgemm", [1.0] * 5), {**row("x", "peer", [1.0] * 5), **change}]
            for verb in (("bench", "compare", good), ("report",)):
                said = self.complaint(*verb, self.record("bad.json", rows))
                for word in ("bad.json", "row 1", *words):
                    self.assertIn(word, said)


class Report(Records):
    def page(self, *records):
        path = self.folder / "page.html"
        self.assertEqual(self.run_program("report", *records, "--html", path).stdout, "")
        text = path.read_text()
        for word in ("http:", "https:", "<script", "<link", "src=", "url(", "@import"):
            self.assertNotIn(word, text.replace("http://www.w3.org/2000/svg", ""), "the page needs no other file")
        root = xml.fromstring(text.replace("<!DOCTYPE html>", ""))
        return root, " ".join("".join(root.itertext()).split())

    def test_page(self):
        streams = self.folder / "streams.json"
        self.run_program("bench", "streams", "--quick", "--device", "sim:h200", "--json", streams)
        rows = json.loads(streams.read_text())["rows"]
        root, text = self.page(streams)
        for word in ("Suite streams", "sim:h200", "streamgemm bench streams --quick", "Driver", "Commit", "of the bound",
                     "number of streams", *{each["case"] for each in rows}, *{each["variant"] for each in rows}):
            self.assertIn(word, text)
        self.assertEqual(len(root.findall(".//tbody/tr")), len(rows))
        self.assertEqual(len(root.findall(".//td/svg")), len(rows))
        self.assertEqual(len(root.findall(".//polyline")), 10, "panels in 4 cases, B copied once in 2, equal GEMMs in 4")
        for element in root.iter("circle"):
            self.assertGreaterEqual(float(element.get("cx")), 0)

    def test_names_are_escaped(self):
        odd = 'a < b & "c" | d_e'
        record = self.record("odd.json", [row(odd, "streamgemm", [1.0]), row(odd, odd, [2.0])], command="x & <y>")
        self.assertIn(odd, self.page(record)[1])
        markdown = self.folder / "odd.md"
        self.run_program("report", record, "-o", markdown)
        self.assertIn(r"a \< b & \"c\" \| d\_e".replace(r"\"", '"'), markdown.read_text())

    def test_markdown(self):
        rows = [row("x", "streamgemm", [1e-3], bound_seconds=5e-4), row("x", "peer", [2e-3], bound_seconds=5e-4, baseline="streamgemm"),
                row("y", "peer", [2e-3], products=10)]
        path = self.folder / "table.md"
        self.run_program("report", self.record("r.json", rows), "-o", path)
        lines = path.read_text().splitlines()
        table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
        self.assertEqual(table[0], ["case", "variant", "time", "least to largest", "rate", "ratio to streamgemm", "each",
                                    "ratio to baseline", "of the bound"])
        self.assertEqual({len(line) for line in table}, {9})
        self.assertEqual(table[3], ["x", "peer", "2.00 ms", "2.00 ms to 2.00 ms", "500 Gflop/s", "2.000", "", "2.000", "25.0%"])
        self.assertEqual(table[4][5:7], ["", "200 us"])
        for line in ("- Device: cuda:0, NVIDIA H200, driver 580.1", "- Driver: 580.1", "- Command: `streamgemm bench planted`"):
            self.assertIn(line, lines)

    def test_all_results(self):
        """Those of the repository, of every schema."""
        self.assertGreater(len(RESULTS), 15)
        root, text = self.page(*RESULTS)
        self.assertEqual(len(root.findall(".//h2")), len(RESULTS))
        count = sum(len(json.loads(path.read_text())["rows"]) for path in RESULTS)
        self.assertEqual(len(root.findall(".//tbody/tr")), count)
        self.assertIn("NVIDIA H200", text)
        reports = self.json_of("report", *RESULTS)
        self.assertEqual(len(reports), len(RESULTS))
        self.run_program("report", *RESULTS)

    def test_bad_usage(self):
        good = self.record("good.json", [row("x", "streamgemm", [1.0] * 5)])
        for arguments, words in (((), ["RECORDS is required"]), ((good, "-o", "page.pdf"), ["page.pdf", ".html or .md"]),
                                 ((good, "/nonexistent.json"), ["/nonexistent.json: cannot be opened"]),
                                 ((good, self.folder), ["is a folder"]),
                                 ((good, self.file("text.json", b"no")), ["text.json: is not JSON"]),
                                 ((good, self.file("other.json", b'{"schema": "other/1"}')), ["other.json: is not a record"]),
                                 ((good, "-o", "a.md", "--html", "b.html"), ["--html", "excludes"])):
            said = self.complaint("report", *arguments)
            for word in words:
                self.assertIn(word, said)
        for option in ("--html", "--markdown"):
            said = self.complaint("report", good, option, "/nonexistent/file.html", exits=FAILED)
            self.assertIn("/nonexistent/file.html: cannot be written", said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
