# SPDX-License-Identifier: Apache-2.0
"""The operations of convert.h and gather.h against NumPy."""

import os
import unittest

import numpy as np
import streamgemm as sg

DEVICE = os.environ.get("SG_TEST_DEVICE", "cpu")
NAMES = {"float64": "f64", "float32": "f32", "float16": "f16", "int8": "i8", "int32": "i32"}


def pack(values):
    """Values from -8 to 7 as i4: two in a byte, the first in the low bits."""
    bits = values.astype(np.uint8) & 15
    return (bits[..., ::2] | bits[..., 1::2] << 4).view(np.int8)


class Convert(unittest.TestCase):
    def setUp(self):
        self.context = sg.Context(DEVICE)
        self.random = np.random.default_rng(3)

    def tearDown(self):
        self.context.close()

    def place(self, array):
        """The array where the device computes."""
        if DEVICE == "cpu":
            return array
        made = self.context.buffer(max(array.nbytes, 1)).matrix(array.shape, NAMES[array.dtype.name])
        self.context.copy(made, np.ascontiguousarray(array))
        return made

    def fetch(self, result, shape, dtype):
        if DEVICE == "cpu":
            return result
        made = np.empty(shape, dtype)
        self.context.copy(made, result)
        return made

    def test_dequantize(self):
        for quantization, (low, high) in {"i8": (-128, 128), "i4": (-8, 8)}.items():
            for scale_type in (np.float32, np.float16):
                for dtype in (np.float32, np.float16):
                    for shape, blocks in [((64,), 2), ((3, 96), 2), ((2, 3, 64), 1), ((300, 128), 4)]:
                        with self.subTest(quantization=quantization, scale_type=scale_type, dtype=dtype, shape=shape):
                            values = self.random.integers(low, high, shape).astype(np.int8)
                            scales = self.random.standard_normal((*shape[:-1], blocks)).astype(scale_type)
                            zeros = self.random.integers(low, high, scales.shape).astype(np.int8)
                            x = self.place(pack(values) if quantization == "i4" else values)
                            out, at_scales, at_zeros = map(self.place, (np.zeros(shape, dtype), scales, zeros))
                            wide, block = values.astype(np.float32), shape[-1] // blocks
                            factors = np.repeat(scales.astype(np.float32), block, axis=-1)
                            result = self.context.dequantize(x, at_scales, out=out, quantization=quantization)
                            self.assertIs(out, result)
                            rtol = 0 if dtype == np.float32 else 1e-3
                            np.testing.assert_allclose(self.fetch(result, shape, dtype), wide * factors, rtol=rtol, atol=1e-7)
                            result = self.context.dequantize(x, at_scales, at_zeros, out, quantization=quantization)
                            wanted = (wide - np.repeat(zeros.astype(np.float32), block, axis=-1)) * factors
                            np.testing.assert_allclose(self.fetch(result, shape, dtype), wanted, rtol=rtol, atol=1e-7)

    def test_convert(self):
        types = (np.float64, np.float32, np.float16)
        for source in types:
            for target in types:
                for shape in [(5,), (3, 70), (2, 3, 8), (300, 200)]:
                    with self.subTest(source=source, target=target, shape=shape):
                        a = self.random.standard_normal(shape).astype(source)
                        placed, out = self.place(a), self.place(np.zeros(shape, target))
                        result = self.context.convert(placed, out)
                        self.assertIs(out, result)
                        np.testing.assert_array_equal(a.astype(target), self.fetch(result, shape, target))
                        if len(shape) == 2:
                            out = self.place(np.zeros(shape[::-1], target))
                            result = self.context.convert(placed, out, op_a="T")
                            np.testing.assert_array_equal(a.T.astype(target), self.fetch(result, shape[::-1], target))

    def test_gather(self):
        for dtype in (np.float64, np.float32, np.float16, np.int8):
            table = (self.random.standard_normal((20, 33)) * 50).astype(dtype)
            chosen = self.random.integers(-20, 20, 70)
            placed, out = self.place(table), self.place(np.zeros((70, 33), dtype))
            for indices in (chosen.astype(np.int32), chosen.astype(np.int64)):
                at, index_type = indices, None
                if DEVICE != "cpu":  # it has no arrays of i64
                    at, index_type = self.place(indices.view(np.int32)), "i64" if indices.itemsize == 8 else None
                result = self.context.gather(placed, at, out, index_type=index_type, from_end=True)
                self.assertIs(out, result)
                np.testing.assert_array_equal(table[chosen], self.fetch(result, (70, 33), dtype))
                result = self.context.gather(placed, at, out, index_type=index_type)
                wanted = np.where(chosen[:, None] < 0, np.zeros((), dtype), table[chosen])
                np.testing.assert_array_equal(wanted, self.fetch(result, (70, 33), dtype))

    def test_results_are_made(self):
        x, scales = np.ones((3, 32), np.int8), np.full((3, 2), 2, np.float16)
        result = self.context.dequantize(x, scales)
        self.assertEqual(((3, 32), np.float16), (result.shape, result.dtype))
        result = self.context.dequantize(x, scales, quantization=sg.Quantization.I4, dtype="f32")
        self.assertEqual(((3, 64), np.float32), (result.shape, result.dtype))
        self.assertEqual([2, 0], result[0, :2].tolist())
        a = np.arange(6, dtype=np.float64).reshape(2, 3)
        result = self.context.convert(a.T, dtype="f16")  # a view in column-major order
        self.assertEqual(((3, 2), np.float16), (result.shape, result.dtype))
        np.testing.assert_array_equal(a.T, result)
        np.testing.assert_array_equal(a.T, self.context.convert(a, op_a="T"))
        result = self.context.gather(a, np.array([1, 7]), nan=True)
        np.testing.assert_array_equal([[3, 4, 5], [np.nan] * 3], result)

    def test_only_products_widen_their_results(self):
        x = np.arange(-8, 8, dtype=np.int8).reshape(4, 4)
        gathered = self.context.gather(x, np.array([2, -1, 0]), from_end=True)
        np.testing.assert_array_equal(x[[2, 3, 0]], gathered)
        windows = self.context.im2col(x.reshape(1, 1, 4, 4), (1, 1))
        for made in (gathered, windows):
            self.assertEqual(np.int8, made.dtype)
        np.testing.assert_array_equal(x.ravel(), windows.ravel())
        self.assertEqual(np.int32, self.context.gemm(x, x).dtype)

    def test_weights_of_a_gemm_in_order(self):
        weights = self.random.integers(-8, 8, (32, 64)).astype(np.int8)
        scales, x = self.random.standard_normal((32, 2)).astype(np.float32), np.eye(32, dtype=np.float32)
        wide = self.context.dequantize_async(pack(weights), scales, quantization="i4")
        found = self.context.gemm_async(x, wide).result()
        np.testing.assert_array_equal(weights * np.repeat(scales, 32, axis=1), found)

    def test_bad_arguments(self):
        x, scales = self.place(np.ones((2, 8), np.int8)), self.place(np.ones((2, 2), np.float32))
        three, out = self.place(np.ones((2, 3), np.float32)), self.place(np.zeros((2, 8), np.float32))
        vector, index = self.place(np.ones(2, np.float32)), self.place(np.zeros(1, np.int32))
        for call, text in [
            (lambda: self.context.dequantize(x, scales, out=out, quantization="i2"), "quantization is 'i2'"),
            (lambda: self.context.dequantize(x, three, out=out), "scales has 3 blocks in a row; the 8 values"),
            (lambda: self.context.dequantize(x, vector, out=out), r"scales has shape \(2,\); it must be \(2, 2\)"),
            (lambda: self.context.dequantize(x, scales, x, out), r"zero_points has shape \(2, 8\); it must be \(2, 2\)"),
            (lambda: self.context.dequantize(x, scales, out=scales), r"out has shape \(2, 2\); it must be \(2, 8\)"),
            (lambda: self.context.dequantize(x, scales, out=out, dtype="f9"), "dtype is 'f9'"),
            (lambda: self.context.convert(out, scales), r"out has shape \(2, 2\); it must be \(2, 8\)"),
            (lambda: self.context.convert(vector, vector, op_a="T"), "a has 1 dimensions; only a matrix is transposed"),
            (lambda: self.context.convert(out, out, op_a="Q"), "op_a is 'Q'"),
            (lambda: self.context.gather(out, vector, out), "indices has elements of f32; they must be i32 or i64"),
            (lambda: self.context.gather(out, index, index_type="i64"), "indices has 1 words of i32; an index of i64 has two"),
            (lambda: self.context.gather(vector, index, out), "table has 1 dimensions; it must be a matrix"),
            (lambda: self.context.gather(scales, index, out), r"out has shape \(2, 8\); it must be \(1, 2\)"),
        ]:
            with self.assertRaisesRegex(sg.InvalidArgument, text):
                call()
        with self.assertRaisesRegex(sg.Unsupported, "x.dtype is f32; it must be i8"):
            self.context.dequantize(out, scales, out=out)


if __name__ == "__main__":
    unittest.main()
