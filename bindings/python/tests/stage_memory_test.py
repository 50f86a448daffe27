# SPDX-License-Identifier: Apache-2.0
"""Matrices of stages outside of their pipeline: they have no memory, and every use says so. Weights in device memory."""

import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest, integers as floats

NO_MEMORY = "address of a pipeline's stage|matrix of a pipeline's stage|device memory of another context"


def integers(shape, seed=0):
    return floats(shape, np.float64, seed)


class StageMemory(DeviceTest):
    def setUp(self):
        super().setUp()
        self.pipeline = self.context.pipeline((2, 2), "f64")
        self.weights = integers((2, 2))
        self.stage = self.pipeline.stage((2, 2), weights=[self.weights], workspace=64)
        s = self.stage
        self.operands = {
            "input": s.input,
            "output": s.output,
            "workspace": s.workspace((2, 2), "f64"),
            "transpose": s.input.T,
            "part": s.input.part((1, 2)),
            "strided": s.input.part((2, 1), (16, 8)),
        }

    def test_they_are_no_arrays(self):
        for name, m in self.operands.items():
            with self.subTest(name):
                for use in (np.asarray, np.from_dlpack, np.sum, memoryview, lambda m: np.empty((2, 2)) + m):
                    with self.assertRaises((sg.InvalidArgument, BufferError, TypeError)):
                        use(m)
                for attribute in ("__array_interface__", "__cuda_array_interface__"):
                    self.assertFalse(hasattr(m, attribute))
        with self.assertRaisesRegex(sg.InvalidArgument, "only operations that are recorded for the stage"):
            np.asarray(self.stage.input)
        with self.assertRaisesRegex(sg.InvalidArgument, "a placeholder has no memory"):
            np.asarray(sg.Matrix.placeholder((2, 2)))

    def test_submissions_refuse_them(self):
        c, x = self.context, integers((2, 2))
        apart = self.stage.workspace((8,), "f64").part((2, 2), (32, 16))  # as no layout has them
        with sg.Context("cpu") as other, c.graph() as graph:
            for name in ("input", "output", "workspace"):
                m, y = self.operands[name], c.buffer(32).matrix((2, 2), "f64")
                uses = {
                    "gemm": lambda: c.gemm(m, m, y),
                    "copying gemm": lambda: c.gemm(apart, np.ones((2, 2)), y, copy=True),
                    "softmax": lambda: c.softmax(m, y),
                    "copy": lambda: c.copy(np.empty((2, 2)), m),
                    "custom": lambda: c.custom(lambda stream, m, y: None, reads=[m], writes=[y]),
                    "other": lambda: other.gemm(m, m, np.empty((2, 2))),
                    "pin": lambda: c.pin(m),
                    "graph": lambda: (graph.copy(y, m), graph.run()),
                    "push": lambda: self.pipeline.push(m),
                    "weight": lambda: c.pipeline((2, 2), "f64").stage((2, 2), weights=[m]),
                }
                for what, use in uses.items():
                    with self.subTest(f"{name}, {what}"), self.assertRaises(sg.InvalidArgument):
                        use()
            for what in (lambda: c.gemm(m, m, y), lambda: c.softmax(m, y), lambda: c.copy(x, m)):
                with self.assertRaisesRegex(sg.InvalidArgument, NO_MEMORY):
                    what()

    def test_weights_are_memory_where_they_are_used_in_place(self):
        w = self.stage.weights[0]
        if self.context.device.unified_memory:
            np.testing.assert_array_equal(self.weights, w)
            return
        with self.assertRaises(sg.InvalidArgument):
            np.asarray(w)
        with self.assertRaisesRegex(sg.InvalidArgument, NO_MEMORY):
            self.context.copy(np.empty((2, 2)), w)

    def test_the_stage_itself_uses_them(self):
        self.stage.gemm(self.stage.input, self.stage.weights[0], self.stage.output)
        x = integers((2, 2), seed=1)
        np.testing.assert_array_equal(x @ self.weights, self.pipeline.push(x))

    def test_weights_in_device_memory(self):
        w = integers((2, 3))
        on_device = self.context.buffer(w.nbytes).matrix(w.shape, "f64")
        self.context.copy(on_device, w)
        for function in (None, lambda stage, batch: stage.gemm(stage.input, stage.weights[0], stage.output)):
            made = self.context.pipeline((2, 2), "f64")
            stage = made.stage((2, 3), weights=[on_device], function=function)
            if stage is not None:
                stage.gemm(stage.input, stage.weights[0], stage.output)
            x = integers((2, 2), seed=2)
            np.testing.assert_array_equal(x @ w, made.push(x))

    def test_a_matrix_of_host_memory_is_pinned(self):
        x = np.ones((64, 64))
        with self.context.pin(sg.Matrix(x)) as pinned:
            np.testing.assert_array_equal(x @ x, self.context.gemm(pinned, x))


if __name__ == "__main__":
    unittest.main()
