# SPDX-License-Identifier: Apache-2.0
"""Preprocess, encode, decode: features of 13 channels from images, a score of each image for each of a few resources, and the
resources' allocation to images; by hand each on a stream of its own. usage: three_streams.py [DEVICE]"""

import numpy as np
from pattern import Chain, open_context, placed

IMAGES, SIZE, FEATURES, SCORES = 8, 32, 13, 16
HALF = SIZE // 2


def main():
    context, random = open_context(), np.random.default_rng(1)
    filters = placed(context, random.uniform(-1, 1, (FEATURES, 3, 5, 5)).astype(np.float32))
    scoring = placed(context, random.uniform(-1, 1, (FEATURES * HALF * HALF, SCORES)).astype(np.float32))
    resources = placed(context, np.diag(np.full(SCORES, 100, np.float32)))

    def preprocess(on, x, y):
        on.conv2d(x, filters, None, y, stride=2, padding=(2, 2, 1, 1), activation="relu")

    def encode(on, x, y):
        on.gemm(x.part((IMAGES, FEATURES * HALF * HALF)), scoring, y, activation="relu")
        on.softmax(y, y)

    def decode(on, x, y):
        on.gemm(x, resources, y)

    stages = [
        ("preprocess", (IMAGES, FEATURES, HALF, HALF), preprocess),
        ("encode", (IMAGES, SCORES), encode),
        ("decode", (IMAGES, SCORES), decode),
    ]
    chain = Chain(context, (IMAGES, 3, SIZE, SIZE), stages)
    for x in chain.inputs:
        x[...] = random.uniform(-1, 1, x.shape)
    chain.compare("three streams")
    for allocation in chain.outputs[0]:  # 100 of each resource, by scores whose sum is 1
        np.testing.assert_allclose(allocation.sum(axis=1), 100, atol=1e-2)


if __name__ == "__main__":
    main()
