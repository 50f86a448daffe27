# SPDX-License-Identifier: Apache-2.0
"""The operations of layers.h against NumPy."""

import math
import os
import unittest

import numpy as np
import streamgemm as sg

DEVICE = os.environ.get("SG_TEST_DEVICE", "cpu")
FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}
TOLERANCES = {np.float64: 1e-13, np.float32: 1e-5, np.float16: 2e-3}


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Layers(unittest.TestCase):
    def setUp(self):
        self.context = sg.Context(DEVICE)
        self.random = np.random.default_rng(3)

    def tearDown(self):
        self.context.close()

    def place(self, array):
        """The array where the device computes."""
        if DEVICE == "cpu":
            return array
        names = {"float64": "f64", "complex128": "c128", "float32": "f32", "float16": "f16"}
        made = self.context.buffer(max(array.nbytes, 1)).matrix(array.shape, names[array.dtype.name])
        self.context.copy(made, np.ascontiguousarray(array))
        return made

    def fetch(self, result, like):
        if DEVICE == "cpu":
            return result
        made = np.empty_like(like)
        self.context.copy(made, result)
        return made

    def check(self, wanted, result, like):
        found = self.fetch(result, like)
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=TOLERANCES[like.dtype.type], atol=TOLERANCES[like.dtype.type])

    def test_axpby(self):
        for a in self.arrays():
            c = (self.random.standard_normal(a.shape) * 3).astype(a.dtype)
            for alpha, beta, activation in ((1, 1, None), (-0.5, 2, None), (0, 3, "relu"), (2, 0, "gelu")):
                wanted = alpha * a.astype(np.float64) + beta * c.astype(np.float64)
                if activation:
                    wanted = FUNCTIONS[activation](wanted)
                placed = self.place(c.copy())
                self.assertIs(placed, self.context.axpby(self.place(a), placed, alpha=alpha, beta=beta, activation=activation))
                self.check(wanted, placed, a)
        graph = self.context.graph()
        x, y = self.place(np.ones((2, 3))), self.place(np.zeros((2, 3)))
        self.assertIs(y, graph.axpby(x, y, alpha=2.0))
        for _ in range(3):
            graph.run()
        self.check(np.full((2, 3), 6.0), y, np.zeros((2, 3)))
        job = self.context.axpby_async(x, self.context.axpby_async(x, y))
        self.assertIs(y, job.result(300))
        self.check(np.full((2, 3), 8.0), y, np.zeros((2, 3)))
        with self.assertRaisesRegex(sg.InvalidArgument, r"c has shape \(3, 2\); it must be \(2, 3\)"):
            self.context.axpby(x, self.place(np.zeros((3, 2))))
        with self.assertRaises(TypeError):
            self.context.axpby(x, y, alpha="2")

    def arrays(self):
        for dtype in TOLERANCES:
            for shape in [(5,), (1, 1), (3, 7), (4, 3, 8), (600, 300)]:
                with self.subTest(dtype=dtype.__name__, shape=shape):
                    yield (self.random.standard_normal(shape) * 3).astype(dtype)

    def test_functions(self):
        for x in self.arrays():
            for name, reference in FUNCTIONS.items():
                out = self.place(np.zeros_like(x))
                result = self.context.elementwise(name, self.place(x), out=out)
                self.assertIs(out, result)
                self.check(reference(x.astype(np.float64)), result, x)

    def test_functions_of_two_operands(self):
        for x in self.arrays():
            b, out = self.place(x[..., ::-1].copy()), self.place(np.zeros_like(x))
            wide = x.astype(np.float64)
            self.check(wide + wide[..., ::-1], self.context.elementwise("add", self.place(x), b, out), x)
            self.check(wide * wide[..., ::-1], self.context.elementwise(sg.Function.MULTIPLY, self.place(x), b, out), x)

    def test_fill(self):
        for x in self.arrays():
            y = self.place(x)
            self.assertIs(y, self.context.fill(y, 1.5))
            np.testing.assert_array_equal(self.fetch(y, x), np.full_like(x, 1.5))
        for dtype in ("i1", "i4", "c8", "c16"):
            y = np.ones((2, 3, 5), dtype)
            self.context.fill(y[..., :4], -3)
            np.testing.assert_array_equal(y[..., :4], np.full((2, 3, 4), -3, dtype))
            np.testing.assert_array_equal(y[..., 4], np.ones((2, 3), dtype))
        self.assertEqual(1 + 2j, self.context.fill(np.zeros(1, "c8"), 1 + 2j)[0])
        with self.assertRaisesRegex(sg.InvalidArgument, "value.real is 300; an i8 result needs an integer of 8 bits"):
            self.context.fill(np.zeros((2, 2), "i1"), 300)

    def test_clamp(self):
        for x in self.arrays():
            x[..., 0] = np.nan
            dy = x[..., ::-1].copy()
            at, placed, out = self.place(x), self.place(dy), self.place(np.zeros_like(x))
            low, high = x.dtype.type(-0.5), x.dtype.type(1.25)
            self.assertIs(out, self.context.clamp(at, float(low), float(high), out))
            np.testing.assert_array_equal(self.fetch(out, x), np.clip(x, low, high))
            wanted = np.where((x >= low) & (x <= high), dy, x.dtype.type(0))
            np.testing.assert_array_equal(self.fetch(self.context.clamp_backward(placed, at, float(low), float(high), placed), x), wanted)

    def test_row_dot(self):
        for x in self.arrays():
            b = x[..., ::-1].copy()
            wide = x.astype(np.float64)
            column = np.zeros((*x.shape[:-1], 1), x.dtype)
            at, other, out = self.place(x), self.place(b), self.place(column)
            self.assertIs(out, self.context.row_dot(at, other, out))
            found = self.fetch(out, column).astype(np.float64)
            error = np.abs(found - (wide * b).sum(-1, keepdims=True))
            self.assertLess((error / np.abs(wide * b).sum(-1, keepdims=True)).max(), TOLERANCES[x.dtype.type])
        if DEVICE == "cpu":
            made = self.context.row_dot(np.ones((2, 3, 4)), np.full((2, 3, 4), 2.0))
            np.testing.assert_array_equal(np.full((2, 3, 1), 8.0), made)

    def test_triangles(self):
        n, rows = 6, np.tril_indices(6)
        for dtype in (np.float64, np.float32, np.complex128):
            tolerance = 1e-5 if dtype is np.float32 else 1e-13
            given = [self.random.standard_normal((n, k)) + (1j * self.random.standard_normal((n, k)) if dtype is np.complex128 else 0) for k in (n, 3, 3)]
            a, b, y = (x.astype(dtype) for x in given)
            a += 4 * np.eye(n, dtype=dtype)
            a[np.triu_indices(n, 1)] = np.nan
            lower, at, placed = np.tril(np.nan_to_num(a)), self.place(a), self.place(b.copy())
            self.assertIs(placed, self.context.triangular(at, placed, op_a="T", alpha=2.0))
            np.testing.assert_allclose(lower.T @ self.fetch(placed, b), 2 * b, rtol=0, atol=20 * tolerance)
            placed = self.place(b.copy())
            self.context.triangular(at, placed, kind="multiply", diagonal="unit")
            wanted = (lower - np.diag(np.diag(lower)) + np.eye(n)) @ b
            np.testing.assert_allclose(self.fetch(placed, b), wanted, rtol=0, atol=20 * tolerance)
            placed = self.place(np.zeros_like(b))
            self.assertIs(placed, self.context.symmetric(at, self.place(b), placed))
            whole = lower + lower.T - np.diag(np.diag(lower))
            np.testing.assert_allclose(self.fetch(placed, b), whole @ b, rtol=0, atol=40 * tolerance)
            square = self.place(a.copy())
            self.assertIs(square, self.context.rank_k(self.place(b), square, b=self.place(y), symmetry="hermitian", beta=0.0))
            wanted, found = b @ y.conj().T + y @ b.conj().T, self.fetch(square, a)
            np.testing.assert_allclose(found[rows], wanted[rows], rtol=0, atol=20 * tolerance)
            self.assertTrue(np.isnan(found[np.triu_indices(n, 1)]).all())
        with self.assertRaisesRegex(sg.InvalidArgument, "kind is 'divide', which is none of"):
            self.context.triangular(at, placed, kind="divide")
        with self.assertRaisesRegex(sg.InvalidArgument, r"a has shape \(6, 3\); it must be \(6, 6\)"):
            self.context.triangular(placed, placed)

    def test_gradients(self):
        for name, reference in FUNCTIONS.items():
            x = self.random.standard_normal((5, 40)) * 3
            dy, at = self.random.standard_normal(x.shape), self.place(x)
            wanted = dy * (reference(x + 1e-6) - reference(x - 1e-6)) / 2e-6
            placed = self.place(dy.copy())
            self.assertIs(placed, self.context.elementwise(name + "_gradient", placed, at, placed))
            np.testing.assert_allclose(self.fetch(placed, x), wanted, rtol=1e-8, atol=1e-8)

    def test_rotary(self):
        for dtype in TOLERANCES:
            for pairs in ("halves", "interleaved"):
                x = self.random.standard_normal((2, 5, 24)).astype(dtype)  # two sequences of 5 tokens with 3 heads of 8
                angle = np.arange(7, 12)[:, None] * 100.0 ** (-np.arange(0, 6, 2) / 6)
                heads, wanted = x.astype(np.float64).reshape(2, 5, 3, 8), x.astype(np.float64).reshape(2, 5, 3, 8).copy()
                first, second = (slice(0, 3), slice(3, 6)) if pairs == "halves" else (slice(0, 6, 2), slice(1, 6, 2))
                c, s = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
                wanted[..., first] = heads[..., first] * c - heads[..., second] * s
                wanted[..., second] = heads[..., first] * s + heads[..., second] * c
                placed, out = self.place(x), self.place(np.zeros_like(x))
                options = {"head_size": 8, "rotated_size": 6, "pairs": pairs}
                result = self.context.rotary(placed, out=out, position=7, theta=100.0, **options)
                self.check(wanted.reshape(x.shape), result, x)
                tables = [self.place(f(angle).astype(dtype)) for f in (np.cos, np.sin)]
                self.check(wanted.reshape(x.shape), self.context.rotary(placed, *tables, out, **options), x)
                self.check(x, self.context.rotary(out, *tables, out, inverse=True, **options), x)

    def test_softmax(self):
        for x in self.arrays():
            out = self.place(np.zeros_like(x))
            self.check(softmax(x.astype(np.float64)), self.context.softmax(self.place(x), out), x)

    def test_causal_softmax_of_stacks(self):
        x = self.random.standard_normal((2, 3, 4, 5))
        hidden = np.arange(5) > np.arange(4)[:, None] + 1
        wanted = softmax(np.where(hidden, -np.inf, x))
        placed = self.place(x)
        self.check(wanted, self.context.softmax(placed, placed, mask="causal", mask_offset=1), x)

    def test_causal_softmax_in_place(self):
        for offset in (0, 2, -1):
            x = self.random.standard_normal((4, 6))
            hidden = np.arange(6)[None, :] > np.arange(4)[:, None] + offset
            wanted = np.where(hidden.all(axis=1, keepdims=True), 0, softmax(np.where(hidden, -1e300, x)))
            placed = self.place(x.copy())
            self.check(wanted, self.context.softmax(placed, placed, mask="causal", mask_offset=offset), x)

    def test_norms(self):
        for x in self.arrays():
            gamma, beta = x.reshape(-1, x.shape[-1])[0].copy(), x.reshape(-1, x.shape[-1])[-1].copy()
            wide, g, b = x.astype(np.float64), gamma.astype(np.float64), beta.astype(np.float64)
            scaled = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-3)
            at, gamma, beta, out = self.place(x), self.place(gamma), self.place(beta), self.place(np.zeros_like(x))
            self.check(scaled * g + b, self.context.layer_norm(at, gamma, beta, out, epsilon=1e-3), x)
            self.check(scaled, self.context.layer_norm(at, out=out, epsilon=1e-3), x)
            root = np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-3)
            self.check(wide / root * g, self.context.rms_norm(at, gamma, out, epsilon=1e-3), x)

    def test_results_are_made(self):
        x = self.random.standard_normal((3, 4)).astype(np.float32)
        for result in (self.context.softmax(x), self.context.elementwise("relu", x), self.context.rms_norm(x)):
            self.assertEqual((x.shape, x.dtype), (result.shape, result.dtype))

    def test_results_have_the_layout_of_x(self):
        x = self.random.standard_normal((5, 7))
        for call in (self.context.softmax, self.context.layer_norm, lambda x, out=None: self.context.elementwise("relu", x, out=out)):
            wanted = np.array(call(x))
            for view in (x, np.asfortranarray(x), np.ascontiguousarray(x.T).T):
                found = call(view)
                np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
                self.assertEqual(found.flags.c_contiguous, view.flags.c_contiguous)
                for order in "CF":
                    out = np.empty((5, 7), order=order)
                    call(view, out=out)
                    np.testing.assert_allclose(out, wanted, rtol=1e-12, atol=1e-12)

    def test_another_axis(self):
        x, y = self.random.standard_normal((5, 7)), self.random.standard_normal((3, 4, 5))
        for array, axes in ((x, (0, 1, -1, -2)), (np.asfortranarray(x), (0, 1, -2)), (y, (0, 2, -3))):
            for axis in axes:
                wanted = np.moveaxis(softmax(np.moveaxis(array, axis, -1)), -1, axis)
                np.testing.assert_allclose(self.context.softmax(array, axis=axis), wanted, rtol=1e-12)
                out = np.empty(array.shape)
                self.assertIs(out, self.context.softmax(array, out, axis=axis))
                np.testing.assert_allclose(out, wanted, rtol=1e-12)
        gamma = self.random.standard_normal(5)
        wanted = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * gamma[:, None]
        np.testing.assert_allclose(self.context.layer_norm(x, gamma, axis=0), wanted, rtol=1e-9)
        for call, kind, text in [
            (lambda: self.context.softmax(x, axis=2), sg.InvalidArgument, "axis is 2; x has 2 dimensions"),
            (lambda: self.context.softmax(y, axis=1), sg.InvalidArgument, "the rows of x are not evenly spaced in memory"),
            (lambda: self.context.softmax(x, axis="rows"), TypeError, "axis is 'rows', which is no integer"),
            (lambda: self.context.softmax(x, np.empty((7, 5)), axis=0), sg.InvalidArgument, r"out has shape \(7, 5\); it must be \(5, 7\)"),
        ]:
            with self.assertRaisesRegex(kind, text):
                call()

    def test_indices_of_any_shape(self):
        table = self.random.standard_normal((9, 4)).astype(np.float32)
        for dtype in (np.int32, np.int64):
            for shape in ((), (1,), (3,), (2, 3), (2, 1, 4), (0, 3), (2, 0)):
                indices = self.random.integers(0, 9, shape).astype(dtype)
                for found in (self.context.gather(table, indices), self.context.gather(np.asfortranarray(table), indices)):
                    np.testing.assert_array_equal(found, table[indices])
        out = np.empty((2, 2, 4), np.float32)
        self.assertIs(out, self.context.gather(table, np.array([[8, 0], [1, 1]]), out))
        for wrong, text in (
            (np.arange(8)[::2], r"indices has shape \(4,\) and strides \(16,\) in bytes; they must be contiguous"),
            (np.ones(3), "indices has elements of f64; they must be i32 or i64"),
        ):
            with self.assertRaisesRegex(sg.InvalidArgument, text):
                self.context.gather(table, wrong)
        with self.assertRaisesRegex(sg.InvalidArgument, r"out has shape \(4, 4\); it must be \(2, 2, 4\)"):
            self.context.gather(table, np.array([[8, 0], [1, 1]]), np.empty((4, 4), np.float32))

    def test_attention_in_order(self):
        q, k, v = (self.random.standard_normal((32, 16)) for _ in range(3))
        scores = np.empty((32, 32))
        job = self.context.gemm_async(q, k, scores, op_b="T", alpha=0.25)
        job = self.context.softmax_async(job, scores, mask="causal")
        result = self.context.gemm_async(job, v).result()
        hidden = np.arange(32)[None, :] > np.arange(32)[:, None]
        np.testing.assert_allclose(result, softmax(np.where(hidden, -np.inf, q @ k.T / 4)) @ v, rtol=1e-12, atol=1e-14)

    def test_bad_arguments(self):
        x = self.place(np.ones((2, 3)))
        short = self.place(np.ones(2))
        for call, text in [
            (lambda: self.context.elementwise("sine", x, out=x), "function is 'sine'"),
            (lambda: self.context.elementwise("add", x, out=x), "b is None; this function has a second operand"),
            (lambda: self.context.elementwise("relu", x, x, x), "this function has one operand only"),
            (lambda: self.context.clamp(x, float("nan"), 1, x), "low is NaN"),
            (lambda: self.context.clamp(x, 0, 1, short), r"out has shape \(2,\); it must be \(2, 3\)"),
            (lambda: self.context.row_dot(x, x, x), r"out has shape \(2, 3\); it must be \(2, 1\)"),
            (lambda: self.context.row_dot(x, short), r"b has shape \(2,\); it must be \(2, 3\)"),
            (lambda: self.context.softmax(x, short), r"out has shape \(2,\); it must be \(2, 3\)"),
            (lambda: self.context.softmax(x, x, mask="upper"), "mask is 'upper'"),
            (lambda: self.context.softmax(x, x, mask_offset=1), "mask_offset is 1"),
            (lambda: self.context.layer_norm(x, short, out=x), r"gamma has shape \(2,\); it must be \(3,\)"),
            (lambda: self.context.layer_norm(x, out=x, epsilon=-1.0), "epsilon is -1"),
            (lambda: self.context.rotary(x, out=x), "rotated_size is 0; the rotated elements of a head of 3 must be even"),
            (lambda: self.context.rotary(x, x, out=x, rotated_size=2), "give both or neither"),
            (lambda: self.context.rotary(x, out=x, pairs="thirds"), "pairs is 'thirds'"),
        ]:
            with self.assertRaisesRegex(sg.InvalidArgument, text):
                call()


if __name__ == "__main__":
    unittest.main()
