# SPDX-License-Identifier: Apache-2.0
"""Shapes as in numpy.matmul: broadcast batches, strides between items, lists, attention heads."""

import itertools
import unittest

import numpy as np
import streamgemm as sg
from numpy.lib.stride_tricks import as_strided
from support import DeviceTest, integers


class Broadcasting(DeviceTest):
    def equal(self, a, b, **how):
        wanted = np.matmul(a, b)
        found = self.context.matmul(a, b, **how)
        self.assertEqual(found.shape, wanted.shape)
        np.testing.assert_array_equal(found, wanted)
        out = np.full(wanted.shape, 77, wanted.dtype)
        self.assertIs(self.context.matmul(a, b, out, **how), out)
        np.testing.assert_array_equal(out, wanted)
        np.testing.assert_array_equal(self.context.matmul_async(a, b, **how).result(), wanted)

    def test_batch_dimensions(self):
        batches = [(), (1,), (5,), (2, 1), (1, 3), (2, 3), (4, 1, 3), (1, 2, 1), (1, 1, 1, 5), (2, 2, 1, 3)]
        for x, y in itertools.product(batches, batches):
            a, b = integers((*x, 3, 4)), integers((*y, 4, 6), seed=1)
            with self.subTest(a=a.shape, b=b.shape):
                try:
                    np.broadcast_shapes(x, y)
                except ValueError:
                    with self.assertRaisesRegex(sg.InvalidArgument, "cannot be multiplied"):
                        self.context.matmul(a, b)
                else:
                    self.equal(a, b)

    def test_vectors_and_stacks(self):
        for batch in ((), (1,), (5,), (2, 3), (2, 1, 3)):
            stack = integers((*batch, 4, 6))
            with self.subTest(batch=batch):
                self.equal(integers(4, seed=1), stack)
                self.equal(stack, integers(6, seed=1))
                self.equal(integers(12, seed=1)[::3], stack)
        self.equal(integers(4), integers(4, seed=1))

    def test_empty_batches(self):
        for x, y in (((0,), (1,)), ((0,), ()), ((2, 0), (1,)), ((0, 3), (3,)), ((0,), (0,))):
            self.equal(integers((*x, 3, 4)), integers((*y, 4, 6)))
        for x, y in (((0,), (2,)), ((3, 0), (4, 1))):
            with self.assertRaisesRegex(sg.InvalidArgument, "cannot be multiplied"):
                self.context.matmul(integers((*x, 3, 4)), integers((*y, 4, 6)))

    def test_strides_between_items(self):
        a = integers((4, 3, 5, 6))
        b = integers((4, 3, 6, 7), seed=1)
        self.equal(a.transpose(1, 0, 2, 3), b.transpose(1, 0, 2, 3))
        self.equal(a[::2, ::-1], b[1::2])
        self.equal(a[::-1], b)
        self.equal(np.broadcast_to(a[:, :1], a.shape), b)
        self.equal(np.broadcast_to(a[0, 0], (4, 3, 5, 6)), b[2:3])
        self.equal(as_strided(a, (3, 5, 6), (0, 24, 4)), b[0])
        self.equal(as_strided(a.ravel(), (9, 2, 6), (24, 24, 4)), b[0, 0])  # windows that overlap
        self.equal(a.swapaxes(2, 3)[..., :, :4], integers((4, 7), seed=2))

    def test_attention_heads_without_a_copy(self):
        batch, seq, heads, depth = 2, 9, 3, 4
        x, y = (integers((batch, seq, heads * depth), seed=s) for s in (1, 2))
        q, k = (z.reshape(batch, seq, heads, depth).transpose(0, 2, 1, 3) for z in (x, y))
        scores = self.context.matmul(q, k.swapaxes(2, 3))
        np.testing.assert_array_equal(scores, q @ k.swapaxes(2, 3))
        np.testing.assert_array_equal(self.context.matmul(q, k, op_b="T"), scores)
        out = np.zeros((batch, seq, heads, depth), np.float32)
        self.context.matmul(scores, k, out.transpose(0, 2, 1, 3))
        np.testing.assert_array_equal(out.transpose(0, 2, 1, 3), scores @ k)

    def test_results_in_any_place(self):
        a, b = integers((2, 3, 5, 6)), integers((6, 7), seed=1)
        base = np.full((3, 2, 7, 6), 77, np.float32)
        for out in (base[:, :, :, :5].transpose(1, 0, 3, 2), np.full((4, 3, 5, 7), 77, np.float32)[::-2]):
            self.assertIs(self.context.matmul(a, b, out), out)
            np.testing.assert_array_equal(out, a @ b)
        self.assertTrue((base[..., 5] == 77).all())
        wide = np.full((2, 10), 77, np.float32)
        self.context.matmul(a[0, 0, 0], np.stack([b, b]), wide[:, 1:8])  # a vector's results
        np.testing.assert_array_equal(wide[:, 1:8], a[0, 0, 0] @ np.stack([b, b]))
        self.assertTrue((wide[:, 0] == 77).all() and (wide[:, 8:] == 77).all())

    def test_wrong_results(self):
        a, b = integers((2, 3, 5, 6)), integers((6, 7), seed=1)
        for shape in ((5, 7), (3, 5, 7), (3, 2, 5, 7), (2, 3, 7, 5), (1, 2, 3, 5, 7), (6, 5, 7)):
            with self.assertRaisesRegex(sg.InvalidArgument, r"out has shape .*; the result has shape \(2, 3, 5, 7\)"):
                self.context.matmul(a, b, np.zeros(shape, np.float32))
        c = np.zeros((2, 3, 5, 7), np.float32)
        for overlapping in (
            as_strided(c, (2, 3, 5, 7), (0, 140, 28, 4)),
            as_strided(c, (2, 3, 5, 7), (140, 140, 28, 4)),
            as_strided(c, (2, 3, 5, 7), (56, 28, 28, 4)),
        ):
            with self.assertRaisesRegex(sg.InvalidArgument, r"items of (c|out).*overlap"):
                self.context.matmul(a, b, overlapping)

    def test_transposed_operands_with_batches(self):
        a, b = integers((2, 1, 6, 5)), integers((3, 7, 6), seed=1)
        found = self.context.gemm(a, b, op_a="T", op_b="T", alpha=2)
        np.testing.assert_array_equal(found, 2 * (a.swapaxes(-1, -2) @ b.swapaxes(-1, -2)))

    def test_many_dimensions(self):
        a = integers((2,) + (1,) * 28 + (3, 4))
        self.equal(a, integers((3,) + (1,) * 14 + (4, 5), seed=1))


