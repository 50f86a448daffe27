# SPDX-License-Identifier: Apache-2.0
import numpy as np
import streamgemm as sg

random, lr = np.random.default_rng(1), 1e-3
given = [random.standard_normal(s) / s[0] ** 0.5 for s in ((256, 32), (256, 4), (32, 64), (64,), (64, 4), (4,))]
with sg.Context() as context:
    x, target, w1, b1, w2, b2 = map(context.array, given)
    for _ in range(30):
        hidden = context.linear(x, w1, b1, activation="relu")
        dy = context.axpby(target, context.linear(hidden, w2, b2), alpha=-1.0)
        dhidden, dw2, db2 = context.linear_backward(dy, hidden, w2)
        _, dw1, db1 = context.linear_backward(context.elementwise("relu_gradient", dhidden, hidden), x)
        for weights, gradient in zip((w1, b1, w2, b2), (dw1, db1, dw2, db2)):
            context.axpby(gradient, weights, alpha=-lr)
    found = [weights.asnumpy() for weights in (w1, b1, w2, b2)]

x, target, w1, b1, w2, b2 = given
for _ in range(30):
    hidden = np.maximum(x @ w1 + b1, 0)
    dy = hidden @ w2 + b2 - target
    dhidden = dy @ w2.T * (hidden > 0)
    w1, b1, w2, b2 = w1 - lr * x.T @ dhidden, b1 - lr * dhidden.sum(0), w2 - lr * hidden.T @ dy, b2 - lr * dy.sum(0)
assert all(map(np.allclose, found, (w1, b1, w2, b2)))
