# SPDX-License-Identifier: Apache-2.0
"""One step of the networks of train_resnet.py and train_transformer.py in f64: the losses are those of forward passes written here
with NumPy, and the gradients their differences in drawn directions."""

import importlib.util
import pathlib
import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mean_cross_entropy(scores, classes):
    least = scores.max(-1, keepdims=True)
    logarithms = np.log(np.exp(scores - least).sum(-1)) + least[..., 0]
    return (logarithms - np.take_along_axis(scores, classes[..., None], -1)[..., 0]).mean()


def convolution(x, w, bias, stride=1):
    size = w.shape[-1]
    x = np.pad(x, ((0, 0), (0, 0), (size // 2,) * 2, (size // 2,) * 2))
    out = [(n - size) // stride + 1 for n in x.shape[2:]]
    y = np.zeros((len(x), len(w), *out)) + bias[:, None, None]
    for i, j in np.ndindex(size, size):
        seen = x[:, :, i : i + stride * out[0] : stride, j : j + stride * out[1] : stride]
        y += np.tensordot(seen, w[:, :, i, j], (1, 1)).transpose(0, 3, 1, 2)
    return y


def resnet_loss(p, images, labels):
    def conv(name, x, stride=1):
        return convolution(x, p[name + ".weight"], p[name + ".bias"], stride)

    x = np.maximum(conv("conv1", images, 2), 0)
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    x = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2].max((4, 5))
    for stage in range(1, 5):
        for block in range(2):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = conv(name + ".conv2", np.maximum(conv(name + ".conv1", x, stride), 0))
            x = np.maximum(y + (conv(name + ".downsample", x, 2) if stride == 2 else x), 0)
    return mean_cross_entropy(x.mean((2, 3)) @ p["fc.weight"].T + p["fc.bias"], labels)


def layer_norm(x, gamma, beta):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta


def turned(x):
    """Heads (batch, heads, tokens, width), by the positions of tokens."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[2])[:, None] * 10000.0 ** (-np.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * np.cos(angle) - second * np.sin(angle), first * np.sin(angle) + second * np.cos(angle)], -1)


def transformer_loss(p, tokens, wanted, heads, layers):
    def linear(name, x):
        return x @ p[name + ".weight"] + p[name + ".bias"]

    x = p["embedding"][tokens]
    batch, length, width = x.shape
    for layer in map(str, range(layers)):
        normed = layer_norm(x, p[layer + ".norm1.gamma"], p[layer + ".norm1.beta"])
        q, k, v = linear(layer + ".qkv", normed).reshape(batch, length, 3, heads, -1).transpose(2, 0, 3, 1, 4)
        scores = turned(q) @ turned(k).swapaxes(-1, -2) / np.sqrt(width // heads)
        weights = np.exp(np.where(np.tri(length, dtype=bool), scores, -np.inf))
        mixed = (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + linear(layer + ".mixed", mixed)
        inner = linear(layer + ".up", layer_norm(x, p[layer + ".norm2.gamma"], p[layer + ".norm2.beta"]))
        x = x + linear(layer + ".down", inner / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3))))
    return mean_cross_entropy(linear("scores", layer_norm(x, p["norm.gamma"], p["norm.beta"])), wanted)


class TrainingExamples(DeviceTest):
    def check(self, network, parameters, loss_of, names):
        """Compares the loss of a step and some of its gradients; loss_of: the loss by NumPy of parameters."""
        network.graph.run()
        self.assertAlmostEqual(loss_of(parameters), network.loss.asnumpy().item(), places=9)
        self.assertEqual(parameters.keys(), network.gradients.keys())
        draw = np.random.default_rng(7)
        for name in names:
            direction = draw.normal(0, 1, parameters[name].shape)
            ahead, behind = (loss_of({**parameters, name: parameters[name] + step * direction}) for step in (1e-6, -1e-6))
            change, gradient = (ahead - behind) / 2e-6, network.gradients[name].asnumpy()
            self.assertAlmostEqual(1, (gradient * direction).sum() / change, places=4, msg=name)

    def place(self, parameters):
        return {name: self.context.array(values) for name, values in parameters.items()}

    def test_resnet(self):
        module, draw = example("train_resnet"), np.random.default_rng(3)
        parameters = module.first_parameters(10, draw, np.float64)
        parameters = {name: draw.normal(0, 0.1, values.shape) if name.endswith("bias") else values for name, values in parameters.items()}
        images, labels, placed = draw.normal(0, 1, (2, 3, 16, 24)), np.array([3, 9], np.int32), self.place(parameters)
        network = module.ResNet(self.context, placed, self.context.array(images), self.context.array(labels))
        names = ("conv1.weight", "layer1.1.conv1.bias", "layer2.0.downsample.weight", "layer4.1.conv2.weight", "fc.weight")
        self.check(network, parameters, lambda p: resnet_loss(p, images, labels), names)
        sg.SGD(self.context, placed, lr=0.5, momentum=0.9).step(network.gradients).result()
        for name in names:
            np.testing.assert_allclose(placed[name].asnumpy(), parameters[name] - 0.5 * network.gradients[name].asnumpy(), rtol=1e-12, atol=1e-15)

    def test_transformer(self):
        module, draw = example("train_transformer"), np.random.default_rng(5)
        parameters = module.first_parameters(16, 2, draw, np.float64)
        parameters = {name: values + draw.normal(0, 0.1, values.shape) for name, values in parameters.items()}
        tokens, wanted = (draw.integers(0, 128, (3, 7)).astype(np.int32) for _ in range(2))
        network = module.Transformer(self.context, self.place(parameters), *map(self.context.array, (tokens, wanted)), heads=4)
        names = [name for name in parameters if not name.startswith("0") or name in ("0.qkv.weight", "0.norm1.gamma")]
        self.check(network, parameters, lambda p: transformer_loss(p, tokens, wanted, 4, 2), names)
        network.graph.run()
        again = network.gradients["embedding"].asnumpy()
        network.graph.run()
        np.testing.assert_array_equal(again, network.gradients["embedding"].asnumpy())  # not added up


if __name__ == "__main__":
    unittest.main()
