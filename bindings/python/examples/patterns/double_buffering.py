# SPDX-License-Identifier: Apache-2.0
"""Double buffering: batches through the layers of a network. usage: double_buffering.py [DEVICE]"""

import numpy as np
from pattern import Chain, open_context, placed

ROWS, WIDTH, LAYERS = 128, 256, 4


def main():
    context, random = open_context(), np.random.default_rng(1)
    host = [random.uniform(-0.1, 0.1, (WIDTH, WIDTH)).astype(np.float32) for _ in range(LAYERS)]
    weights = [placed(context, w) for w in host]
    scratch = 2 * ROWS

    def network(on, x, y):
        """y has room for the layers' results: they alternate between its parts."""
        parts = [y.part((ROWS, WIDTH), offset=4 * WIDTH * at) for at in (0, ROWS)]
        for i, w in enumerate(weights):
            on.gemm(x, w, parts[(LAYERS - 1 - i) % 2], activation="relu")
            x = parts[(LAYERS - 1 - i) % 2]

    chain = Chain(context, (ROWS, WIDTH), [("network", (scratch, WIDTH), network)])
    for x in chain.inputs:
        x[...] = random.uniform(-1, 1, x.shape)
    chain.compare("double buffering")
    for x, y in zip(chain.inputs[:3], chain.outputs[0]):
        for w in host:
            x = np.maximum(x @ w, 0)
        np.testing.assert_allclose(x, y[:ROWS], atol=1e-4)


if __name__ == "__main__":
    main()
