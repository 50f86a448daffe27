# SPDX-License-Identifier: Apache-2.0
"""Trains a causal transformer to predict the next character of a text, this file without another one.

The forward pass and all gradients are recorded as one graph, whose arrays are in the device's memory. Queries, keys and values are
views of one array, as are their gradients. A step copies a batch of characters there, runs the graph, and updates the parameters
by Adam; nothing waits before the losses are read.

usage: train_transformer.py TEXT [--device DEVICE] [--tokens 32] [--width 64] [--heads 4] [--layers 2] [--batch 16] [--steps 100]
TEXT: a file of ASCII characters, such as train_transformer.py"""

import argparse
import pathlib
import sys

import numpy as np
import streamgemm as sg

CHARACTERS = 128


def first_parameters(width, layers, draw, dtype=np.float32):
    made = {"embedding": draw.normal(0, 1, (CHARACTERS, width))}
    for layer in range(layers):
        for name, inputs, outputs in (("qkv", width, 3 * width), ("mixed", width, width), ("up", width, 4 * width), ("down", 4 * width, width)):
            made[f"{layer}.{name}.weight"] = draw.normal(0, inputs**-0.5, (inputs, outputs))
            made[f"{layer}.{name}.bias"] = np.zeros(outputs)
    for name in [f"{layer}.{norm}" for layer in range(layers) for norm in ("norm1", "norm2")] + ["norm"]:
        made[f"{name}.gamma"], made[f"{name}.beta"] = np.ones(width), np.zeros(width)
    made["scores.weight"], made["scores.bias"] = draw.normal(0, width**-0.5, (width, CHARACTERS)), np.zeros(CHARACTERS)
    return {name: values.astype(dtype) for name, values in made.items()}


class Transformer:
    """Records a step of a batch into a graph. A layer returns its result, and a function from the result's gradient to that of its input."""

    def __init__(self, context, parameters, tokens, wanted, heads):
        self.context, self.parameters, self.heads, self.gradients = context, parameters, heads, {}
        self.tokens, self.wanted, self.graph = tokens, wanted, context.graph()
        x = self.graph.gather(parameters["embedding"], tokens)
        backs = []
        for layer in range(sum(name.endswith("qkv.weight") for name in parameters)):
            for part, norm in ((self.attention, "norm1"), (self.perceptron, "norm2")):
                x, back = self.residual(part, f"{layer}.", norm, x)
                backs.append(back)
        normed, back_norm = self.norm("norm", x)
        scores, back_scores = self.linear("scores", normed)
        self.loss = self.graph.row_reduce(self.graph.cross_entropy(scores, wanted).reshape(1, -1), "mean")
        gradient = self.graph.cross_entropy_backward(scores, wanted, scale=1 / (wanted.shape[0] * wanted.shape[1]))
        for back in (back_scores, back_norm, *reversed(backs)):
            gradient = back(gradient)
        table = context.zeros(parameters["embedding"].shape, gradient.dtype)
        self.graph.axpby(table, table, alpha=0.0, beta=0.0)  # zeros at each run
        self.gradients["embedding"] = self.graph.scatter_add(table, gradient, tokens)

    def residual(self, part, layer, norm, x):
        """x and a part of the layer, of the normed x, added."""
        normed, back_norm = self.norm(layer + norm, x)
        y, back_part = part(layer, normed)
        return self.graph.elementwise("add", x, y), lambda dy: self.graph.elementwise("add", dy, back_norm(back_part(dy)))

    def norm(self, name, x):
        gamma, beta = self.parameters[name + ".gamma"], self.parameters[name + ".beta"]

        def back(dy):
            dx, self.gradients[name + ".gamma"], self.gradients[name + ".beta"] = self.graph.layer_norm_backward(dy, x, gamma)
            return dx

        return self.graph.layer_norm(x, gamma, beta), back

    def linear(self, name, x):
        w, bias = self.parameters[name + ".weight"], self.parameters[name + ".bias"]

        def back(dy):
            dx, self.gradients[name + ".weight"], self.gradients[name + ".bias"] = self.graph.linear_backward(dy, x, w)
            return dx

        return self.graph.linear(x, w, bias), back

    def perceptron(self, layer, x):
        inner, back_up = self.linear(layer + "up", x)
        y, back_down = self.linear(layer + "down", self.graph.elementwise("gelu", inner))
        return y, lambda dy: back_up(self.graph.elementwise("gelu_gradient", back_down(dy), inner))

    def attention(self, layer, x):
        packed, back_packed = self.linear(layer + "qkv", x)
        turning, rotation = packed[..., : 2 * x.shape[-1]], {"head_size": x.shape[-1] // self.heads}  # queries and keys, by their positions
        self.graph.rotary(turning, out=turning, **rotation)
        q, k, v = self.parts(packed)
        mixed = self.context.empty(x.shape, x.dtype)
        self.graph.attention(q, k, v, self.by_heads(mixed), mask="causal")
        y, back_mixed = self.linear(layer + "mixed", mixed)

        def back(dy):
            gradient = self.context.empty(packed.shape, packed.dtype)
            dq, dk, dv = self.parts(gradient)
            self.graph.attention_backward(q, k, v, self.by_heads(back_mixed(dy)), dq=dq, dk=dk, dv=dv, mask="causal")
            turning = gradient[..., : 2 * x.shape[-1]]
            self.graph.rotary_backward(turning, out=turning, **rotation)
            return back_packed(gradient)

        return y, back

    def parts(self, packed):
        """Views of queries, keys and values."""
        width = packed.shape[-1] // 3
        return [self.by_heads(packed[..., first : first + width]) for first in (0, width, 2 * width)]

    def by_heads(self, x):
        """A view with the dimensions batch, heads, tokens, width of a head."""
        (batch, tokens, width), (each, row, one) = x.shape, x.strides
        width //= self.heads
        return x.part((batch, self.heads, tokens, width), (each, width * one, row, one))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--device", default="auto")
    for name, default in (("tokens", 32), ("width", 64), ("heads", 4), ("layers", 2), ("batch", 16), ("steps", 100), ("rate", 0.003)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    given = parser.parse_args()
    text = np.frombuffer(given.text.read_bytes(), np.uint8).astype(np.int32) % CHARACTERS
    draw = np.random.default_rng(1)
    with sg.Context(given.device) as context:
        parameters = {name: context.array(values) for name, values in first_parameters(given.width, given.layers, draw).items()}
        shape = (given.batch, given.tokens)
        network = Transformer(context, parameters, context.empty(shape, "i32"), context.empty(shape, "i32"), given.heads)
        optimizer = sg.Adam(context, parameters, lr=given.rate)
        print(f"{sum(each.size for each in parameters.values())} parameters, {len(network.graph)} operations in a step")
        jobs = []
        for _ in range(given.steps):
            rows = draw.integers(0, len(text) - given.tokens, given.batch)[:, None] + np.arange(given.tokens)
            context.copy_async(network.tokens, text[rows])
            context.copy_async(network.wanted, text[rows + 1])
            network.graph.run_async()
            optimizer.step(network.gradients)
            jobs.append(context.copy_async(np.empty((1, 1), np.float32), network.loss))
        losses = [job.result().item() for job in jobs]
    for step in range(0, given.steps, 5):
        print(f"step {step + 1:3}  loss {losses[step]:.4f}  {'#' * round(15 * losses[step])}")
    assert given.steps < 20 or np.mean(losses[-3:]) < 0.8 * losses[0]


if __name__ == "__main__":
    main()
