# SPDX-License-Identifier: Apache-2.0
"""Trains a network of two layers to read handwritten digits, by mini-batches of plain NumPy arrays, and the same network by NumPy
alone: the losses agree, and so do the digits that are read.
usage: train_digits.py digits.csv [DEVICE]"""

import sys

import numpy as np
import streamgemm as sg

INNER, BATCH, EPOCHS, RATE = 48, 64, 30, 0.3


def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


class ByStreamGemm:
    """Each layer's gradients are one job, in which its two GEMMs share the gradient of its output."""

    def __init__(self, device):
        self.context = sg.Context(device)

    def forward(self, x, layers):
        (w1, b1), (w2, b2) = layers
        hidden = self.context.linear_async(x, w1, b1, activation="relu")
        return hidden.result(), self.context.linear(hidden, w2, b2)

    def backward(self, x, hidden, dscores, layers):
        second = self.context.linear_backward_async(dscores, hidden, layers[1][0])
        dhidden, dw2, db2 = second.result()
        _, dw1, db1 = self.context.linear_backward(dhidden * (hidden > 0), x)
        return (dw1, db1), (dw2, db2)


class ByNumpy:
    def forward(self, x, layers):
        (w1, b1), (w2, b2) = layers
        hidden = np.maximum(x @ w1 + b1, 0)
        return hidden, hidden @ w2 + b2

    def backward(self, x, hidden, dscores, layers):
        dhidden = (dscores @ layers[1][0].T) * (hidden > 0)
        return (x.T @ dhidden, dhidden.sum(axis=0)), (hidden.T @ dscores, dscores.sum(axis=0))


def train(arithmetic, x, digits, test_x):
    """The mean loss of each epoch, and the digits that are read in test_x."""
    draw = np.random.default_rng(2)
    layers = [
        (draw.normal(0, np.sqrt(2 / 64), (64, INNER)).astype(np.float32), np.zeros(INNER, np.float32)),
        (draw.normal(0, np.sqrt(1 / INNER), (INNER, 10)).astype(np.float32), np.zeros(10, np.float32)),
    ]
    losses = []
    for _ in range(EPOCHS):
        order, loss = draw.permutation(len(x)), 0.0
        for first in range(0, len(x), BATCH):
            rows = order[first : first + BATCH]
            given, wanted = x[rows], np.eye(10, dtype=np.float32)[digits[rows]]
            hidden, scores = arithmetic.forward(given, layers)
            read = softmax(scores)
            loss -= np.log((read * wanted).sum(axis=1) + 1e-30).sum()
            gradients = arithmetic.backward(given, hidden, (read - wanted) / len(rows), layers)
            layers = [(w - RATE * dw, b - RATE * db) for (w, b), (dw, db) in zip(layers, gradients)]
        losses.append(loss / len(x))
    return losses, arithmetic.forward(test_x, layers)[1].argmax(axis=1)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    table = np.loadtxt(sys.argv[1], delimiter=",", dtype=np.float32)
    table = table[np.random.default_rng(1).permutation(len(table))]  # in the file one writer's digits follow another's
    x, digits = np.ascontiguousarray(table[:, :64]) / 16, table[:, 64].astype(int)
    train_x, test_x, train_digits, test_digits = x[:1297], x[1297:], digits[:1297], digits[1297:]
    losses, read = train(ByStreamGemm(sys.argv[2] if len(sys.argv) > 2 else "auto"), train_x, train_digits, test_x)
    known_losses, known_read = train(ByNumpy(), train_x, train_digits, test_x)
    for epoch, (loss, known) in enumerate(zip(losses, known_losses)):
        print(f"epoch {epoch + 1:2}  loss {loss:.4f}, by NumPy {known:.4f}  {'#' * round(30 * loss)}")
    accuracy = (read == test_digits).mean()
    print(f"{accuracy:.3f} of {len(test_x)} other digits are read; by NumPy {(known_read == test_digits).mean():.3f}")
    np.testing.assert_allclose(losses, known_losses, rtol=1e-2)
    assert (read == known_read).mean() > 0.99 and accuracy > 0.94


if __name__ == "__main__":
    main()
