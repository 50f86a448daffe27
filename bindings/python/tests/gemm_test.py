# SPDX-License-Identifier: Apache-2.0
"""GEMMs of every kind of array against NumPy, exactly."""

import array
import itertools
import sys
import unittest
import unittest.mock

import numpy as np
import streamgemm as sg
from support import DeviceTest, integers


class Gemms(DeviceTest):
    def test_types(self):
        for dtype in (np.float16, np.float32, np.float64, np.complex64, np.complex128):
            a, b = integers((17, 9), dtype), integers((9, 5), dtype, 1)
            with self.subTest(dtype=dtype):
                c = self.context.matmul(a, b)
                self.assertEqual(c.dtype, dtype)
                np.testing.assert_array_equal(c, a @ b)

    def test_result_of_bytes_is_i32(self):
        a, b = integers((17, 300), np.int8), integers((300, 5), np.int8, 1)
        c = self.context.matmul(a, b)
        self.assertEqual(c.dtype, np.int32)
        np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))

    def test_half_into_single(self):
        a, b = integers((6, 7), np.float16), integers((7, 8), np.float16, 1)
        c = np.empty((6, 8), np.float32)
        np.testing.assert_array_equal(self.context.gemm(a, b, c), a.astype(np.float32) @ b.astype(np.float32))

    def test_bf16_by_name(self):
        a, b = integers((6, 7)), integers((7, 8), seed=1)
        halves = [sg.Matrix((x.view(np.uint32) >> 16).astype(np.uint16), "bf16") for x in (a, b)]
        c = np.empty((6, 8), np.float32)
        np.testing.assert_array_equal(self.context.gemm(*halves, c), a @ b)

    def test_result_types_without_a_numpy_type(self):
        a, b = integers((6, 7)), integers((7, 8), seed=1)
        halves = [sg.Matrix((x.view(np.uint32) >> 16).astype(np.uint16), "bf16") for x in (a, b)]
        with unittest.mock.patch.dict(sys.modules, {"ml_dtypes": None}):
            c = self.context.matmul(*halves)
            self.assertEqual((type(c), c.dtype, c.shape), (sg.Matrix, "bf16", (6, 8)))
            pinned = self.context.pinned_empty((6, 8), "bf16")
            self.context.matmul(*halves, pinned)
            listed = self.context.matmul([halves[0]], [halves[1]])
        for found in (c, pinned, *listed):
            bits = np.asarray(found).view(np.uint16)
            np.testing.assert_array_equal((bits.astype(np.uint32) << 16).view(np.float32), a @ b)
        single = self.context.matmul(c, sg.Matrix(np.full((8, 1), 0x3F80, np.uint16), "bf16"), np.empty((6, 1), np.float32))
        np.testing.assert_array_equal(single, (a @ b).sum(1, keepdims=True))  # a result is an operand

    def test_f8_by_name(self):
        a, b = integers((6, 7)) % 5, integers((7, 8), seed=1) % 5
        codes = {"f8_e4m3": (0, 0x38, 0x40, 0x44, 0x48), "f8_e5m2": (0, 0x3C, 0x40, 0x42, 0x44)}  # of 0 to 4
        for dtype, code in codes.items():
            x, y = (sg.Matrix(np.array(code, np.uint8)[m.astype(int)], dtype) for m in (a, b))
            self.assertEqual(x.dtype, dtype)
            c = self.context.matmul(x, y)
            self.assertEqual(c.dtype, np.float32)
            np.testing.assert_array_equal(c, a @ b)
            for out in (np.float32, np.float16):
                c = np.empty((6, 8), out)
                np.testing.assert_array_equal(self.context.gemm(x, y, c, compute="f8"), a @ b)

    def test_arrays_of_f8(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("needs ml_dtypes")
        a, b = integers((6, 7)) % 5, integers((7, 8), seed=1) % 5
        for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            np.testing.assert_array_equal(self.context.matmul(a.astype(kind), b.astype(kind)), a @ b)

    def test_strides_of_a_gemm(self):
        def forms(rows, cols, seed):
            whole = integers((2 * rows + 3, 2 * cols + 5), np.float64, seed)
            yield "C", np.ascontiguousarray(whole[:rows, :cols])
            yield "F", np.asfortranarray(whole[:rows, :cols])
            yield "rows of a wider array", whole[1 : 1 + rows, 2 : 2 + cols]
            yield "every second row", whole[: 2 * rows : 2, :cols]
            yield "transposed view", integers((2 * cols, rows + 1), np.float64, seed)[:cols, :rows].T

        for (name_a, a), (name_b, b), (name_c, c) in itertools.product(forms(7, 5, 1), forms(5, 6, 2), forms(7, 6, 3)):
            with self.subTest(a=name_a, b=name_b, c=name_c):
                c[...] = integers(c.shape, np.float64, 4)
                wanted = 2 * (a @ b) + 3 * c
                self.assertIs(self.context.gemm(a, b, c, alpha=2, beta=3), c)
                np.testing.assert_array_equal(c, wanted)

    def test_gaps_are_untouched(self):
        base = np.full((9, 11), 77.0)
        c = base[1:6, 2:9]
        a, b = integers((5, 4), np.float64), integers((4, 7), np.float64, 1)
        self.context.gemm(a, b, c)
        np.testing.assert_array_equal(c, a @ b)
        c[...] = 77.0
        self.assertTrue((base == 77.0).all())

    def test_ops(self):
        a, b = integers((5, 7), np.complex64) + 1j * integers((5, 7), np.complex64, 1), integers(
            (3, 5), np.complex64, 2
        )
        np.testing.assert_array_equal(self.context.gemm(a, b, op_a="T", op_b="T"), a.T @ b.T)
        np.testing.assert_array_equal(self.context.gemm(a, b.T, op_a="C"), a.conj().T @ b.T)
        np.testing.assert_array_equal(self.context.gemm(a, b.T, op_a=sg.Transpose.C), a.conj().T @ b.T)

    def test_complex_scalars(self):
        a, b, c = (integers((4, 4), np.complex128, s) for s in range(3))
        wanted = (1 + 2j) * (a @ b) + 2j * c
        np.testing.assert_array_equal(self.context.gemm(a, b, c, alpha=1 + 2j, beta=2j), wanted)

    def test_stacks_and_broadcasting(self):
        a, b = integers((2, 3, 5, 4)), integers((2, 3, 4, 6), seed=1)
        np.testing.assert_array_equal(self.context.matmul(a, b), a @ b)
        np.testing.assert_array_equal(self.context.matmul(a, b[0, 0]), a @ b[0, 0])
        np.testing.assert_array_equal(self.context.matmul(a[0, 0], b), a[0, 0] @ b)
        np.testing.assert_array_equal(self.context.matmul(a[:, 1:2], b[:, :1]), a[:, 1:2] @ b[:, :1])
        shared = np.broadcast_to(b[0, 0], (2, 3, 4, 6))
        np.testing.assert_array_equal(self.context.matmul(a, shared), a @ shared)

    def test_vectors(self):
        a, b = integers((5, 4)), integers((4, 6), seed=1)
        np.testing.assert_array_equal(self.context.matmul(a, b[:, 2]), a @ b[:, 2])
        np.testing.assert_array_equal(self.context.matmul(a[2], b), a[2] @ b)
        self.assertEqual(self.context.matmul(a[2], b[:, 2])[()], a[2] @ b[:, 2])

    def test_empty(self):
        self.assertEqual(self.context.matmul(np.ones((0, 4)), np.ones((4, 3))).shape, (0, 3))
        np.testing.assert_array_equal(self.context.matmul(np.ones((2, 0)), np.ones((0, 3))), np.zeros((2, 3)))
        self.assertEqual(self.context.matmul(np.ones((0, 2, 2)), np.ones((0, 2, 2))).shape, (0, 2, 2))
        self.assertTrue(self.context.gemm_async(np.ones((0, 2, 2)), np.ones((0, 2, 2))).done())

    def test_lists_are_batches_of_addresses(self):
        a, b = [integers((5, 4), seed=s) for s in range(3)], [integers((4, 6), seed=9 + s) for s in range(3)]
        for got, x, y in zip(self.context.gemm(a, b), a, b):
            np.testing.assert_array_equal(got, x @ y)

    def test_groups(self):
        shapes = [(5, 4, 3), (2, 9, 8), (1, 1, 1)]
        products = [
            {"a": integers((m, k), np.float64), "b": integers((n, k), np.float64, 1), "op_b": "T", "alpha": 2.0}
            for m, n, k in shapes
        ]
        for got, p in zip(self.context.gemm_grouped(products), products):
            np.testing.assert_array_equal(got, 2 * (p["a"] @ p["b"].T))

    def test_other_buffers(self):
        a = memoryview(array.array("d", range(6))).cast("B").cast("d", (2, 3))
        b = memoryview(bytearray(np.arange(12.0).tobytes())).cast("d", (3, 4))
        np.testing.assert_array_equal(self.context.matmul(a, b), np.asarray(a) @ np.asarray(b))

    def test_large_enough_for_every_core(self):
        a, b = integers((700, 650)), integers((650, 800), seed=1)
        np.testing.assert_array_equal(self.context.matmul(a, b), a @ b)
        self.assertTrue((self.context.matmul_async(a, b).result() == a @ b).all())


class DefaultContext(unittest.TestCase):
    def test_functions(self):
        a, b = integers((5, 4)), integers((4, 6), seed=1)
        np.testing.assert_array_equal(sg.matmul(a, b), a @ b)
        out = np.empty((5, 6), np.float32)
        self.assertIs(sg.matmul_async(a, b, out).result(), out)
        np.testing.assert_array_equal(out, a @ b)

    def test_a_closed_default_context_is_replaced(self):
        first = sg.default_context()
        first.close()
        self.assertIsNot(sg.default_context(), first)
        np.testing.assert_array_equal(sg.matmul(np.eye(3), np.eye(3)), np.eye(3))


if __name__ == "__main__":
    unittest.main()
