# SPDX-License-Identifier: Apache-2.0
"""Many jobs from 8 threads while the collector is forced: every result right, resident memory flat.

A few seconds of it by default; SG_SOAK=1 runs a million jobs. usage: soak.py [JOBS]
"""

import ctypes
import gc
import os
import sys
import threading

import numpy as np
import streamgemm as sg
from support import DEVICE, integers, resident_bytes

THREADS = 8
SHAPES = [(4, 4, 4), (16, 8, 12), (33, 20, 7), (1, 50, 2)]
ALLOWED_GROWTH = 24 << 20  # live memory moves between the allocators' arenas


def work(context, jobs, seed, wrong):
    values = [(integers((m, k), seed=seed), integers((k, n), seed=seed + 1)) for m, n, k in SHAPES]
    wanted = [a @ b for a, b in values]
    window = []
    for i in range(jobs):
        which = (i + seed) % len(SHAPES)
        a, b = (x.copy() for x in values[which])  # fresh operands, dropped at once
        window.append((which, context.gemm_async(a, b, untracked=i % 3 == 0)))
        if i % 97 == 0:
            window[-1][1].cancel()
        if i % 1000 == 0:
            gc.collect()
        if len(window) == 64:
            check(window, wanted, wrong)
            window.clear()
    check(window, wanted, wrong)


def check(window, wanted, wrong):
    for which, job in window:
        if job.exception() is None and not (job.result() == wanted[which]).all():
            wrong.append(which)
        elif job.exception() is not None and not job.cancelled():
            wrong.append(str(job.exception()))


def round_of(context, jobs):
    wrong = []
    threads = [threading.Thread(target=work, args=(context, jobs // THREADS, seed, wrong)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    context.synchronize()
    gc.collect()
    trim()  # the amount of freed memory that glibc keeps differs from run to run
    return wrong


def trim():
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        pass  # another C library


def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000 if os.environ.get("SG_SOAK") == "1" else 24_000
    with sg.Context(DEVICE) as context:
        wrong = round_of(context, 8000)  # pools and arenas fill up
        start = resident_bytes()
        wrong += round_of(context, jobs)
        end = resident_bytes()
    print(
        f"{jobs} jobs from {THREADS} threads on {DEVICE}: {len(wrong)} wrong; resident {start >> 20} MiB at the start, "
        f"{end >> 20} MiB at the end"
    )
    return bool(wrong) or end - start > ALLOWED_GROWTH


if __name__ == "__main__":
    sys.exit(main())
