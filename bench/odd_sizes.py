#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GEMMs on tensor cores of drawn sizes that are no multiples of 8, on PyTorch's tensors in device memory, beside PyTorch: ten in a row, each
library on a stream of its own. Results are compared.

usage: odd_sizes.py [--device cuda:0] [--draw N] [--seed N] [--json FILE] [--commit COMMIT]
"""
import argparse
import datetime
import json
import math
import pathlib
import random
import statistics
import time

import torch
import streamgemm as sg

TYPES = {"f16": (torch.float16, "exact"), "bf16": (torch.bfloat16, "exact"), "tf32": (torch.float32, "tf32")}
IN_A_ROW, SAMPLES = 10, 5


def drawn(pick):
    def size():
        wanted = round(math.exp(pick.uniform(math.log(256), math.log(8192))))
        return wanted + (wanted % 8 == 0)

    return pick.choice(sorted(TYPES)), pick.choice("NT"), pick.choice("NT"), size(), size(), size()


def seconds_of(run):
    run()
    samples = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        run()
        samples.append(time.perf_counter() - began)
    return statistics.median(samples) / IN_A_ROW


def measure(context, kind, op_a, op_b, m, n, k):
    dtype, compute = TYPES[kind]
    a = torch.randn(*((m, k) if op_a == "N" else (k, m)), device="cuda").to(dtype)
    b = torch.randn(*((k, n) if op_b == "N" else (n, k)), device="cuda").to(dtype)
    ours, theirs = (torch.empty(m, n, device="cuda", dtype=dtype) for _ in range(2))
    left, right = a if op_a == "N" else a.t(), b if op_b == "N" else b.t()
    torch.cuda.synchronize()
    operands = [sg.Matrix(each) for each in (a, b, ours)]  # once: of a tensor each call waits for PyTorch

    def by_torch():
        for _ in range(IN_A_ROW):
            torch.mm(left, right, out=theirs)
        torch.cuda.synchronize()

    def by_streamgemm():
        for _ in range(IN_A_ROW):
            job = context.gemm_async(*operands, op_a=op_a, op_b=op_b, compute=compute)
        job.result()

    seconds = {"PyTorch": seconds_of(by_torch), "streamgemm": seconds_of(by_streamgemm)}
    difference = (ours.double() - theirs.double()).abs().max().item()
    assert difference <= 0.02 * theirs.double().abs().max().item(), f"{kind} {m}x{n}x{k}: {difference}"
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--draw", type=int, default=30)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    pick = random.Random(seed)
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    context, rows, ratios = sg.Context(options.device), [], {}
    for _ in range(options.draw):
        kind, op_a, op_b, m, n, k = drawn(pick)
        seconds = measure(context, kind, op_a, op_b, m, n, k)
        case = f"{kind} {m}x{n}x{k} {op_a}{op_b}"
        ratios[case] = seconds["streamgemm"] / seconds["PyTorch"]
        for variant, value in seconds.items():
            rows.append({"case": case, "variant": variant, "seconds": value, "samples": SAMPLES, "flops": 2 * m * n * k})
        print(f"{case:28} streamgemm {seconds['streamgemm'] * 1e6:9.1f} us  PyTorch {seconds['PyTorch'] * 1e6:9.1f} us  {ratios[case]:6.3f}", flush=True)
    worst = max(ratios, key=ratios.get)
    mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
    print(f"seed {seed}: geometric mean {mean:.3f}, worst {ratios[worst]:.3f} ({worst})")
    if options.json:
        options.json.write_text(json.dumps({
            "schema": "streamgemm-bench/1", "suite": "odd_sizes", "version": sg.__version__, "commit": options.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "command": f"odd_sizes.py --draw {options.draw} --seed {seed}",
            "device": {"device": options.device, "name": torch.cuda.get_device_name(), "torch": torch.__version__},
            "drawn": {"seed": seed, "cases": options.draw, "mean": mean, "worst": ratios[worst], "worst_case": worst}, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
