#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds PyTorch's rows to a record of `streamgemm bench host`: the same GEMMs from host memory to host memory, copied
in, multiplied and copied out by PyTorch on its current stream. Usage: torch_host.py RECORD.json"""
import json
import os
import statistics
import sys
import time

import torch

SAMPLES = 5


def measure(m, n, k, dtype, pinned):
    def operand(rows, cols):
        made = torch.rand(rows, cols, dtype=dtype) * 2 - 1
        return made.pin_memory() if pinned else made

    a, b, c = operand(m, k), operand(k, n), operand(m, n)

    def once():
        start = time.perf_counter()
        result = a.to("cuda", non_blocking=True) @ b.to("cuda", non_blocking=True)
        c.copy_(result, non_blocking=True)
        torch.cuda.synchronize()
        return time.perf_counter() - start

    once()
    once()
    return [once() for _ in range(SAMPLES)]


def parse(case):
    """A case as the suite names it: "tf32 8192^3 pinned"; None for those with transposes."""
    words = case.split()
    if len(words) != 3:
        return None
    size = [int(x) for x in words[1].split("x")] if "x" in words[1] else [int(words[1].split("^")[0])] * 3
    dtype = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}[words[0]]
    return size, dtype, words[0] == "tf32", words[2] == "pinned"


def main():
    with open(sys.argv[1]) as file:
        record = json.load(file)
    record["device"]["torch"] = torch.__version__
    record["rows"] = [row for row in record["rows"] if row["variant"] != "PyTorch"]
    for row in [row for row in record["rows"] if row["variant"] == "streamgemm"]:
        found = parse(row["case"])
        if found is None:
            continue
        (m, n, k), dtype, tf32, pinned = found
        torch.backends.cuda.matmul.allow_tf32 = tf32
        seconds = measure(m, n, k, dtype, pinned)
        record["rows"].append({**row, "variant": "PyTorch", "seconds": statistics.median(seconds), "samples": SAMPLES,
                               "min": min(seconds), "max": max(seconds)})
        print(f"{row['case']}: PyTorch {statistics.median(seconds) * 1e3:.2f} ms, streamgemm {row['seconds'] * 1e3:.2f} ms")
        with open(sys.argv[1] + ".new", "w") as file:  # after each: an interrupted run keeps its measurements
            json.dump(record, file, indent=2)
            file.write("\n")
        os.replace(sys.argv[1] + ".new", sys.argv[1])


if __name__ == "__main__":
    main()
