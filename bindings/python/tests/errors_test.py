# SPDX-License-Identifier: Apache-2.0
"""Wrong calls: the exception, and the argument's name in its text."""

import unittest

import numpy as np
import streamgemm as sg
from streamgemm import _raw
from support import DEVICE, DeviceTest, integers


class WrongArguments(DeviceTest):
    def refused(self, pattern, call, kind=sg.InvalidArgument):
        with self.assertRaisesRegex(kind, pattern):
            call()

    def test_shapes(self):
        a = np.ones((5, 4))
        self.refused(
            r"a of shape \(5, 4\) and b of shape \(5, 4\) cannot be multiplied", lambda: self.context.gemm(a, a)
        )
        self.refused(r"transposed", lambda: self.context.gemm(a, a, op_a="T", op_b="T"))
        self.refused(
            r"c has shape \(5, 4\); the result has shape \(5, 5\)", lambda: self.context.gemm(a, a, a.copy(), op_b="T")
        )
        self.refused(r"cannot be multiplied", lambda: self.context.gemm(np.ones((2, 3, 3)), np.ones((3, 3, 3))))
        self.refused(r"cannot be multiplied", lambda: self.context.gemm(np.ones((2, 3, 3, 3)), np.ones((3, 2, 3, 3))))
        self.refused(r"b\[1\] is not like b\[0\]", lambda: self.context.gemm([a, a], [a.T.copy(), a]))
        self.refused(r"a is an empty list", lambda: self.context.gemm([], []))
        self.refused(r"products has 0 items; it must have from 1", lambda: self.context.gemm_grouped([]))

    def test_types(self):
        a = np.ones((4, 4))
        self.refused(r"a \(a ndarray of int64\) is no operand", lambda: self.context.gemm(a.astype(int), a))
        self.refused(r"a.dtype is f64 and b.dtype is f32", lambda: self.context.gemm(a, a.astype(np.float32)))
        self.refused(r"c.dtype is f32, which is no result type", lambda: self.context.gemm(a, a, a.astype(np.float32)))
        self.refused(r"b is a str, which is no array", lambda: self.context.gemm(a, "b"), TypeError)
        self.refused(r"a is a NoneType", lambda: self.context.gemm(None, a), TypeError)
        self.refused(r"c \(a bytes\) has elements of format 'B'", lambda: self.context.gemm(a, a, bytes(8)))
        self.refused(r"b \(a ndarray of >f8\) is no operand", lambda: self.context.gemm(a, a.astype(">f8")))
        self.refused(r"alpha is 'x', which is no number", lambda: self.context.gemm(a, a, alpha="x"), TypeError)

    def test_memory(self):
        a, c = np.ones((4, 4)), np.zeros((4, 4))
        c.flags.writeable = False
        self.refused(r"c is read-only", lambda: self.context.gemm(a, a, c))
        self.refused(r"c is read-only", lambda: self.context.gemm(a, a, sg.Matrix(c)))
        self.refused(r"c overlaps [ab] in memory", lambda: self.context.gemm(a, a.copy(), a))
        self.refused(r"c overlaps [ab] in memory", lambda: self.context.gemm_async(a.copy(), a, a[::-1][::-1]))
        self.refused(
            r"the items of c overlap in memory: its dimension 0 has stride 0",
            lambda: self.context.gemm(
                np.ones((2, 4, 4)), a, np.lib.stride_tricks.as_strided(c.copy(), (2, 4, 4), (0, 32, 8))
            ),
        )
        for wrong in (a[:, ::2], a[::-1], np.broadcast_to(a[0], (4, 4)), np.ones((4, 4, 2))[:, :, 0]):
            self.refused(
                r"b has shape .* and strides .* contiguous", lambda w=wrong: self.context.gemm(np.ones((1, 4)), w)
            )
        self.refused(r"beta is not 0, so c is read", lambda: self.context.gemm(a, a, beta=1))

    def test_options(self):
        a = np.ones((4, 4))
        self.refused(r"op_a is 'X'", lambda: self.context.gemm(a, a, op_a="X"))
        self.refused(r"compute is 'fast'.*exact", lambda: self.context.gemm(a, a, compute="fast"))
        self.refused(r"compute", lambda: self.context.gemm(a, a, compute=99))
        self.refused(r"priority", lambda: self.context.gemm(a, a, priority=7))
        self.refused(r"after\[0\] is 3", lambda: self.context.gemm(a, a, after=[3]), TypeError)
        self.refused(r"split is 'q'", lambda: sg.PlanOptions(split="q"))
        self.refused(r"nonsense is none of the options", lambda: sg.PlanOptions(nonsense=1), TypeError)
        self.refused(r"nonsense is none of the options", lambda: sg.Context("cpu", nonsense=1), TypeError)
        self.refused(r"no-such", lambda: sg.Context("no-such"), sg.NoDevice)
        self.refused(r"priority", lambda: self.context.stream(priority=5))
        with sg.Context("cpu") as other, other.stream() as stream:
            self.refused(r"stream of another context", lambda: self.context.gemm(a, a, stream=stream))
        if not DEVICE.startswith("cuda"):
            self.refused(r"native streams", lambda: self.context.wrap_stream(1), sg.Unsupported)
            self.refused(r"native events", lambda: self.context.wrap_event(1), sg.Unsupported)
            self.refused(r"native events", lambda: self.context.event().native, sg.Unsupported)

    def test_refused_submissions_leave_nothing_behind(self):
        a = np.ones((4, 4))
        import gc
        import sys

        gc.collect()
        before = sys.getrefcount(a)
        for _ in range(50):
            self.refused("", lambda: self.context.gemm_async(a, a, a))
            self.refused("", lambda: self.context.gemm_async(a, integers((5, 5), np.float64)))
            self.refused("", lambda: self.context.gemm_async(a, a, priority=9))
            self.refused("", lambda: self.context.gemm_grouped_async([(a, a), (a, a, a)]))
            self.refused("", lambda: self.context.copy_async(a, a[:2]))
        gc.collect()
        self.assertEqual(sys.getrefcount(a), before)


class Exceptions(unittest.TestCase):
    def test_every_failing_status_has_a_class(self):
        for name, value in vars(_raw).items():
            if name.startswith("SG_STATUS_") and value < 0:
                error = sg.error_of(value, "text")
                self.assertIsNot(type(error), sg.Error, name)
                self.assertEqual((error.status, error.status_name, str(error)), (value, name, "text"))

    def test_natural_bases(self):
        for error, base in (
            (sg.InvalidArgument, ValueError),
            (sg.OutOfMemory, MemoryError),
            (sg.Unsupported, NotImplementedError),
            (sg.NoDevice, LookupError),
        ):
            self.assertTrue(issubclass(error, base) and issubclass(error, sg.Error))

    def test_out_of_memory_is_raised(self):
        with sg.Context("sim:h200") as context, self.assertRaises(sg.OutOfMemory):
            context.buffer(1 << 50)


if __name__ == "__main__":
    unittest.main()
