# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a context's device, against NumPy."""

import gc
import os
import time
import unittest

import numpy as np
import streamgemm as sg

DEVICE = os.environ.get("SG_TEST_DEVICE", "cpu")


class DeviceArrays(unittest.TestCase):
    def setUp(self):
        self.context = sg.Context(DEVICE)
        self.random = np.random.default_rng(5)
        self.addCleanup(self.context.close)

    def array(self, *shape, dtype=np.float32):
        return self.random.standard_normal(shape).astype(dtype)

    def test_there_and_back(self):
        for dtype in (np.float64, np.float32, np.float16, np.int8, np.int32, np.complex64):
            for shape in ((), (1,), (5,), (3, 4), (2, 3, 4), (0, 4)):
                x = (self.random.standard_normal(shape) * 9).astype(dtype)
                for given in (x, np.asfortranarray(x), x[..., ::2] if x.ndim else x):
                    found = self.context.array(given)
                    self.assertEqual((given.shape, given.size, given.nbytes), (found.shape, found.size, found.nbytes))
                    np.testing.assert_array_equal(given, found.asnumpy())

    def test_zeros_and_other_types(self):
        for dtype in ("f64", "f16", "bf16", "i8", "c128"):
            zeros = self.context.zeros((3, 5), dtype)
            self.assertEqual(dtype, zeros.dtype)
            if dtype != "bf16":
                self.assertFalse(zeros.asnumpy().any())
        x = self.array(4, 4)
        rounded = self.context.array(x, "f16")
        np.testing.assert_array_equal(x.astype(np.float16), rounded.asnumpy())
        self.assertEqual("bf16", self.context.array(x, "bf16").dtype)
        self.assertEqual(np.float16(1.1), self.context.array(np.float64(1.1), "f16").asnumpy()[()])  # without dimensions
        one = self.context.array(np.full((1, 1), 2.5))
        self.assertEqual((2.5, 2.5), (one.item(), float(one)))
        with self.assertRaisesRegex(sg.InvalidArgument, r"the array has shape \(2, 1\); item\(\) is of one element"):
            self.context.array(np.ones((2, 1))).item()
        self.assertEqual((7,), self.context.empty(7).shape)

    def test_views_are_numpy_s(self):
        x = self.array(5, 6, 7)
        a = self.context.array(x)
        for key in (0, -1, slice(1, 4), slice(None, None, 2), slice(None, None, -1), slice(4, 1), (1, 2), (1, 2, 3), Ellipsis,
                    (Ellipsis, 0), (slice(None), 3), (0, Ellipsis, slice(1, 6, 3)), (slice(1, 3), slice(-2, None))):  # fmt: skip
            with self.subTest(key=key):
                view = a[key]
                self.assertEqual(x[key].shape, view.shape)
                np.testing.assert_array_equal(x[key], view.asnumpy())
                self.assertIs(self.context, view.context)
        np.testing.assert_array_equal(x.T, a.T.asnumpy())
        np.testing.assert_array_equal(x.reshape(30, 7), a.reshape(30, -1).asnumpy())
        np.testing.assert_array_equal(x.reshape(-1), a.reshape((-1,)).asnumpy())
        self.assertEqual([len(x)] + [row.shape for row in x], [len(a)] + [row.shape for row in a])
        a[1:3], x[1:3] = np.ones((2, 6, 7), np.float32), 1
        a[4] = a[0]
        x[4] = x[0]
        np.testing.assert_array_equal(x, a.asnumpy())

    def test_results_are_where_the_operands_are(self):
        x, w, bias = self.array(6, 8), self.array(8, 5), self.array(5)
        a, b = self.context.array(x), self.context.array(w)
        y = self.context.softmax(self.context.elementwise("relu", self.context.linear(a, b, bias)))
        hidden = np.maximum(x @ w + bias, 0)
        wanted = np.exp(hidden) / np.exp(hidden).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(y.asnumpy(), wanted, rtol=1e-5, atol=1e-6)
        for product in (a @ b, a @ w, self.context.gemm(a, b), self.context.gemm_async(a, b).result()):
            self.assertIsInstance(product, sg.DeviceArray)
            np.testing.assert_allclose(product.asnumpy(), x @ w, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(np.asarray(x @ b), x @ w, rtol=1e-5, atol=1e-5)  # of the first operand's library
        np.testing.assert_allclose((a.T @ a).asnumpy(), x.T @ x, rtol=1e-5, atol=1e-4)
        out = np.empty((6, 5), np.float32)
        self.assertIs(out, self.context.matmul(a, b, out))
        dx, dw, dbias = self.context.linear_backward(self.context.array(out), a, b)
        for found, expected in ((dx, out @ w.T), (dw, x.T @ out), (dbias, out.sum(axis=0))):
            np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-4, atol=1e-4)
        q = self.context.array(self.array(2, 3, 4, 8))
        np.testing.assert_allclose(
            self.context.attention(q, q, q).asnumpy(), self.context.attention(*[q.asnumpy()] * 3), rtol=1e-5, atol=1e-6
        )

    # A released array's memory becomes the next one's, in the order of the jobs that use it.
    def test_memory_is_reused_in_order(self):
        x = self.array(64, 64)
        wanted = x.astype(np.float64)
        a = self.context.array(x)
        scale = self.context.array(np.eye(64, dtype=np.float32) * 0.5)
        for _ in range(50):
            a = self.context.matmul_async(a, scale).result(10)
            wanted = wanted / 2
        np.testing.assert_allclose(a.asnumpy(), wanted, rtol=1e-6)
        if not self.context.device.unified_memory:
            address = a.address
            del a
            gc.collect()
            self.context.synchronize()
            held, deadline = [], time.monotonic() + 300
            while address not in {each.address for each in held[-1:]} and time.monotonic() < deadline:
                held.append(self.context.empty((64, 64)))  # until the library's thread has freed the array's memory
                time.sleep(0.001)
            self.assertEqual(address, held[-1].address)

    def test_a_view_keeps_the_memory(self):
        x = self.array(8, 8)
        view = self.context.array(x)[2:5].T
        gc.collect()
        others = [self.context.zeros((8, 8)) for _ in range(4)]
        np.testing.assert_array_equal(x[2:5].T, view.asnumpy())
        self.assertEqual(4, len(others))

    def test_errors_say_what_to_do(self):
        a = self.context.array(self.array(6, 8))
        for call, kind, text in [
            (lambda: a[6], IndexError, "index 0 is 6; the dimension has 6"),
            (lambda: a[0, 0, 0], IndexError, "3 indices are given; the array has 2 dimensions"),
            (lambda: a[[1, 2]], TypeError, r"index 0 is \[1, 2\]; it must be an integer, a slice or an ellipsis"),
            (lambda: a.T.reshape(48), sg.InvalidArgument, r"the array has shape \(8, 6\) and strides \(4, 32\)"),
            (lambda: a.reshape(5, 5), sg.InvalidArgument, r"shape is \(5, 5\); the array has 48 elements"),
            (lambda: self.context.empty((2, -1)), sg.InvalidArgument, r"shape is \(2, -1\)"),
            (lambda: self.context.empty(2, "f31"), sg.InvalidArgument, "dtype is 'f31'"),
            (lambda: len(self.context.zeros(())), TypeError, "no length"),
            (lambda: a.__setitem__(0, np.ones(7, np.float32)), sg.InvalidArgument, r"src has shape \(7,\) .* dst has shape \(8,\)"),
            (lambda: np.asarray(self.context.gemm_async(a, a.T)), sg.InvalidArgument, r"is no array: result\(\) waits"),
        ]:
            with self.subTest(text=text), self.assertRaisesRegex(kind, text):
                call()
        if self.context.device.unified_memory:
            self.assertEqual(a.address, np.asarray(a).ctypes.data)
        else:
            with self.assertRaisesRegex(sg.InvalidArgument, r"asnumpy\(\) copies it there"):
                np.asarray(a)

    def test_a_closed_context(self):
        context = sg.Context(DEVICE)
        a = context.array(self.array(2, 2))
        context.close()
        with self.assertRaises(sg.InvalidHandle):
            context.array(self.array(2, 2))
        del a
        gc.collect()


if __name__ == "__main__":
    unittest.main()
