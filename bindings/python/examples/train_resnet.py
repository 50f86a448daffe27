# SPDX-License-Identifier: Apache-2.0
"""Trains ResNet-18, with the layers of torchvision's, to read handwritten digits. Batch norms are folded away: convolutions have biases.

The forward pass and all gradients are recorded as one graph, whose arrays are in the device's memory. A step copies a batch there,
runs the graph, and updates 11 million parameters by SGD with momentum; nothing waits before the losses are read.

usage: train_resnet.py digits.csv [--device DEVICE] [--size 32] [--batch 32] [--steps 40] [--rate 0.02]    size: height and width of the images, a multiple of 8"""

import argparse
import sys

import numpy as np
import streamgemm as sg

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # filters, and the stride of the first convolution


def first_parameters(classes, draw, dtype=np.float32):
    """Arrays by torchvision's names. The last convolution of a block begins small, as there are no batch norms."""
    made = {}

    def layer(name, *shape, scale=1.0):
        made[name + ".weight"] = draw.normal(0, scale * np.sqrt(2 / np.prod(shape[1:])), shape).astype(dtype)
        made[name + ".bias"] = np.zeros(shape[0], dtype)

    layer("conv1", 64, 3, 7, 7)
    channels = 64
    for stage, (filters, stride) in enumerate(STAGES, 1):
        for block in range(2):
            name = f"layer{stage}.{block}"
            layer(f"{name}.conv1", filters, channels, 3, 3)
            layer(f"{name}.conv2", filters, filters, 3, 3, scale=0.5)
            if block == 0 and stride == 2:
                layer(f"{name}.downsample", filters, channels, 1, 1, scale=np.sqrt(0.5))
            channels = filters
    layer("fc", classes, 512)
    return made


class ResNet:
    """Records a step of a batch into a graph. A layer returns its result, and a function from the result's gradient to that of its input."""

    def __init__(self, context, parameters, images, labels):
        self.context, self.parameters, self.gradients = context, parameters, {}
        self.images, self.labels, self.graph = images, labels, context.graph()
        x, back_conv1 = self.convolution("conv1", images, stride=2)
        x, back_maximum = self.maximum(x)
        backs = []
        for stage, (_, stride) in enumerate(STAGES, 1):
            for block in range(2):
                x, back = self.block(f"layer{stage}.{block}", x, stride if block == 0 else 1)
                backs.append(back)
        x, back_average = self.average(x)
        scores, back_linear = self.linear("fc", x)
        self.losses = self.graph.cross_entropy(scores, labels)
        self.loss = self.graph.row_reduce(self.losses, "mean", axis=0)
        gradient = self.graph.cross_entropy_backward(scores, labels, scale=1 / len(labels))
        for back in (back_linear, back_average, *reversed(backs), back_maximum, back_conv1):
            gradient = back(gradient)

    def convolution(self, name, x, stride=1, relu=True):
        w, bias = self.parameters[name + ".weight"], self.parameters[name + ".bias"]
        windows = {"stride": stride, "padding": w.shape[2] // 2}
        y = self.graph.conv2d(x, w, bias, activation="relu" if relu else None, **windows)

        def back(dy):
            dy = self.graph.elementwise("relu_gradient", dy, y) if relu else dy
            is_first = x is self.images  # whose gradient is not needed
            made = self.context.empty(w.shape, w.dtype)
            dx, dw, dbias = self.graph.conv2d_backward(dy, x, None if is_first else w, dw=made, **windows)
            self.gradients[name + ".weight"], self.gradients[name + ".bias"] = dw, dbias
            return dx

        return y, back

    def block(self, name, x, stride):
        """x and two convolutions of it, added."""
        inner, back_first = self.convolution(name + ".conv1", x, stride)
        outer, back_second = self.convolution(name + ".conv2", inner, relu=False)
        short, back_short = (x, lambda dy: dy) if stride == 1 else self.convolution(name + ".downsample", x, stride, relu=False)
        total = self.graph.elementwise("add", outer, short)
        y = self.graph.elementwise("relu", total)

        def back(dy):
            dy = self.graph.elementwise("relu_gradient", dy, total)
            return self.graph.elementwise("add", back_first(back_second(dy)), back_short(dy))

        return y, back

    def maximum(self, x):
        windows = {"kernel": 3, "stride": 2, "padding": 1}
        return self.graph.pool2d(x, **windows), lambda dy: self.graph.pool2d_backward(dy, x, **windows)

    def average(self, x):
        whole, count = x.shape[2:], x.shape[:2]
        y = self.graph.pool2d(x, whole, pooling="average").reshape(count)
        return y, lambda dy: self.graph.pool2d_backward(dy.reshape(*count, 1, 1), None, whole, size=whole, pooling="average")

    def linear(self, name, x):
        w, bias = self.parameters[name + ".weight"], self.parameters[name + ".bias"]

        def back(dy):
            dx, self.gradients[name + ".weight"], self.gradients[name + ".bias"] = self.graph.linear_backward(dy, x, w, op_w="T")
            return dx

        return self.graph.linear(x, w, bias, op_w="T"), back


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    parser = argparse.ArgumentParser()
    parser.add_argument("digits")
    parser.add_argument("--device", default="auto")
    for name, default in (("size", 32), ("batch", 32), ("steps", 40), ("rate", 0.02)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    given = parser.parse_args()
    table = np.loadtxt(given.digits, delimiter=",", dtype=np.float32)
    digits = table[:, 64].astype(np.int32)
    images = np.repeat(np.repeat(table[:, :64].reshape(-1, 1, 8, 8) / 16 - 0.3, given.size // 8, 2), given.size // 8, 3)
    draw = np.random.default_rng(1)
    with sg.Context(given.device) as context:
        parameters = {name: context.array(values) for name, values in first_parameters(10, draw).items()}
        shape = (given.batch, 3, given.size, given.size)
        network = ResNet(context, parameters, context.empty(shape), context.empty((given.batch,), "i32"))
        optimizer = sg.SGD(context, parameters, lr=given.rate, momentum=0.9, weight_decay=1e-4)
        print(f"{sum(each.size for each in parameters.values())} parameters, {len(network.graph)} operations in a step")
        jobs = []
        for _ in range(given.steps):
            rows = draw.integers(0, len(table), given.batch)
            context.copy_async(network.images, np.repeat(images[rows], 3, 1))
            context.copy_async(network.labels, digits[rows])
            network.graph.run_async()
            optimizer.step(network.gradients)
            jobs.append(context.copy_async(np.empty((1, 1), np.float32), network.loss))
        losses = [job.result().item() for job in jobs]
    for step, loss in enumerate(losses, 1):
        print(f"step {step:3}  loss {loss:.4f}  {'#' * round(20 * loss)}")
    assert given.steps < 20 or np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])


if __name__ == "__main__":
    main()
