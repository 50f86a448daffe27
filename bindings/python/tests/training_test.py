# SPDX-License-Identifier: Apache-2.0
"""Operations of training against NumPy in f64: of each type, on arrays of the host and of the device, in place and into given arrays."""

import itertools
import unittest

import numpy as np
import streamgemm as sg
from training_cases import TOLERANCES, TrainingCases

REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def cross_entropies(x, classes):
    """The losses, and the softmax less 1 at each row's class; zeros for rows whose class does not exist."""
    exist = (classes >= 0) & (classes < x.shape[-1])
    at = np.where(exist, classes, 0)[..., None]
    least, one_hot = x.max(-1, keepdims=True), np.zeros_like(x)
    np.put_along_axis(one_hot, at, 1, -1)
    losses = np.log(np.exp(x - least).sum(-1, keepdims=True)) + least - np.take_along_axis(x, at, -1)
    return losses * exist[..., None], (softmax(x) - one_hot) * exist[..., None]


def norm_gradients(dy, x, gamma, epsilon, has_mean):
    """dx, dgamma and dbeta of a layer norm, or without a mean of an RMS norm."""
    centred = x - x.mean(-1, keepdims=True) if has_mean else x
    root = np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    scaled, by_scaled = centred / root, dy * gamma
    dx = by_scaled - scaled * (by_scaled * scaled).mean(-1, keepdims=True)
    if has_mean:
        dx -= by_scaled.mean(-1, keepdims=True)
    rows = tuple(range(x.ndim - 1))
    return dx / root, (dy * scaled).sum(rows), dy.sum(rows)


