#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lines of HostGemms as a record. usage: java_record.py LINES COMMIT GPU RECORD.json"""

import datetime
import json
import pathlib
import sys


def main():
    lines, commit, gpu, record = sys.argv[1:]
    found = [json.loads(line) for line in pathlib.Path(lines).read_text().splitlines()]
    if not found:
        sys.exit(f"{lines} has no lines")
    keys = ("case", "seconds", "samples", "min", "max", "error")
    everything = {
        "schema": "streamgemm-bench/1",
        "suite": "java",
        "commit": commit,
        "date": datetime.date.today().isoformat(),
        "device": {"name": gpu},
        "rows": [{"variant": "streamgemm"} | {key: each[key] for key in keys} for each in found],
    }
    pathlib.Path(record).write_text(json.dumps(everything, indent=2) + "\n")


if __name__ == "__main__":
    main()
