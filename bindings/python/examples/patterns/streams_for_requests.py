# SPDX-License-Identifier: Apache-2.0
"""A stream for each request, and round-robin over a pool of them. The library needs no streams for either: jobs follow each other by the
memory that they use. usage: streams_for_requests.py [DEVICE]"""

import numpy as np
from pattern import ARITHMETIC, COPIES_IN, COPIES_OUT, Submit, agree, by_hand, compare, on_device, on_host, open_context, placed

REQUESTS, POOL, ROWS, IN, OUT = 64, 8, 128, 512, 128


def run(slots):
    """Requests that take turns with so many slots: each request has its own if there are as many."""
    context, random = open_context(), np.random.default_rng(1)
    weights = random.uniform(-1, 1, (IN, OUT)).astype(np.float32)
    w = placed(context, weights)
    inputs = [on_host(context, (ROWS, IN), random) for _ in range(REQUESTS)]
    outputs = [[on_host(context, (ROWS, OUT)) for _ in range(REQUESTS)] for _ in range(2)]
    x, y = [on_device(context, (ROWS, IN)) for _ in range(slots)], [on_device(context, (ROWS, OUT)) for _ in range(slots)]

    def copy_in(on, i):
        on.copy(x[i % slots], inputs[i])

    def compute(on, i):
        on.gemm(x[i % slots], w, y[i % slots], activation="relu")

    def copy_out(on, i, way=0):
        on.copy(outputs[way][i], y[i % slots])

    def all_of(work):
        return lambda: [work(Submit(context), i) for i in range(REQUESTS)]

    def by_memory():
        on = Submit(context)
        for i in range(REQUESTS):
            copy_in(on, i)
            compute(on, i)
            copy_out(on, i)

    def by_streams():
        streams = [context.stream() for _ in range(slots)]
        for i in range(REQUESTS):
            on = by_hand(context, streams[i % slots])
            copy_in(on, i)
            compute(on, i)
            copy_out(on, i, 1)

    name = "requests" if slots == REQUESTS else "pool"
    compare(
        context,
        {
            "copies in": (COPIES_IN, all_of(copy_in)),
            "layers": (ARITHMETIC, all_of(compute)),
            "copies out": (COPIES_OUT, all_of(copy_out)),
        },
        {f"{name}, by their memory": by_memory, f"{name}, by {slots} streams": by_streams},
    )
    agree(*outputs)
    np.testing.assert_allclose(outputs[0][5], np.maximum(inputs[5] @ weights, 0), atol=1e-3)


if __name__ == "__main__":
    run(REQUESTS)
    run(POOL)
