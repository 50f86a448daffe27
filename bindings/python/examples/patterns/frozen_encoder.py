# SPDX-License-Identifier: Apache-2.0
"""A frozen encoder beside a trained decoder: it encodes the next batch while the decoder takes its step on this one.
usage: frozen_encoder.py [DEVICE]"""

import numpy as np
from pattern import Chain, on_device, open_context, placed, train

ROWS, IN, FEATURES, OUT = 128, 512, 256, 64
BATCH = IN + OUT  # a row is a sample and its targets
ENCODED = 2 * FEATURES + OUT  # features, the targets, and what the first layer leaves


def columns(matrix, width, first, count):
    return matrix.part((ROWS, count), (4 * width, 4), offset=4 * first)


def main():
    context, random = open_context(), np.random.default_rng(1)
    first, second = (
        placed(context, random.uniform(-0.2, 0.2, shape).astype(np.float32)) for shape in ((IN, FEATURES), (FEATURES, FEATURES))
    )
    decoder, zero = on_device(context, (FEATURES, OUT)), np.zeros((FEATURES, OUT), np.float32)

    def encode(on, x, y):
        hidden = columns(y, ENCODED, FEATURES + OUT, FEATURES)
        on.gemm(columns(x, BATCH, 0, IN), first, hidden, activation="relu")
        on.gemm(hidden, second, columns(y, ENCODED, 0, FEATURES), activation="relu")
        on.copy(columns(y, ENCODED, FEATURES, OUT), columns(x, BATCH, IN, OUT))

    def decode(on, x, y):
        train(on, columns(x, ENCODED, 0, FEATURES), columns(x, ENCODED, FEATURES, OUT), decoder, y, 2e-5)

    stages = [("encoder", (ROWS, ENCODED), encode), ("decoder", (ROWS, OUT), decode)]
    chain = Chain(context, (ROWS, BATCH), stages, lambda: context.copy(decoder, zero))
    for x in chain.inputs:
        x[:, :IN] = random.uniform(-1, 1, (ROWS, IN))
        x[:, IN:] = 1
    chain.compare("frozen encoder")
    assert np.square(chain.outputs[0][-1]).mean() < 0.5 * np.square(chain.outputs[0][0]).mean(), "it has learned"


if __name__ == "__main__":
    main()
