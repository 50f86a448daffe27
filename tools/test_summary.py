#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the results in Meson's test logs and prints them as "N passed, N failed"; fails unless all passed.

usage: test_summary.py --broken N LOG.json...      N stages that left no log, each a failure
"""
import argparse
import collections
import json
import pathlib
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--broken", type=int, default=0)
parser.add_argument("logs", nargs="*", type=pathlib.Path)
given = parser.parse_args()

results = collections.Counter()
failed = []
for log in given.logs:
    for line in log.read_text().splitlines() if log.exists() else []:
        test = json.loads(line)
        results[test["result"]] += 1
        if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL"):
            failed.append(f"{log.stem}: {test['name']} ({test['result']})")

passed = results["OK"] + results["EXPECTEDFAIL"]
for line in failed:
    print("failed:", line)
if given.broken:
    print("stages that did not build:", given.broken)
if results["SKIP"]:
    print("skipped:", results["SKIP"])
print(f"{passed} passed, {len(failed) + given.broken} failed")
sys.exit(1 if failed or given.broken or not passed else 0)
