# SPDX-License-Identifier: Apache-2.0
"""A linear layer and its gradients against NumPy."""

import os
import unittest

import numpy as np
import streamgemm as sg

DEVICE = os.environ.get("SG_TEST_DEVICE", "cpu")


class Linear(unittest.TestCase):
    def setUp(self):
        self.context = sg.Context(DEVICE)
        self.random = np.random.default_rng(4)

    def tearDown(self):
        self.context.close()

    def array(self, *shape, dtype=np.float64):
        return self.random.standard_normal(shape).astype(dtype)

    def near(self, wanted, found, tolerance=1e-12):
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)

    def test_forward(self):
        for shape in [(6,), (1, 6), (5, 6), (2, 3, 6)]:
            x, w, bias = self.array(*shape), self.array(6, 4), self.array(4)
            self.near(x @ w + bias, self.context.linear(x, w, bias))
            self.near(np.maximum(x @ w, 0), self.context.linear(x, w.T.copy(), op_w="T", activation="relu"))
            out = np.zeros((*shape[:-1], 4))
            self.assertIs(out, self.context.linear(x, w, None, out))
            self.near(x @ w, out)

    def test_blocking_calls_of_any_size(self):
        for rows, inputs, outputs in [(1, 0, 3), (0, 4, 3), (2, 4, 3), (1, 700, 3000), (300, 301, 302)]:
            x, w, bias = self.array(rows, inputs), self.array(inputs, outputs), self.array(outputs)
            self.near(x @ w + bias, self.context.linear(x, w, bias), 1e-11)
        before = self.context.linear_async(x, w, bias)
        self.near((x @ w + bias) @ w.T, self.context.linear(before, w, op_w="T", timeout=300), 1e-11)
        long = self.array(1500, 1500)
        with self.assertRaises(sg.DeadlineExceeded):
            self.context.linear(self.context.gemm_async(long, long), long, timeout=0)

    def test_gradients(self):
        for shape in [(6,), (200, 6), (2, 3, 6)]:
            x, w, dy = self.array(*shape), self.array(6, 4), self.array(*shape[:-1], 4)
            rows, gradients = x.reshape(-1, 6), dy.reshape(-1, 4)
            dx, dw, dbias = self.context.linear_backward(dy, x, w)
            self.near(dy @ w.T, dx)
            self.near(rows.T @ gradients, dw)
            self.near(gradients.sum(axis=0), dbias)
            dx, dw, dbias = self.context.linear_backward(dy, x, w.T.copy(), op_w="T")
            self.near(dy @ w.T, dx)
            self.near(gradients.T @ rows, dw)

    def test_results_that_are_not_wanted(self):
        x, w, dy = self.array(5, 6), self.array(6, 4), self.array(5, 4)
        dx, dw, dbias = self.context.linear_backward(dy, None, w, dbias=False)
        self.assertEqual((None, None), (dw, dbias))
        self.near(dy @ w.T, dx)
        dx, dw, dbias = self.context.linear_backward(dy, x, dbias=False)
        self.assertEqual((None, None), (dx, dbias))
        self.near(x.T @ dy, dw)
        self.assertEqual((None, None), self.context.linear_backward(dy)[:2])

    def test_accumulation_in_f32(self):
        x, w, dy = (self.array(*s, dtype=np.float16) for s in [(50, 6), (6, 4), (50, 4)])
        dw, dbias = np.ones((6, 4), np.float32), np.ones(4, np.float32)
        for turn in (1, 2):
            results = self.context.linear_backward(dy, x, w, dw=dw, dbias=dbias, accumulate=True)
            self.assertIs(dw, results[1])
            wide = x.astype(np.float64).T @ dy.astype(np.float64)
            self.near(1 + turn * wide, dw, 1e-4)
            self.near(1 + turn * dy.astype(np.float64).sum(axis=0), dbias, 1e-4)

    def test_a_step_of_training_without_waits(self):
        x, w, target = self.array(32, 6), self.array(6, 4), self.array(32, 4)
        y = self.context.linear_async(x, w)
        dy = self.context.gemm_async(np.eye(32), target, y, alpha=-1.0, beta=1.0)  # y - target
        gradients = self.context.linear_backward_async(dy, x, dbias=False)
        dx, dw, dbias = gradients.result()
        self.near(x.T @ (x @ w - target), dw)

    def test_errors_name_the_argument(self):
        x, w, dy = self.array(5, 6), self.array(6, 4), self.array(5, 4)
        cases = [
            (lambda: self.context.linear(x, w[0]), "w has 1 dimensions; it must be a matrix"),
            (lambda: self.context.linear(x, w, np.ones(3)), r"bias has shape \(3,\); it must be \(4,\)"),
            (lambda: self.context.linear(x, w, out=np.ones((5, 3))), r"out has shape \(5, 3\); it must be \(5, 4\)"),
            (lambda: self.context.linear(x, w.T), r"w has shape \(4, 6\); it must be \(6, 6\)"),
            (lambda: self.context.linear_backward(x, None, w), r"w has shape \(6, 4\); it must be \(6, 6\)"),
            (lambda: self.context.linear(x, w, op_w="Q"), "op_w"),
            (lambda: self.context.linear_backward(dy, x, w, dw=np.ones((4, 6))), r"dw has shape \(4, 6\); it must be"),
            (lambda: self.context.linear_backward(dy, x, w, dbias=np.ones(5)), r"dbias has shape \(5,\)"),
            (lambda: self.context.linear_backward(dy, x, w, accumulate=True), "accumulate is True"),
            (lambda: self.context.linear_backward(dy, x[:3]), r"x has shape \(3, 6\); it must be \(5, 6\)"),
        ]
        for call, message in cases:
            with self.subTest(message=message), self.assertRaisesRegex(sg.InvalidArgument, message):
                call()


if __name__ == "__main__":
    unittest.main()
