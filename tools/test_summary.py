#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the slowest tests of Meson's test logs, the time of each suite beside its budget, the times of each stage, and the
results as "N passed, N failed, N skipped", with the last lines that each failed test printed; fails unless all passed.

usage: test_summary.py --broken N --budget FILE --stages "NAME BUILD USER SYSTEM TEST USER SYSTEM"... --seconds N -- LOG.json...
--broken: stages that left no log, each a failure; --stages: seconds of each build and of its tests, and those of its processors;
--seconds: what all of it took
"""
import argparse
import collections
import json
import pathlib
import sys

LAST_LINES = 25

parser = argparse.ArgumentParser()
parser.add_argument("--broken", type=int, default=0)
parser.add_argument("--budget", type=pathlib.Path)
parser.add_argument("--stages", nargs="*", default=[])
parser.add_argument("--seconds", type=int, default=0)
parser.add_argument("logs", nargs="*", type=pathlib.Path)
given = parser.parse_args()

results = collections.Counter()
suites = collections.Counter()
failed = []
durations = []
for log in given.logs:
    for line in log.read_text().splitlines() if log.exists() else []:
        test = json.loads(line)
        results[test["result"]] += 1
        durations.append((test["duration"], f"{log.stem}: {test['name']}"))
        suite = test["name"].partition(" / ")[0].rpartition(":")[2].partition("+")[0]
        suites[log.stem, suite] += test["duration"]
        if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL"):
            printed = (test.get("stdout", "") + test.get("stderr", "")).splitlines()[-LAST_LINES:]
            failed.append([f"{log.stem}: {test['name']} ({test['result']})", *printed])
rows = [line.split("#")[0].split() for line in given.budget.read_text().splitlines()] if given.budget else []
budget = {(stage, suite): float(seconds) for stage, suite, seconds in filter(None, rows)}

print("slowest tests, in seconds:")
for seconds, name in sorted(durations, reverse=True)[:20]:
    print(f"{seconds:8.1f}  {name}")
print("suites, in seconds: their tests and their budget")
for (stage, suite), seconds in sorted(suites.items()):
    allowed = budget.get((stage, suite), 0)
    print(f"{seconds:8.1f} {allowed:6.0f}  {stage}: {suite}{'  over' if seconds > allowed else ''}")
print("stages, in seconds (those of the processors):")
for stage in given.stages:
    name, build, *build_cpu, tests, user, system = stage.split()
    cpu = [sum(map(float, each)) for each in (build_cpu, (user, system))]
    print(f"{name}: build {float(build):.0f} ({cpu[0]:.0f}), tests {float(tests):.0f} ({cpu[1]:.0f})")
print(f"all of it: {given.seconds // 60} min {given.seconds % 60} s")
passed = results["OK"] + results["EXPECTEDFAIL"]
for name, *printed in failed:
    print("failed:", name)
    for line in printed:
        print("   ", line[:200])
if given.broken:
    print("stages that did not build:", given.broken)
print(f"{passed} passed, {len(failed) + given.broken} failed, {results['SKIP']} skipped")
sys.exit(1 if failed or given.broken or not passed else 0)
