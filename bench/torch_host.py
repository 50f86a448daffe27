#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds PyTorch's rows to a record of `streamgemm bench host` or `gpus`: the same GEMMs from host memory to host memory, copied
in, multiplied and copied out by PyTorch on its current stream; of several devices, those that the record names, each has its
share of C's columns.
Usage: torch_host.py RECORD.json"""
import json
import os
import re
import statistics
import sys
import time

import torch

SAMPLES = 5


TYPES = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
CASE = re.compile(r"(\w+) (\d+\^3|\d+x\d+x\d+)(?: ([NT][NT]))?(?: pad(ded|\d+))? (\S+?)(?:, (\d+) devices)?")


class Operand:
    """A matrix as the suite stores it, column major, with its padding, on the host."""

    def __init__(self, rows, cols, pad, dtype, memory):
        self._rows = rows
        self._host = torch.rand(cols, rows + pad).to(dtype) * 2 - 1
        if memory == "pinned":
            self._host = self._host.pin_memory()

    def on_device(self, device, op, columns):
        """These columns of op(X), as rows: those of its transpose, which memory holds row by row unless op is T."""
        sent = (self._host[columns] if op == "N" else self._host).to(f"cuda:{device}", non_blocking=True)
        return sent[:, : self._rows] if op == "N" else sent[:, columns].t()

    def receive(self, result, share):
        self._host[share, : self._rows].copy_(result, non_blocking=True)


def measure(numbers, m, n, k, dtype, ops, pad, memory, devices):
    a = Operand(*((m, k) if ops[0] == "N" else (k, m)), pad, dtype, memory[0])
    b = Operand(*((k, n) if ops[1] == "N" else (n, k)), pad, dtype, memory[1])
    c = Operand(m, n, pad, dtype, memory[2])
    shares = [slice(n * i // devices, n * (i + 1) // devices) for i in range(devices)]

    def once():
        start = time.perf_counter()
        for device, share in zip(numbers, shares):
            c.receive(b.on_device(device, ops[1], share) @ a.on_device(device, ops[0], slice(k)), share)
        for device in numbers[:devices]:
            torch.cuda.synchronize(device)
        return time.perf_counter() - start

    once()
    once()
    return [once() for _ in range(SAMPLES)]


def parse(case):
    """A case as the suite names it: "tf32 8192^3 pinned", "f16 33x7x1001 NT pad3 pinned/pageable/pinned"."""
    dtype, size, ops, pad, memory, devices = CASE.fullmatch(case).groups()
    sizes = [int(size[:-2])] * 3 if size.endswith("^3") else [int(x) for x in size.split("x")]
    places = memory.split("/") if "/" in memory else [memory] * 3
    return (*sizes, TYPES[dtype], ops or "NN", 5 if pad == "ded" else int(pad or 0), places, int(devices or 1)), dtype == "tf32"


def main():
    with open(sys.argv[1]) as file:
        record = json.load(file)
    record["device"]["torch"] = torch.__version__
    record["rows"] = [row for row in record["rows"] if row["variant"] != "PyTorch"]
    for row in [row for row in record["rows"] if row["variant"] == "streamgemm"]:
        how, torch.backends.cuda.matmul.allow_tf32 = parse(row["case"])
        seconds = measure(record["device"].get("device_numbers", range(record["device"].get("devices", 1))), *how)
        record["rows"].append({**row, "variant": "PyTorch", "seconds": statistics.median(seconds), "samples": SAMPLES,
                               "min": min(seconds), "max": max(seconds)})
        print(f"{row['case']}: PyTorch {statistics.median(seconds) * 1e3:.2f} ms, streamgemm {row['seconds'] * 1e3:.2f} ms")
        with open(sys.argv[1] + ".new", "w") as file:  # after each: an interrupted run keeps its measurements
            json.dump(record, file, indent=2)
            file.write("\n")
        os.replace(sys.argv[1] + ".new", sys.argv[1])


if __name__ == "__main__":
    main()
