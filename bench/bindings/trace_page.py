#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long headless Chromium takes to open the page of a trace of 1,000,000 events: until it is drawn and its tables are filled.

usage: trace_page.py [--json FILE [--commit COMMIT]] [--events N] [--rounds N]
"""
import argparse
import datetime
import json
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import streamgemm as sg


def record(events):
    """A trace of small jobs on eight streams of a simulated device."""
    a = np.ones((8, 8), np.float32)
    with sg.Context("sim:h200?timing-only") as context:
        streams = [context.stream() for _ in range(8)]
        with sg.Trace(max_events=events) as trace:
            for _ in range(events // 64 // 3):
                for job in [context.gemm_async(a, a, stream=stream) for stream in streams * 8]:
                    job.result()
        figures = trace.metrics(context)
        if figures.events < events:
            sys.exit(f"only {figures.events} events were recorded")
        return trace


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or sys.exit("chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        trace = record(given.events)
        start = time.perf_counter()
        trace.write(page)
        written = time.perf_counter() - start
        opened = []
        for _ in range(given.rounds):
            command = [chromium, "--headless", "--no-sandbox", "--dump-dom", page.as_uri()]
            document = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
            opened.append(int(re.search(rb'data-milliseconds="(\d+)"', document)[1]) * 1e-3)
        size = page.stat().st_size
    print(f"{given.events} events, {size / 1e6:.1f} MB, written in {written:.2f} s, opened in {statistics.median(opened):.2f} s"
          f" ({min(opened):.2f} to {max(opened):.2f})")  # fmt: skip
    if given.json:
        content = {
            "schema": "streamgemm-bench/1", "suite": "trace page", "version": sg.__version__, "commit": given.commit,
            "date": datetime.date.today().isoformat(), "machine": platform.platform(),
            "rows": [{"case": f"{given.events} events", "variant": "open in Chromium", "seconds": statistics.median(opened),
                      "samples": len(opened), "all_seconds": opened, "bytes": size, "written_seconds": written}],
        }  # fmt: skip
        pathlib.Path(given.json).write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
