# SPDX-License-Identifier: Apache-2.0
"""Augmentation on the device beside training, by a function of the program's own: each other sample is mirrored, and pixels are covered.
On a CUDA device the function enqueues on the library's stream, here with PyTorch. usage: augmentation.py [DEVICE]"""

import numpy as np
from pattern import Chain, on_device, open_context, train

ROWS, PIXELS, OUT = 64, 512, 32
WIDTH = PIXELS + OUT  # a row is a sample and its targets


def augment_samples(native_stream, samples, augmented):
    if native_stream:
        import torch

        with torch.cuda.stream(torch.cuda.ExternalStream(native_stream)):
            samples, augmented = torch.from_dlpack(samples), torch.from_dlpack(augmented)
            augmented[0::2] = samples[0::2]
            augmented[1::2, :PIXELS] = samples[1::2, :PIXELS].flip(1)
            augmented[1::2, PIXELS:] = samples[1::2, PIXELS:]
            augmented[:, 3:PIXELS:8] = 0
        return
    augmented[0::2] = samples[0::2]
    augmented[1::2, :PIXELS] = samples[1::2, PIXELS - 1 :: -1]
    augmented[1::2, PIXELS:] = samples[1::2, PIXELS:]
    augmented[:, 3:PIXELS:8] = 0


def main():
    context, random = open_context(), np.random.default_rng(1)
    w, start = on_device(context, (PIXELS, OUT)), random.uniform(-1, 1, (PIXELS, OUT)).astype(np.float32)

    def augment(on, x, y):
        on.custom(augment_samples, reads=[x], writes=[y], seconds=8e-6)

    def step(on, x, y):
        samples, targets = x.part((ROWS, PIXELS), (4 * WIDTH, 4)), x.part((ROWS, OUT), (4 * WIDTH, 4), offset=4 * PIXELS)
        train(on, samples, targets, w, y, 1e-3)

    stages = [("augmentation", (ROWS, WIDTH), augment), ("training", (ROWS, OUT), step)]
    chain = Chain(context, (ROWS, WIDTH), stages, lambda: context.copy(w, start))
    for x in chain.inputs:
        x[...] = random.uniform(-1, 1, x.shape)
    chain.compare("augmentation")
    x = chain.inputs[0].copy()
    augment_samples(0, x.copy(), x)
    np.testing.assert_allclose(x[:, :PIXELS] @ start - x[:, PIXELS:], chain.outputs[0][0], atol=1e-3)


if __name__ == "__main__":
    main()
