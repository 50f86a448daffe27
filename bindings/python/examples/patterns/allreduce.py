# SPDX-License-Identifier: Apache-2.0
"""Gradients are summed over devices beside the backward pass: as soon as those of a bucket of layers are known, NCCL adds them, while the
gradients of earlier layers are computed. NCCL's call is a custom operation on the library's stream. On a device that is no GPU there
is one rank, whose sum is its own, in the time that NVLink would take.

usage: allreduce.py [DEVICE ...]    such as cuda:0 cuda:1; SG_NCCL: the path of NCCL, by default libnccl.so.2"""

import ctypes
import os
import sys
import threading

import numpy as np
import streamgemm as sg
from pattern import ARITHMETIC, BETWEEN_DEVICES, Submit, by_hand, compare, on_device, placed

LAYERS, BUCKET = 32, 4
BUCKETS = LAYERS // BUCKET
FLOAT, SUM = 7, 0  # of nccl.h


class Rank:
    """A device with its part of the batch."""

    def __init__(self, device, number, width):
        random = np.random.default_rng(number)
        self.context = sg.Context(device, check_hazards=True, no_coalescing=True)
        self.x = [placed(self.context, random.uniform(-1, 1, (2 * width, width)).astype(np.float32)) for _ in range(LAYERS)]
        self.dy = placed(self.context, random.uniform(-1, 1, (2 * width, width)).astype(np.float32))
        self.buckets = [on_device(self.context, (BUCKET, width, width)) for _ in range(BUCKETS)]
        self.width = width
        self.computing, self.reducing = self.context.stream(), self.context.stream()
        self.computed = [self.context.event() for _ in range(BUCKETS)]
        self.nccl = self.communicator = None  # one rank

    def gradients(self, bucket, on):
        size = 4 * self.width * self.width
        for i in range(BUCKET):
            dw = self.buckets[bucket].part((self.width, self.width), offset=i * size)
            on.gemm(self.x[bucket * BUCKET + i], self.dy, dw, op_a="T")

    def enqueue_sum(self, native_stream, gradients):
        if self.communicator is None:
            return
        count, address = BUCKET * self.width * self.width, ctypes.c_void_p(gradients.address)
        result = self.nccl.ncclAllReduce(
            address, address, ctypes.c_size_t(count), FLOAT, SUM, self.communicator, ctypes.c_void_p(native_stream)
        )
        if result:
            raise RuntimeError(f"ncclAllReduce returned {result}")

    def reduction(self, bucket, on):
        seconds = 10e-6 + 2 * (4 * BUCKET * self.width * self.width) / 400e9
        on.custom(self.enqueue_sum, updates=[self.buckets[bucket]], seconds=seconds, compute_units=-1)

    def seen(self):
        self.context.synchronize()
        return [self.context.copy(np.empty(bucket.shape, np.float32), bucket) for bucket in self.buckets]


def connect(ranks, devices):
    nccl = ctypes.CDLL(os.environ.get("SG_NCCL", "libnccl.so.2"))
    communicators = (ctypes.c_void_p * len(ranks))()
    numbers = (ctypes.c_int * len(ranks))(*(int(device.partition(":")[2] or 0) for device in devices))
    assert nccl.ncclCommInitAll(communicators, len(ranks), numbers) == 0, "ncclCommInitAll"
    for rank, communicator in zip(ranks, communicators):
        rank.nccl, rank.communicator = nccl, ctypes.c_void_p(communicator)


def main():
    devices = sys.argv[1:] or ["sim:h200"]
    width = 1024 if devices[0].startswith("cuda") else 256
    ranks = [Rank(device, number, width) for number, device in enumerate(devices)]
    if len(ranks) > 1:
        connect(ranks, devices)

    def on_all(work):
        """A thread for each rank, as NCCL wants it; from the last bucket to the first."""

        def run(rank):
            for bucket in reversed(range(BUCKETS)):
                work(rank, bucket)
            rank.context.synchronize()

        def start():
            threads = [threading.Thread(target=run, args=(rank,)) for rank in ranks]
            for each in threads:
                each.start()
            for each in threads:
                each.join()

        return start

    def backward(rank, bucket):
        rank.gradients(bucket, Submit(rank.context))

    def reduce(rank, bucket):
        """The stream keeps the sums in one order on all ranks, as NCCL wants it; the memory orders all else."""
        rank.reduction(bucket, Submit(rank.context, stream=rank.reducing))

    def by_memory(rank, bucket):
        backward(rank, bucket)
        reduce(rank, bucket)

    def with_streams(rank, bucket):
        rank.gradients(bucket, by_hand(rank.context, rank.computing))
        rank.computed[bucket].record(rank.computing)
        rank.reducing.wait_event(rank.computed[bucket])
        rank.reduction(bucket, by_hand(rank.context, rank.reducing))

    on_all(backward)()
    wanted = [sum(each) for each in zip(*(rank.seen() for rank in ranks))]
    ways = {"all-reduce beside backward": on_all(by_memory), "all-reduce beside backward, by hand": on_all(with_streams)}
    compare(
        ranks[0].context,
        {"backward": (ARITHMETIC, on_all(backward)), "all-reduce": (BETWEEN_DEVICES, on_all(reduce))},
        ways,
    )
    for run in ways.values():
        run()
        for rank in ranks:
            for expected, bucket in zip(wanted, rank.seen()):
                np.testing.assert_allclose(expected, bucket, atol=1e-4 * np.abs(expected).max(), rtol=0)


if __name__ == "__main__":
    main()
