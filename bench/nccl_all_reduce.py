#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The time of NCCL's all-reduce of f32 vectors, one process a GPU, by their size: the best of 20, by events. Beside all_reduce.c.

usage: nccl_all_reduce.py NUMBER-OF-GPUS
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

ROUNDS, UNTIMED = 20, 5


def seconds_of(vector):
    best = float("inf")
    for i in range(UNTIMED + ROUNDS):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        dist.all_reduce(vector)
        end.record()
        torch.cuda.synchronize()
        if i >= UNTIMED:
            best = min(best, begin.elapsed_time(end) * 1e-3)
    return best


def run(rank, gpus):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29500 + gpus))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=gpus)
    elements = 1 << 10
    while elements <= 1 << 28:
        best = seconds_of(torch.ones(elements, device="cuda"))
        if rank == 0:
            crossing = 2 * (gpus - 1) / gpus * elements * 4
            print(f"NCCL on {gpus}, {elements * 4 // 1024:8d} KiB: best of {ROUNDS} {best * 1e6:7.1f} us, bus {crossing / best * 1e-9:5.1f} GB/s", flush=True)
        elements *= 4
    dist.destroy_process_group()


if __name__ == "__main__":
    processes.spawn(run, args=(int(sys.argv[1]),), nprocs=int(sys.argv[1]))
