# SPDX-License-Identifier: Apache-2.0
"""Many clients of one event loop, each with GEMMs of its own: none of them blocks the loop or a thread.
usage: asyncio_clients.py [DEVICE]"""

import asyncio
import sys
import time

import numpy as np
import streamgemm as sg


async def client(context, number, rounds):
    """Applies its matrix again and again: each step needs the one before, while the other clients' steps run beside
    it."""
    angle = 2 * np.pi / rounds
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = np.random.default_rng(number).standard_normal((2, 500))
    turned = points
    for _ in range(rounds):
        turned = await context.gemm_async(turn, turned)
    return np.abs(turned - points).max()  # all the way round


async def heartbeat(beats):
    """Shows that the loop stays free."""
    while True:
        beats.append(time.monotonic())
        await asyncio.sleep(0.001)


async def main(device):
    with sg.Context(device) as context:
        beats = []
        beating = asyncio.create_task(heartbeat(beats))
        start = time.monotonic()
        errors = await asyncio.gather(*(client(context, number, 100) for number in range(32)))
        seconds = time.monotonic() - start
        beating.cancel()
        print(
            f"32 clients, 100 GEMMs each: {seconds:.3f} s, largest error {max(errors):.1e}, {len(beats)} heartbeats"
        )
        assert max(errors) < 1e-12 and len(beats) > 1

        try:  # a client that gives up: its job is cancelled, and its operands stay until it has completed
            big = np.ones((2000, 2000))
            await asyncio.wait_for(asyncio.ensure_future(awaited(context.gemm_async(big, big))), 0.001)
        except asyncio.TimeoutError:
            print("gave up after a millisecond")


async def awaited(job):
    return await job


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "auto"))