class Training(TrainingCases):
    def test_row_reduce(self):
        for shape in self.cases():
            x, values = self.drawn(*shape)
            axes = [-1] + ([0, 1] if len(shape) == 2 else [0] if len(shape) > 2 and self.where == "host" else [])
            for (name, reference), axis in itertools.product(REDUCTIONS.items(), axes):
                if shape[axis] == 0:
                    continue
                wanted = reference(values, axis, keepdims=True)
                size = shape[axis] ** 0.5 * 3
                self.check(wanted, self.context.row_reduce(x, name, axis=axis), size)
                out = self.place(np.zeros(wanted.shape))
                self.assertIs(out, self.context.row_reduce(x, sg.Reduction[name.upper()], out, axis=axis))
                self.check(wanted, out, size)

    def test_a_nan_is_the_extreme_of_its_row(self):
        x = np.array([[1, np.nan, 2], [3, 4, 5]])
        for name in ("max", "min"):
            np.testing.assert_array_equal(self.context.row_reduce(x, name), REDUCTIONS[name](x, 1, keepdims=True))

    def test_softmax_backward(self):
        for shape in self.cases():
            y, probabilities = self.drawn(*shape)
            dy, gradient = self.drawn(*shape)
            wanted = probabilities * (gradient - (probabilities * gradient).sum(-1, keepdims=True))
            size = 1 + np.abs(wanted).max(initial=0)
            self.check(wanted, self.context.softmax_backward(y, dy), size)
            self.assertIs(dy, self.context.softmax_backward(y, dy, dy))
            self.check(wanted, dy, size)
        x, dy = softmax(self.random.standard_normal((6, 5)).T), self.random.standard_normal((5, 6))
        found = self.context.softmax_backward(x.T.copy(), dy.T.copy(), axis=0)
        np.testing.assert_allclose(found.T, x * (dy - (x * dy).sum(-1, keepdims=True)), atol=1e-12)

    def test_cross_entropy(self):
        for shape, dtype in itertools.product(self.cases(), (np.int32, np.int64)):
            x, values = self.drawn(*shape)
            drawn = np.asarray(self.random.integers(-1, shape[-1] + 1, shape[:-1]))  # -1 and the number of classes are ignored
            drawn = np.where(self.random.random(drawn.shape) < 0.2, -100, drawn)
            classes, options = self.indices(drawn, dtype)
            losses, gradients = cross_entropies(values, drawn)
            self.check(losses, self.context.cross_entropy(x, classes, **options), 5)
            out = self.place(np.zeros(losses.shape))
            self.assertIs(out, self.context.cross_entropy(x, classes, out, **options))
            self.check(losses, out, 5)
            dy, factors = self.drawn(*shape[:-1], 1)
            self.check(gradients * factors, self.context.cross_entropy_backward(x, classes, dy, **options), 3)
            self.assertIs(x, self.context.cross_entropy_backward(x, classes, out=x, scale=0.25, **options))
            self.check(gradients / 4, x)

    def test_norms_backward(self):
        for shape in self.cases():
            x, values = self.drawn(*shape)
            dy, gradient = self.drawn(*shape)
            gamma, factors = self.drawn(shape[-1])
            size = 5 * max(1, values.size // max(1, shape[-1])) ** 0.5
            if shape[-1] == 1:  # the root of epsilon magnifies rounding
                size *= 300
            for has_mean, given in itertools.product((True, False), (True, False)):
                wanted = norm_gradients(gradient, values, factors if given else 1, 1e-3, has_mean)[: 2 + has_mean]
                call = self.context.layer_norm_backward if has_mean else self.context.rms_norm_backward
                scale = gamma if given else None
                found = call(dy, x, scale, epsilon=1e-3)
                for each, other in zip(wanted, found, strict=True):
                    self.check(each, other, size)
                placed = self.place(gradient)
                made = self.place(np.zeros(shape[-1]))
                dx, dgamma, *dbeta = call(placed, x, scale, dx=placed, dgamma=made, epsilon=1e-3, **({"dbeta": False} if has_mean else {}))
                self.assertIs(placed, dx)
                self.assertIs(made, dgamma)
                self.assertEqual([None] * has_mean, dbeta)
                self.check(wanted[0], placed, size)
                self.check(wanted[1], made, size)
                self.assertIsNone(call(dy, x, scale, dgamma=False, epsilon=1e-3)[1])

    def test_rotary_backward(self):
        for pairs in ("halves", "interleaved"):
            options = {"head_size": 8, "rotated_size": 6, "position": 3, "theta": 100.0, "pairs": pairs}
            for shape in self.cases(((5, 24), (2, 5, 24))):
                x, values = self.drawn(*shape)
                dy, gradient = self.drawn(*shape)
                turned, back = self.context.rotary(x, **options), self.context.rotary_backward(dy, **options)
                self.check(self.values(self.context.rotary(dy, inverse=True, **options)), back)
                self.assertAlmostEqual(1, (self.values(turned) * gradient).sum() / (values * self.values(back)).sum(), delta=50 * TOLERANCES[self.dtype])
                wanted = self.values(back)
                self.assertIs(dy, self.context.rotary_backward(dy, out=dy, **options))
                self.check(wanted, dy)

    def test_scatter_add(self):
        for rows, dtype in itertools.product(self.cases(((), (6,), (2, 5), (0,), (300,))), (np.int32, np.int64)):
            for from_end in (False, True):
                if self.where == "device" and not rows:
                    continue  # a vector of indices there
                given = self.random.integers(-9, 10, rows)  # of a table of 8 rows
                indices, options = self.indices(given, dtype)
                table, wanted = self.drawn(8, 5)
                shape = (*(rows if self.where == "host" else (given.size,)), 5)
                x, values = self.drawn(*shape)
                for row, at in zip(values.reshape(-1, 5), np.ravel(given)):
                    if -8 * from_end <= at < 8:
                        wanted[at] += row
                self.assertIs(table, self.context.scatter_add(table, x, indices, from_end=from_end, **options))
                self.check(wanted, table, 20)

    def test_scatter_add_is_the_gradient_of_gather(self):
        table, indices, dy = self.random.standard_normal((7, 3)), self.random.integers(0, 7, (4, 5)), self.random.standard_normal((4, 5, 3))
        gradient = self.context.scatter_add_async(np.zeros((7, 3)), self.context.axpby_async(dy, dy.copy(), beta=0), indices).result()
        self.assertAlmostEqual((self.context.gather(table, indices) * dy).sum(), (table * gradient).sum())

    def test_sgd(self):
        forms = ({}, {"weight_decay": 0.1}, {"momentum": 0.9}, {"momentum": 0.5, "weight_decay": 0.1, "nesterov": True})
        for shape, form in itertools.product(self.cases(((), (5,), (4, 3, 8), (0, 4), (130, 70))), forms):
            parameters, p = self.drawn(*shape)
            buffer = self.place(np.zeros(shape), "f64" if self.dtype == "f64" else "f32") if "momentum" in form else None
            momentum = np.zeros(shape)
            for _ in range(3):
                gradient, g = self.drawn(*shape)
                self.assertIs(parameters, self.context.sgd(parameters, gradient, buffer, rate=0.1, **form))
                g = g + form.get("weight_decay", 0) * p
                if "momentum" in form:
                    momentum = form["momentum"] * momentum + g
                    g = g + form["momentum"] * momentum if "nesterov" in form else momentum
                p = p - 0.1 * g
            self.check(p, parameters, 3)
            if buffer is not None:
                self.check(momentum, buffer, 5)

    def test_adam(self):
        forms = ({}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled": True, "beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3})
        for shape, form in itertools.product(self.cases(((), (5,), (4, 3, 8), (0, 4), (130, 70))), forms):
            parameters, p = self.drawn(*shape)
            states = [self.place(np.zeros(shape), "f64" if self.dtype == "f64" else "f32") for _ in range(2)]
            m, v, decay, epsilon = np.zeros(shape), np.zeros(shape), form.get("weight_decay", 0), form.get("epsilon", 1e-8)
            beta1, beta2 = form.get("beta1", 0.9), form.get("beta2", 0.999)
            for step in range(1, 4):
                gradient, g = self.drawn(*shape)
                self.assertIs(parameters, self.context.adam(parameters, gradient, *states, step=step, rate=0.1, **form))
                if "decoupled" in form:
                    p = p * (1 - 0.1 * decay)
                else:
                    g = g + decay * p
                m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
                p = p - 0.1 * m / (1 - beta1**step) / (np.sqrt(v / (1 - beta2**step)) + epsilon)
            self.check(p, parameters, 3)
            self.check(m, states[0], 3)
            self.check(v, states[1], 3)

    def test_jobs_are_operands(self):
        """A step of a linear classifier whose calls do not wait."""
        x, w, classes = self.random.standard_normal((6, 4)), self.random.standard_normal((4, 3)), np.array([0, 2, 1, 1, -100, 0])
        _, slope = cross_entropies(x @ w, classes)
        wanted = w - 0.5 * x.T @ slope / 6
        scores = self.context.gemm_async(x, w)
        losses = self.context.cross_entropy_async(scores, classes)
        mean = self.context.row_reduce_async(losses, "mean", axis=0)
        dscores = self.context.cross_entropy_backward_async(scores, classes, scale=1 / 6)
        dw = self.context.gemm_async(x, dscores, op_a="T")
        step = self.context.sgd_async(w, dw, rate=0.5)
        np.testing.assert_allclose(step.result(), wanted, rtol=1e-12)
        np.testing.assert_allclose(mean.result(), [[losses.result().mean()]])
        images = self.random.standard_normal((1, 1, 4, 4))
        smaller = self.context.pool2d_async(images, 2)
        np.testing.assert_array_equal(self.context.pool2d_backward(smaller, images, 2).sum(), smaller.result().sum())
        probabilities = self.context.softmax_async(scores)
        gradient = self.context.softmax_backward_async(probabilities, self.context.rotary_backward_async(x[:, :3].copy(), rotated_size=2))
        dx, _, _ = self.context.layer_norm_backward(gradient, probabilities)
        np.testing.assert_allclose(dx.sum(1), 0, atol=1e-9)

    def test_graphs_repeat_steps(self):
        w, g, buffer = np.ones((2, 3)), np.ones((2, 3)), np.zeros((2, 3))
        table, rows = np.zeros((3, 2)), np.array([2, 0, 2])
        with self.context.graph() as graph:
            self.assertIs(w, graph.sgd(w, g, buffer, rate=0.5, momentum=0.5))
            self.assertIs(table, graph.scatter_add(table, np.ones((3, 2)), rows))
            total = graph.row_reduce(w)
            for _ in range(3):
                graph.run()
        np.testing.assert_array_equal(np.full((2, 3), 1 - 0.5 * (1 + 1.5 + 1.75)), w)
        np.testing.assert_array_equal([[3, 3], [0, 0], [6, 6]], table)
        np.testing.assert_array_equal(w.sum(1, keepdims=True), total)

    def test_wrong_calls(self):
        c, x, images = self.context, np.ones((2, 3)), np.ones((1, 2, 4, 4))
        two, short, single = np.array([0, 1]), np.ones(2), np.ones((2, 3), np.float32)
        state = [np.zeros((2, 3)), np.zeros((2, 3))]
        for call, text in (
            (lambda: c.row_reduce(x, "median"), r"reduction is 'median', which is none of \['sum', 'mean'"),
            (lambda: c.row_reduce(x, 0), r"reduction is 0, which is none of \['sum', 'mean'"),
            (lambda: c.row_reduce(x, out=x), r"out has shape \(2, 3\); it must be \(2, 1\)"),
            (lambda: c.row_reduce(x, axis=2), "axis is 2; x has 2 dimensions"),
            (lambda: c.softmax_backward(x, short), r"dy has shape \(2,\); it must be \(2, 3\)"),
            (lambda: c.softmax_backward(x, single), "dy.dtype is f32 and out.dtype is f64; they must be equal"),
            (lambda: c.cross_entropy(x, two[:1]), r"indices has shape \(1,\); it must be \(2,\)"),
            (lambda: c.cross_entropy(x, two.astype(np.int32)[:1]), r"indices has shape \(1,\); it must be \(2,\)"),
            (lambda: c.cross_entropy(np.ones((2, 5, 3)), np.ones((2, 4), int)), r"indices has shape \(2, 4\); it must be"),
            (lambda: c.cross_entropy(x, two.astype(np.int32), index_type="i64"), r"indices has shape \(1,\); it must be \(2,\)"),
            (lambda: c.gather(x, np.zeros((3, 10), np.int32), index_type="i64"), "the last dimension of indices is 10; an index of i64 has two words"),
            (lambda: c.adam(x, x + 1, None, state[1]), "first is None; it is read and written: it must be given"),
            (lambda: c.cross_entropy(x, short), "indices has elements of f64; they must be i32 or i64"),
            (lambda: c.cross_entropy(x, two, x), r"out has shape \(2, 3\); it must be \(2, 1\)"),
            (lambda: c.cross_entropy_backward(x, two, short), r"dy has shape \(2,\); it must be \(2, 1\)"),
            (lambda: c.layer_norm_backward(x, x, short), r"gamma has shape \(2,\); it must be \(3,\)"),
            (lambda: c.layer_norm_backward(x, x, dgamma=short), r"dgamma has shape \(2,\); it must be \(3,\)"),
            (lambda: c.rms_norm_backward(x, x, epsilon=-1.0), "epsilon is -1"),
            (lambda: c.rotary_backward(x, head_size=2), "head_size is 2; it must be a divisor of the 3 columns of dy"),
            (lambda: c.scatter_add(x, np.ones((2, 4)), two), "x has rows of 4 elements; those of table have 3"),
            (lambda: c.scatter_add(x, np.ones((5, 3)), two), r"has shape .*; it must be"),
            (lambda: c.sgd(x, x + 1, momentum=0.5), "momentum_buffer is None; with a momentum it must be given"),
            (lambda: c.sgd(x, np.ones((3, 2))), r"gradient has shape \(3, 2\); it must be \(2, 3\)"),
            (lambda: c.sgd(x, np.ones(6)), r"gradient has shape \(6,\); it must be \(2, 3\)"),
            (lambda: c.sgd(x, x), "gradient .* and parameters .* overlap"),
            (lambda: c.sgd(x[:, ::2], x[:, :2].copy()), "the elements of parameters do not follow each other in memory"),
            (lambda: c.sgd(x, x + 1, np.zeros((2, 3), np.float32), momentum=0.5), "momentum_buffer is f32; it must be f64"),
            (lambda: c.sgd(x, x + 1, rate=float("nan")), "rate is nan"),
            (lambda: c.sgd(x, x + 1, state[0], momentum=1.5), "momentum is 1.5"),
            (lambda: c.adam(x, x + 1, *state, step=0), "step is 0; it must be from 1"),
            (lambda: c.adam(x, x + 1, state[0], np.zeros((3, 2))), r"second has shape \(3, 2\); it must be \(2, 3\)"),
            (lambda: c.adam(x, x + 1, *state, beta1=1.0), "beta1 is 1"),
            (lambda: c.adam(x, x + 1, state[0], state[0]), "overlap"),
            (lambda: c.pool2d(images, 5), "kernel is 5, which spans 5 rows; the padded image has 4"),
            (lambda: c.pool2d(images, 2, pooling="sum"), r"pooling is 'sum', which is none of \['max', 'average'"),
            (lambda: c.pool2d(images, 2, stride=0), "stride is 0; it must be from 1"),
            (lambda: c.pool2d(x, 2), "x has 2 dimensions"),
            (lambda: c.pool2d_backward(images, None, 2), "x is None; the gradient of a maximum reads it"),
            (lambda: c.pool2d_backward(images, None, 2, pooling="average"), "size is None; without x and dx it must be the height and width of dx"),
            (lambda: c.pool2d_backward(images, images, 2), r"dy has shape \(1, 2, 4, 4\); it must be \(1, 2, 2, 2\)"),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(sg.InvalidArgument, text):
                call()


if __name__ == "__main__":
    unittest.main()
