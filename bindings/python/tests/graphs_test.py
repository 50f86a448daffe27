# SPDX-License-Identifier: Apache-2.0
"""Graphs: recorded once, run many times, with other operands; operands are kept."""

import gc
import unittest
import weakref

import numpy as np
import streamgemm as sg
from support import DeviceTest, eventually, integers


class Graphs(DeviceTest):
    def test_a_chain(self):
        a, b, d = integers((9, 7)), integers((7, 8), seed=1), integers((8, 5), seed=2)
        with self.context.graph() as graph:
            c = graph.gemm(a, b)
            e = graph.gemm(c, d, alpha=2.0)
            back = graph.copy(np.empty_like(e), e)
            self.assertEqual(len(graph), 3)
            for seed in range(3):
                a[...] = integers((9, 7), seed=seed)
                results = graph.run_async().result(300)
                self.assertTrue(all(x is y for x, y in zip(results, (c, e, back))))
                np.testing.assert_array_equal(back, 2 * (a @ b @ d))
        with self.assertRaisesRegex(sg.InvalidHandle, "this Graph is closed"):
            graph.run()

    def test_other_operands(self):
        a, b = integers((6, 4)), integers((4, 5), seed=1)
        graph = self.context.graph()
        c = graph.gemm(a, b)
        copied = graph.copy(np.empty_like(c), c)
        graph.run()
        other = integers((6, 4), seed=5)
        new = graph.set_gemm(0, other, b, alpha=3.0)
        graph.set_copy(1, copied, new)
        graph.run()
        np.testing.assert_array_equal(copied, 3 * (other @ b))
        np.testing.assert_array_equal(c, a @ b)  # as the first run left it
        for wrong in (
            lambda: graph.set_gemm(0, integers((5, 4)), b),
            lambda: graph.set_gemm(1, a, b),
            lambda: graph.set_gemm(7, a, b),
            lambda: graph.set_copy(0, c, new),
            lambda: graph.set_copy(1, np.empty((2, 2), np.float32), c[:2, :2]),
            lambda: graph.gemm(a, a),
            lambda: graph.gemm(np.ones((0, 2, 2)), np.ones((0, 2, 2))),
        ):
            self.assertRaises(sg.InvalidArgument, wrong)
        graph.run()
        np.testing.assert_array_equal(copied, 3 * (other @ b))

    def test_update(self):
        a, b = integers((6, 4)), integers((4, 5), seed=1)
        graph = self.context.graph()
        c = graph.gemm(a, b)
        copied = graph.copy(np.empty_like(c), c)
        graph.run()
        other, target = integers((6, 4), seed=5), np.empty_like(c)
        new = graph.update(0, other, b, alpha=3.0)
        self.assertIs(graph.update(1, target, new), target)
        graph.run()
        np.testing.assert_array_equal(target, 3 * (other @ b))
        np.testing.assert_array_equal(copied, a @ b)  # as the first run left it
        for wrong in (
            lambda: graph.update(0, integers((5, 4)), b),
            lambda: graph.update(1, np.empty((2, 2), np.float32), c[:2, :2]),
            lambda: graph.update(2, a, b),
            lambda: graph.update(-1, a, b),
        ):
            self.assertRaises(sg.InvalidArgument, wrong)
        self.assertRaises(TypeError, lambda: graph.update(1, target, new, alpha=2.0))
        graph.run()
        np.testing.assert_array_equal(target, 3 * (other @ b))

    def test_operands_are_kept(self):
        class Watched(np.ndarray):
            pass

        a, b = (np.ones((300, 300)).view(Watched) for _ in range(2))
        gone = weakref.ref(a)
        graph = self.context.graph()
        graph.gemm(a, b)
        del a
        gc.collect()
        stream = self.context.stream()
        gate = self.gate()
        self.held_job(gate, stream=stream)
        job = graph.run_async(stream=stream)
        graph.set_gemm(0, b, np.ones((300, 300)))  # the run in flight still needs the old operands
        graph.close()
        del graph
        gc.collect()
        self.assertIsNotNone(gone())
        gate.open()
        self.assertEqual(job.result()[0][0, 0], 300)
        del job
        self.assertTrue(eventually(lambda: gone() is None))

    def test_many_small_gemms(self):
        values = [(integers((4, 4), seed=s), integers((4, 4), seed=s + 1)) for s in range(200)]
        graph = self.context.graph()
        for a, b in values:
            graph.gemm(a, b)
        for _ in range(20):
            for c, (a, b) in zip(graph.run(), values):
                np.testing.assert_array_equal(c, a @ b)


if __name__ == "__main__":
    unittest.main()
