# SPDX-License-Identifier: Apache-2.0
"""Bias and activation, with NumPy's rules of broadcasting."""

import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest, integers


def relu(x):
    return np.maximum(x, 0)


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


class Epilogues(DeviceTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = integers((7, 9)), integers((9, 5), seed=1)
        self.row, self.column = integers(5, seed=2), integers((7, 1), seed=3)
        self.c = self.a @ self.b

    def refused(self, text, **how):
        with self.assertRaisesRegex(sg.InvalidArgument, text):
            self.context.gemm(self.a, self.b, **how)

    def test_shapes_of_a_bias(self):
        for bias in (self.row, self.row[None, :], self.column, self.column.copy("F")):
            with self.subTest(shape=bias.shape):
                np.testing.assert_array_equal(self.context.matmul(self.a, self.b, bias=bias), self.c + bias)
                out = np.empty((7, 5), np.float32, order="F")
                np.testing.assert_array_equal(self.context.matmul(self.a, self.b, out, bias=bias), self.c + bias)

    def test_activations(self):
        wanted = relu(self.c + self.row)
        for relu_by_name in ("relu", "RELU", sg.Activation.RELU):
            found = self.context.gemm(self.a, self.b, bias=self.row, activation=relu_by_name)
            np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(self.context.gemm(self.a, self.b, activation="none"), self.c)
        found = self.context.gemm(self.a / 8, self.b / 8, bias=self.row / 8, activation="gelu")
        np.testing.assert_allclose(found, gelu(self.c / 64 + self.row / 8), atol=1e-6)

    def test_types(self):
        for dtype in (np.float16, np.float64, np.complex64, np.complex128):
            bias = self.row.astype(dtype)
            found = self.context.matmul(self.a.astype(dtype), self.b.astype(dtype), bias=bias)
            np.testing.assert_array_equal(found, (self.c + self.row).astype(dtype))
        bias = self.row.astype(np.int32)
        found = self.context.matmul(self.a.astype(np.int8), self.b.astype(np.int8), bias=bias, activation="relu")
        np.testing.assert_array_equal(found, relu(self.c + self.row).astype(np.int32))
        with self.assertRaisesRegex(sg.Unsupported, "gelu"):
            self.context.matmul(self.a.astype(np.int8), self.b.astype(np.int8), activation="gelu")

    def test_beta_and_async(self):
        before = integers((7, 5), seed=4)
        out = before.copy()
        job = self.context.gemm_async(self.a, self.b, out, alpha=2, beta=3, bias=self.row, activation="relu")
        np.testing.assert_array_equal(job.result(), relu(2 * self.c + 3 * before + self.row))

    def test_stacks(self):
        a, b = integers((3, 7, 9)), integers((3, 9, 5), seed=1)
        shared = self.context.matmul(a, b, bias=self.row)
        np.testing.assert_array_equal(shared, a @ b + self.row)
        for bias in (integers((3, 1, 5), seed=2), integers((3, 7, 1), seed=2)):
            np.testing.assert_array_equal(self.context.matmul(a, b, bias=bias), a @ b + bias)
        results = self.context.matmul(list(a), list(b), bias=integers((3, 1, 5), seed=2))
        for result, wanted in zip(results, a @ b + integers((3, 1, 5), seed=2)):
            np.testing.assert_array_equal(result, wanted)

    def test_results_that_are_vectors(self):
        np.testing.assert_array_equal(self.context.matmul(self.a, self.b[:, 0], bias=self.column[:, 0]), self.c[:, 0] + self.column[:, 0])
        np.testing.assert_array_equal(self.context.matmul(self.a[0], self.b, bias=self.row), self.c[0] + self.row)

    def test_groups(self):
        results = self.context.gemm_grouped(
            [{"a": self.a, "b": self.b, "bias": self.row, "activation": "relu"}, (self.a, self.b)]
        )
        np.testing.assert_array_equal(results[0], relu(self.c + self.row))
        np.testing.assert_array_equal(results[1], self.c)

    def test_plans(self):
        plan = self.context.plan(self.a, self.b, bias=self.row, activation="relu")
        np.testing.assert_array_equal(plan.run(self.a, self.b, bias=self.row + 1), relu(self.c + self.row + 1))
        with self.assertRaisesRegex(sg.InvalidArgument, "bias"):
            plan.run(self.a, self.b)

    def test_graphs(self):
        graph = self.context.graph()
        bias = self.row.copy()
        result = graph.gemm(self.a, self.b, bias=bias, activation="relu")
        graph.run()
        np.testing.assert_array_equal(result, relu(self.c + self.row))
        bias += 2
        graph.run()
        np.testing.assert_array_equal(result, relu(self.c + self.row + 2))
        graph.set_gemm(0, self.a, self.b, result, bias=self.row - 1)
        graph.run()
        np.testing.assert_array_equal(result, relu(self.c + self.row - 1))

    def test_a_bias_stays_until_the_job_has_completed(self):
        jobs = [self.context.gemm_async(self.a, self.b, bias=np.full(5, i, np.float32)) for i in range(50)]
        for i, job in enumerate(jobs):
            np.testing.assert_array_equal(job.result(), self.c + i)

    def test_invalid_values_are_refused(self):
        self.refused(r"bias has shape \(4,\).*\(7, 5\)", bias=self.row[:4])
        self.refused(r"bias has shape \(7,\)", bias=self.column[:, 0])
        self.refused(r"bias has shape \(7, 5\)", bias=self.c)
        self.refused(r"bias is f64 and the result is f32", bias=self.row.astype(np.float64))
        self.refused(r"bias.*follow each other", bias=np.zeros(10, np.float32)[::2])
        self.refused(r"activation is 'tanh'.*relu", activation="tanh")
        self.refused(r"overlap.*bias", c=self.c, bias=self.c[0])
        self.refused(r"bias is complex and the result is f32", bias=1j)
        self.assertRaises(TypeError, lambda: self.context.gemm(self.a, self.b, bias="3"))

    def test_one_value_for_all(self):
        for bias in (3, 3.0, np.float32(3), np.float64(3), np.int64(3), np.array(3.0), np.full(1, 3, np.float32), np.full((1, 1), 3, np.float32)):
            np.testing.assert_array_equal(self.context.gemm(self.a, self.b, bias=bias), self.c + 3)
            np.testing.assert_array_equal(self.context.gemm(self.a, self.b[:, 0], bias=bias if np.ndim(bias) < 2 else 3), self.c[:, 0] + 3)
            np.testing.assert_array_equal(self.context.gemm(self.a[0], self.b, bias=bias if np.ndim(bias) < 2 else 3), self.c[0] + 3)
        stacks = self.context.gemm(np.stack([self.a] * 3), self.b, bias=np.arange(3, dtype=np.float32).reshape(3, 1, 1))
        np.testing.assert_array_equal(stacks, self.c + np.arange(3).reshape(3, 1, 1))
        for dtype in (np.float16, np.float64, np.complex64, np.complex128):
            found = self.context.matmul(self.a.astype(dtype), self.b.astype(dtype), bias=2)
            np.testing.assert_array_equal(found, (self.c + 2).astype(dtype))
        found = self.context.matmul(self.a.astype(np.int8), self.b.astype(np.int8), bias=2)
        np.testing.assert_array_equal(found, self.c + 2)

    def test_a_number_is_rounded_to_f16(self):
        zero = np.zeros((1, 1), np.float16)
        halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)  # each that is not negative
        between = (halves[:-1] + halves[1:]) / 2  # ties
        numbers = np.concatenate([halves[::97], between[:3], between[1020:1030], between[::89], np.nextafter(between[::89], 0), np.nextafter(between[::89], 1e9)])
        with np.errstate(over="ignore"):
            for number in (*numbers, *-numbers[::7], 65519.9, np.inf, -np.inf, np.nan):
                found, wanted = self.context.matmul(zero, zero, bias=float(number)), np.float16(number)
                np.testing.assert_array_equal(found, wanted, err_msg=str(number))
        for number in (65520.0, -1e300):
            with self.assertRaisesRegex(sg.InvalidArgument, "bias is too large a number for a result of f16"):
                self.context.matmul(zero, zero, bias=number)

    def test_numbers_of_other_kinds(self):
        class Complex:
            def __complex__(self):
                return 2 + 1j

        a = self.a.astype(np.complex128)
        for number in (2 + 1j, np.complex64(2 + 1j), Complex()):
            np.testing.assert_array_equal(self.context.gemm(a, self.b.astype(np.complex128), alpha=number), self.c * (2 + 1j))
        for text in ("3", b"3", "1j"):
            with self.assertRaisesRegex(TypeError, "alpha is .*, which is no number"):
                self.context.gemm(self.a, self.b, alpha=text)

    def test_broadcast_as_numpy_does(self):
        a, b = integers((2, 3, 7, 9)), integers((3, 9, 5), seed=1)
        for shape in ((5,), (7, 1), (3, 1, 5), (3, 7, 1), (2, 1, 1, 5), (2, 3, 1, 5), (2, 1, 7, 1), (1, 3, 1, 5), (2, 3, 1, 1)):
            bias = integers(shape, seed=3)
            with self.subTest(shape=shape):
                try:
                    found = self.context.matmul(a, b, bias=bias)
                except sg.InvalidArgument as refused:  # no single stride reaches its items
                    self.assertIn(shape[:2], ((2, 1), (1, 3), (3, 1), (3, 7)))
                    self.assertRegex(str(refused), "not evenly spaced.*copy=True")
                    found = self.context.matmul(a, b, bias=bias, copy=True)
                np.testing.assert_array_equal(found, a @ b + bias)


if __name__ == "__main__":
    unittest.main()
