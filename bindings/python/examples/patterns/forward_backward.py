# SPDX-License-Identifier: Apache-2.0
"""The forward pass of part n + 1 of a large batch beside the backward pass of part n: gradients are summed over the parts, so the
weights stay meanwhile. usage: forward_backward.py [DEVICE]"""

import numpy as np
from pattern import ARITHMETIC, COPIES_IN, Submit, agree, by_hand, compare, on_device, on_host, open_context, placed

PARTS, ROWS, IN, HIDDEN, OUT, SLOTS = 48, 128, 256, 128, 64, 2


def main():
    context, random = open_context(), np.random.default_rng(1)
    x_host = [on_host(context, (ROWS, IN), random) for _ in range(PARTS)]
    t_host = [on_host(context, (ROWS, OUT), random) for _ in range(PARTS)]
    host = [random.uniform(-0.1, 0.1, shape).astype(np.float32) for shape in ((IN, HIDDEN), (HIDDEN, OUT))]
    w1, w2 = (placed(context, w) for w in host)
    dw1, dw2 = on_device(context, (IN, HIDDEN)), on_device(context, (HIDDEN, OUT))
    x, h, error = ([on_device(context, (ROWS, width)) for _ in range(SLOTS)] for width in (IN, HIDDEN, OUT))
    dh = on_device(context, (ROWS, HIDDEN))
    seen = [[np.empty((IN, HIDDEN), np.float32), np.empty((HIDDEN, OUT), np.float32)] for _ in range(2)]

    def copy_in(on, part):
        on.copy(x[part % SLOTS], x_host[part])
        on.copy(error[part % SLOTS], t_host[part])

    def forward(on, part):
        b = part % SLOTS
        on.gemm(x[b], w1, h[b], activation="relu")
        on.gemm(h[b], w2, error[b], beta=-1.0)

    def backward(on, part):
        b = part % SLOTS
        on.gemm(h[b], error[b], dw2, op_a="T", beta=1.0)
        on.gemm(error[b], w2, dh, op_b="T")
        on.elementwise("relu_gradient", dh, h[b], dh)
        on.gemm(x[b], dh, dw1, op_a="T", beta=1.0)

    def start():
        for gradient in (dw1, dw2):
            context.copy(gradient, np.zeros(gradient.shape, np.float32))

    def finish(way):
        context.synchronize()
        for host_array, gradient in zip(seen[way], (dw1, dw2)):
            context.copy(host_array, gradient)

    def all_of(work):
        return lambda: [work(Submit(context), part) for part in range(PARTS)]

    def by_memory():
        start()
        on = Submit(context)
        for part in range(PARTS):
            copy_in(on, part)
            forward(on, part)
            backward(on, part)
        finish(0)

    def by_streams():
        start()
        copies, ahead, back = (context.stream() for _ in range(3))
        arrived, computed, is_free = ([context.event() for _ in range(SLOTS)] for _ in range(3))
        for part in range(PARTS):
            b = part % SLOTS
            if part >= SLOTS:
                copies.wait_event(is_free[b])
            copy_in(by_hand(context, copies), part)
            arrived[b].record(copies)
            ahead.wait_event(arrived[b])
            forward(by_hand(context, ahead), part)
            computed[b].record(ahead)
            back.wait_event(computed[b])
            backward(by_hand(context, back), part)
            is_free[b].record(back)
        finish(1)

    start()
    compare(
        context,
        {
            "copies": (COPIES_IN, all_of(copy_in)),
            "forward": (ARITHMETIC, all_of(forward)),
            "backward": (ARITHMETIC, all_of(backward)),
        },
        {"forward beside backward": by_memory, "forward beside backward, by hand": by_streams},
    )
    agree(*seen)
    wanted = 0
    for sample, target in zip(x_host, t_host):
        hidden = np.maximum(sample @ host[0], 0)
        wanted = wanted + hidden.T @ (hidden @ host[1] - target)
    np.testing.assert_allclose(wanted, seen[0][1], atol=1e-4 * np.abs(wanted).max(), rtol=0)


if __name__ == "__main__":
    main()
