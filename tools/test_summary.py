#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the slowest tests of Meson's test logs, the time of each build, and the results as "N passed, N failed"; fails
unless all passed.

usage: test_summary.py --broken N --builds "NAME SECONDS"... --seconds N -- LOG.json...
--broken: stages that left no log, each a failure; --seconds: what all of it took
"""
import argparse
import collections
import json
import pathlib
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--broken", type=int, default=0)
parser.add_argument("--builds", nargs="*", default=[])
parser.add_argument("--seconds", type=int, default=0)
parser.add_argument("logs", nargs="*", type=pathlib.Path)
given = parser.parse_args()

results = collections.Counter()
failed = []
durations = []
for log in given.logs:
    for line in log.read_text().splitlines() if log.exists() else []:
        test = json.loads(line)
        results[test["result"]] += 1
        durations.append((test["duration"], f"{log.stem}: {test['name']}"))
        if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL"):
            failed.append(f"{log.stem}: {test['name']} ({test['result']})")

print("slowest tests, in seconds:")
for seconds, name in sorted(durations, reverse=True)[:20]:
    print(f"{seconds:8.1f}  {name}")
for name, seconds in (build.split() for build in given.builds):
    print(f"build of {name}: {seconds} s")
print(f"all of it: {given.seconds // 60} min {given.seconds % 60} s")
passed = results["OK"] + results["EXPECTEDFAIL"]
for line in failed:
    print("failed:", line)
if given.broken:
    print("stages that did not build:", given.broken)
if results["SKIP"]:
    print("skipped:", results["SKIP"])
print(f"{passed} passed, {len(failed) + given.broken} failed")
sys.exit(1 if failed or given.broken or not passed else 0)
