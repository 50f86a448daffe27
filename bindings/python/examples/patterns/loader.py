# SPDX-License-Identifier: Apache-2.0
"""A prefetching loader: a thread makes batches in a few pinned slots, which are copied to the device while it trains on earlier ones.
A slot is filled again when its batch has left it. usage: loader.py [DEVICE]"""

import queue
import threading

import numpy as np
from pattern import ARITHMETIC, COPIES_IN, Submit, agree, by_hand, compare, on_device, on_host, open_context, train

ROWS, IN, OUT, BATCHES, SLOTS, RATE = 128, 1024, 64, 32, 6, 2e-3
BATCH = ROWS * (IN + OUT)  # the samples, then their targets


class Loader:
    """Batches in slots, in order; a slot that the consumer has released is filled again."""

    def __init__(self, slots):
        self._free, self.made = queue.SimpleQueue(), queue.SimpleQueue()
        for slot in slots:
            self._free.put(slot)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        for number in range(BATCHES):
            slot = self._free.get()
            x, t = slot[: ROWS * IN].reshape(ROWS, IN), slot[ROWS * IN :].reshape(ROWS, OUT)
            x[...] = np.random.default_rng(number).uniform(-1, 1, x.shape)
            t[...] = 2 * x[:, :OUT]  # of sparse weights: x's first columns, doubled
            self.made.put(slot)

    def release(self, slot):
        self._free.put(slot)

    def __iter__(self):
        for _ in range(BATCHES):
            yield self.made.get()
        self._thread.join()


def step(on, batch, w, error):
    train(on, batch.part((ROWS, IN)), batch.part((ROWS, OUT), offset=4 * ROWS * IN), w, error, RATE)


def main():
    context = open_context()
    slots = [on_host(context, (BATCH,)) for _ in range(SLOTS)]
    w, zero = on_device(context, (IN, OUT)), np.zeros((IN, OUT), np.float32)
    buffers = [on_device(context, (BATCH,)) for _ in range(2)]
    error = on_device(context, (ROWS, OUT))
    errors = [on_host(context, (ROWS, OUT)) for _ in range(BATCHES)]
    seen = [np.zeros((IN, OUT), np.float32) for _ in range(2)]
    pipeline = context.pipeline((BATCH,))
    stage = pipeline.stage((ROWS, OUT), name="training")
    step(stage, stage.input, w, stage.output)  # w is not the pipeline's: it stays

    def loading():
        loader = Loader(slots)
        for i, slot in enumerate(loader):
            context.copy_async(buffers[i % 2], slot).add_done_callback(lambda job, slot=slot: loader.release(slot))

    def training():
        context.copy_async(w, zero)
        for i in range(BATCHES):
            step(Submit(context), buffers[i % 2], w, error)

    def by_pipeline():
        context.copy(w, zero)
        loader = Loader(slots)
        for i, slot in enumerate(loader):
            pipeline.push_async(slot, errors[i]).add_done_callback(lambda job, slot=slot: loader.release(slot))
        context.copy(seen[0], w)

    def with_streams():
        context.copy(w, zero)
        copies, computing = context.stream(), context.stream()
        arrived, is_free = ([context.event() for _ in range(2)] for _ in range(2))
        loader = Loader(slots)
        for i, slot in enumerate(loader):
            b = i % 2
            if i >= 2:
                copies.wait_event(is_free[b])
            copied = by_hand(context, copies).copy(buffers[b], slot)
            copied.add_done_callback(lambda job, slot=slot: loader.release(slot))
            arrived[b].record(copies)
            computing.wait_event(arrived[b])
            step(by_hand(context, computing), buffers[b], w, error)
            is_free[b].record(computing)
        computing.synchronize()
        context.copy(seen[1], w)

    compare(
        context,
        {"loading": (COPIES_IN, loading), "training": (ARITHMETIC, training)},
        {"prefetching loader, pipeline": by_pipeline, "prefetching loader, by hand": with_streams},
    )
    agree(seen[:1], seen[1:])
    assert np.square(errors[-1]).mean() < 0.5 * np.square(errors[0]).mean(), "it has learned"


if __name__ == "__main__":
    main()