class Lists(DeviceTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = integers((4, 5, 6)), integers((4, 6, 7), seed=1)

    def equal(self, found, wanted):
        self.assertIsInstance(found, list)
        self.assertEqual(len(found), len(wanted))
        for x, y in zip(found, wanted):
            np.testing.assert_array_equal(x, y)

    def test_one_with_many(self):
        self.equal(self.context.gemm([self.a[0]], list(self.b)), self.a[0] @ self.b)
        self.equal(self.context.gemm(list(self.a), [self.b[0]]), self.a @ self.b[0])
        self.equal(self.context.gemm(self.a[0], list(self.b)), self.a[0] @ self.b)

    def test_with_stacks(self):
        self.equal(self.context.gemm([self.a[0]], self.b), self.a[0] @ self.b)
        self.equal(self.context.gemm(list(self.a), self.b), self.a @ self.b)
        self.equal(self.context.gemm(list(self.a), self.b[::-1]), self.a @ self.b[::-1])
        out = np.zeros((4, 5, 7), np.float32)
        self.assertIs(self.context.gemm(list(self.a), self.b, out), out)
        np.testing.assert_array_equal(out, self.a @ self.b)
        stack = np.stack([self.b, self.b + 1])
        np.testing.assert_array_equal(self.context.gemm(list(self.a), stack), self.a @ stack)
        np.testing.assert_array_equal(self.context.gemm([self.a[0]], stack), self.a[0] @ stack)

    def test_empty_batches(self):
        self.assertEqual(self.context.gemm([self.a[0]], self.b[:0]), [])
        self.assertEqual(self.context.gemm([self.a[0]], self.b[:0], []), [])
        with self.assertRaisesRegex(sg.InvalidArgument, "c is a list of 1"):
            self.context.gemm([self.a[0]], self.b[:0], [np.zeros((5, 7), np.float32)])
        with self.assertRaisesRegex(sg.InvalidArgument, "c is an empty list"):
            self.context.gemm([self.a[0]], self.b, [])

    def test_with_vectors(self):
        self.equal(self.context.gemm(self.a[0, 0], list(self.b)), self.a[0, 0] @ self.b)
        self.equal(self.context.gemm(list(self.a), self.b[0, :, 0].copy()), self.a @ self.b[0, :, 0])

    def test_invalid_values_are_refused(self):
        for a, b in (
            ([self.a[0]] * 2, [self.b[0]] * 3),
            ([self.a[0]] * 3, self.b),
            (self.a[:2], [self.b[0]] * 3),
            ([], list(self.b)),
            ([self.a[0, 0]], self.b),
            ([self.a], self.b),
            ([[self.a[0]]], self.b),
        ):
            with self.assertRaises((sg.InvalidArgument, TypeError)):
                self.context.gemm(a, b)
        for c in ([np.zeros((5, 7), np.float32)] * 3, [np.zeros((7, 5), np.float32)] * 4, [np.zeros(7, np.float32)] * 4):
            with self.assertRaisesRegex(sg.InvalidArgument, "c is a list of . arrays of shape"):
                self.context.gemm(list(self.a), list(self.b), c)
        same = np.zeros((5, 7), np.float32)
        with self.assertRaisesRegex(sg.InvalidArgument, "items of c.*overlap"):
            self.context.gemm(list(self.a), list(self.b), [same] * 4)

    def test_a_list_that_changes_while_it_is_read(self):
        listed = list(self.a)

        class Changes:
            def __init__(self, array):
                self.array = array

            @property
            def __array_interface__(self):
                listed.extend(listed * 20)
                return self.array.__array_interface__

        listed[0] = Changes(self.a[0])
        self.equal(self.context.gemm(listed, list(self.b)), self.a @ self.b)


class SameEverywhere(DeviceTest):
    """Groups, graphs and plans derive shapes in the same place."""

    def setUp(self):
        super().setUp()
        self.a, self.b = integers((2, 1, 3, 4)), integers((5, 4, 6), seed=1)
        self.wanted = self.a @ self.b

    def test_groups(self):
        vector = integers(4, seed=2)
        found = self.context.gemm_grouped([(self.a, self.b), (vector, self.b), ([self.a[0, 0]], self.b)])
        np.testing.assert_array_equal(found[0], self.wanted)
        np.testing.assert_array_equal(found[1], vector @ self.b)
        np.testing.assert_array_equal(found[2], self.a[0, 0] @ self.b)

    def test_graphs(self):
        graph = self.context.graph()
        result = graph.gemm(self.a, self.b)
        graph.run()
        np.testing.assert_array_equal(result, self.wanted)
        again = graph.set_gemm(0, self.a + 1, self.b)
        graph.run()
        np.testing.assert_array_equal(again, (self.a + 1) @ self.b)

    def test_plans(self):
        with self.context.plan(self.a, self.b) as plan:
            np.testing.assert_array_equal(plan.run(self.a, self.b), self.wanted)
            with self.assertRaises(sg.InvalidArgument):
                plan.run(self.a[0], self.b)


if __name__ == "__main__":
    unittest.main()
