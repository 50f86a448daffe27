#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The records of before_after.sh as a table: seconds before, seconds after and their ratio, row by row, and the mean
ratio of each suite. A figure is the median of the turns; its spread is the difference between the largest and the
least of them, relative to it. A row is slower when the ratio is above 1.03 plus the larger of the two spreads; the
median cost of a submission when it is above 1.05. Exits with 1 when a row is slower in the first turns and also in
those that repeat it.

usage: before_after.py OUT... [--slower] [--json RECORD [--command TEXT]]
"""
import argparse
import json
import math
import pathlib
import statistics
import sys

SLACK = 0.03  # beyond the spread
SUBMISSION = 0.05
PEERS = ("OpenBLAS", "oneDNN")  # which the suites measure on cpu


def read(folders):
    """The records in the folders, and of each suite, case and variant its figure in each turn."""
    records = [json.loads(path.read_text()) for folder in folders for path in sorted(folder.glob("*.json"))]
    figures = {}
    for record in records:
        for row in record["rows"]:
            if row["variant"].startswith(PEERS):
                continue
            figures.setdefault((record["suite"], row["case"], row["variant"]), []).append(row["seconds"])
            if "p99" in row:
                figures.setdefault((record["suite"], row["case"], row["variant"] + ", p99"), []).append(row["p99"])
    return records, figures


def compare(key, before, after):
    suite, case, variant = key
    row = {"suite": suite, "case": case, "variant": variant}
    for name, values in (("before", before), ("after", after)):
        middle = statistics.median(values)
        row[name] = {"seconds": middle, "spread": (max(values) - min(values)) / middle, "turns": len(values)}
    row["ratio"] = row["after"]["seconds"] / row["before"]["seconds"]
    if case.startswith("one submission") and variant.endswith("median"):
        row["allowed"] = 1 + SUBMISSION
    else:
        row["allowed"] = 1 + SLACK + max(row["before"]["spread"], row["after"]["spread"])
    row["slower"] = row["ratio"] > row["allowed"]
    return row


def rows_of(folders):
    before, after = (read([folder / build for folder in folders])[1] for build in ("before", "after"))
    return {key: compare(key, before[key], after[key]) for key in before if key in after}


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def line(row, note=""):
    return (f"{row['suite']:9}{row['case'] + ', ' + row['variant']:88}{row['before']['seconds'] * 1e6:10.2f} us"
            f" {row['before']['spread']:6.1%}{row['after']['seconds'] * 1e6:10.2f} us {row['after']['spread']:6.1%}"
            f"{row['ratio']:7.3f}{note}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path, nargs="+", help="of one machine: their turns are taken together")
    parser.add_argument("--slower", action="store_true", help="only name what to measure again, as SUITE=CASE")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--command", default="", help="for the record")
    options = parser.parse_args()

    rows = rows_of([out / "first" for out in options.out])
    if not rows:
        sys.exit("before_after.py: no records of both builds")
    if options.slower:
        for suite, case in sorted({(row["suite"], row["case"]) for row in rows.values() if row["slower"]}):
            print(f"{suite}={case}")
        return 0

    again = rows_of([out / "again" for out in options.out])
    failed = 0
    for key, row in rows.items():
        if key in again:
            row["again"] = {name: again[key][name] for name in ("before", "after", "ratio", "allowed", "slower")}
            row["slower"] = row["slower"] and row["again"]["slower"]
        failed |= row["slower"]
        print(line(row, "  SLOWER" if row["slower"] else ""))
        if "again" in row:
            print(line(again[key], "  again"))
    means = {}
    for suite in dict.fromkeys(row["suite"] for row in rows.values()):
        logs = [math.log(row["ratio"]) for row in rows.values() if row["suite"] == suite]
        means[suite] = math.exp(statistics.fmean(logs))
        print(f"{suite}: {len(logs)} rows, geometric mean of their ratios {means[suite]:.3f}")
    print(f"slower: {sum(row['slower'] for row in rows.values())} of {len(rows)} rows")

    if options.json:
        before, after = (read([options.out[0] / "first" / build])[0][0] for build in ("before", "after"))
        gpu = (options.out[0] / "gpu").read_text().strip()
        device = after["device"]
        record = {"schema": "streamgemm-before-after/1", "before": before["commit"], "after": after["commit"],
                  "date": after["date"], "device": gpu or device.get("device") or f"{device['processor']}, {device['cores']} cores",
                  "command": options.command, "mean_ratios": means}
        lines = ",\n".join("    " + json.dumps(rounded(row)) for row in rows.values())
        options.json.write_text(json.dumps(rounded(record), indent=2)[:-2] + f',\n  "rows": [\n{lines}\n  ]\n}}\n')
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
