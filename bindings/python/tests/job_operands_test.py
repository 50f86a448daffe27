# SPDX-License-Identifier: Apache-2.0
"""A Job as an operand: its result's array, after its completion."""

import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest, integers


class JobOperands(DeviceTest):
    def test_a_job_is_an_operand(self):
        a, b, c = (integers((6, 6), np.float64, seed) for seed in range(3))
        for untracked in (False, True):
            gate = self.gate(a)
            first = self.context.gemm_async(gate.matrix, b, untracked=untracked)
            second = self.context.gemm_async(first, c, untracked=untracked)
            third = self.context.gemm_async(c, [first, second, first], bias=self.context.gemm_async(np.ones(6), b), untracked=untracked)
            into = self.context.gemm_async(c, c, second, beta=1, untracked=untracked)
            copied = self.context.copy_async(np.empty((6, 6)), into, untracked=untracked)
            grouped = self.context.gemm_grouped_async([(first, c), (c, first)], untracked=untracked)
            self.assertFalse(first.done() or second.done())
            gate.open()
            np.testing.assert_array_equal(copied.result(), (a @ b) @ c + c @ c)
            self.assertIs(into.result(), second.result())
            np.testing.assert_array_equal(third.result()[0], c @ (a @ b) + np.ones(6) @ b)
            np.testing.assert_array_equal(grouped.result()[1], c @ (a @ b))
            np.testing.assert_array_equal(self.context.matmul(third, c)[2], (c @ (a @ b) + np.ones(6) @ b) @ c)
            np.testing.assert_array_equal(self.context.matmul(self.context.gemm_async(a, b), c), (a @ b) @ c)

    def test_a_job_of_another_context(self):
        with sg.Context("cpu") as other:
            a = integers((300, 300), np.float64)
            np.testing.assert_array_equal(self.context.gemm(other.gemm_async(a, a), a), a @ a @ a)

    def test_a_job_that_is_no_operand(self):
        gate, one = self.gate(), np.ones((1, 1))
        held = self.held_job(gate)
        graph = self.context.graph()
        with self.assertRaisesRegex(sg.InvalidArgument, "a is a Job that has not completed.*graph"):
            graph.gemm(held, one)
        with self.assertRaisesRegex(sg.InvalidArgument, "b is a Job that has not completed.*copy=True"):
            self.context.gemm_async(one, held, copy=True)
        with self.assertRaisesRegex(sg.InvalidArgument, "bias is a Job that has not completed"):
            self.context.gemm_async(np.ones((4, 1)), np.ones((1, 4)), bias=held)
        stream = self.context.stream()
        self.held_job(gate, stream=stream)
        cancelled = self.context.gemm_async(np.ones((3, 10)), np.ones((10, 10)), stream=stream)
        cancelled.cancel()
        after = self.context.gemm_async(cancelled, np.ones((10, 3)))
        gate.open()
        self.assertIsInstance(after.exception(), sg.DependencyFailed)
        cancelled.wait()
        with self.assertRaisesRegex(sg.DependencyFailed, "a is a Job that failed"):
            self.context.gemm_async(cancelled, np.ones((10, 3)))
        held.wait()
        result = graph.gemm(held, one)
        graph.run()
        self.assertEqual(result[0, 0], 1)


if __name__ == "__main__":
    unittest.main()
