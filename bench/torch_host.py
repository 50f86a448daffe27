#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds PyTorch's rows to a record of `streamgemm bench host`: the same GEMMs from host memory to host memory, copied
in, multiplied and copied out by PyTorch on its current stream. Usage: torch_host.py RECORD.json"""
import json
import os
import re
import statistics
import sys
import time

import torch

SAMPLES = 5


TYPES = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
CASE = re.compile(r"(\w+) (\d+\^3|\d+x\d+x\d+)(?: ([NT][NT]))?(?: pad(ded|\d+))? (\S+)")


class Operand:
    """A matrix as the suite stores it, column major, with its padding; on the host and, copied whole, on the device."""

    def __init__(self, rows, cols, pad, dtype, memory):
        self._rows = rows
        self._host = torch.rand(cols, rows + pad).to(dtype) * 2 - 1
        if memory == "pinned":
            self._host = self._host.pin_memory()

    def on_device(self):
        return self._host.to("cuda", non_blocking=True)[:, : self._rows].t()

    def receive(self, result):
        self._host[:, : self._rows].copy_(result.t(), non_blocking=True)


def measure(m, n, k, dtype, ops, pad, memory):
    a = Operand(*((m, k) if ops[0] == "N" else (k, m)), pad, dtype, memory[0])
    b = Operand(*((k, n) if ops[1] == "N" else (n, k)), pad, dtype, memory[1])
    c = Operand(m, n, pad, dtype, memory[2])

    def once():
        start = time.perf_counter()
        left, right = (x.on_device() if op == "N" else x.on_device().t() for x, op in zip((a, b), ops))
        c.receive((right.t() @ left.t()).t())  # whose columns are contiguous, as those of C
        torch.cuda.synchronize()
        return time.perf_counter() - start

    once()
    once()
    return [once() for _ in range(SAMPLES)]


def parse(case):
    """A case as the suite names it: "tf32 8192^3 pinned", "f16 33x7x1001 NT pad3 pinned/pageable/pinned"."""
    dtype, size, ops, pad, memory = CASE.fullmatch(case).groups()
    sizes = [int(size[:-2])] * 3 if size.endswith("^3") else [int(x) for x in size.split("x")]
    places = memory.split("/") if "/" in memory else [memory] * 3
    return (*sizes, TYPES[dtype], ops or "NN", 5 if pad == "ded" else int(pad or 0), places), dtype == "tf32"


def main():
    with open(sys.argv[1]) as file:
        record = json.load(file)
    record["device"]["torch"] = torch.__version__
    record["rows"] = [row for row in record["rows"] if row["variant"] != "PyTorch"]
    for row in [row for row in record["rows"] if row["variant"] == "streamgemm"]:
        how, torch.backends.cuda.matmul.allow_tf32 = parse(row["case"])
        seconds = measure(*how)
        record["rows"].append({**row, "variant": "PyTorch", "seconds": statistics.median(seconds), "samples": SAMPLES,
                               "min": min(seconds), "max": max(seconds)})
        print(f"{row['case']}: PyTorch {statistics.median(seconds) * 1e3:.2f} ms, streamgemm {row['seconds'] * 1e3:.2f} ms")
        with open(sys.argv[1] + ".new", "w") as file:  # after each: an interrupted run keeps its measurements
            json.dump(record, file, indent=2)
            file.write("\n")
        os.replace(sys.argv[1] + ".new", sys.argv[1])


if __name__ == "__main__":
    main()
