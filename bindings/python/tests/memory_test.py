# SPDX-License-Identifier: Apache-2.0
"""Buffers, pinned memory, copies, and other libraries' memory: DLPack and the array interfaces."""

import ctypes
import gc
import unittest
import weakref

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest, eventually, integers


class Copies(DeviceTest):
    def test_to_the_device_and_back(self):
        a, b = integers((30, 20)), integers((20, 10), seed=1)
        with self.context.buffer(4 * (600 + 200 + 300)) as buffer:
            on_a = buffer.matrix((30, 20))
            on_b = buffer.matrix((20, 10), offset=2400)
            on_c = buffer.matrix((30, 10), offset=3200)
            self.context.copy_async(on_a, a)
            self.context.copy_async(on_b, b)
            job = self.context.gemm_async(on_a, on_b, on_c)  # ordered behind the copies by its operands
            back = np.empty((30, 10), np.float32)
            self.assertIs(self.context.copy_async(back, on_c, after=[job]).result(300), back)
        np.testing.assert_array_equal(back, a @ b)

    def test_shapes_of_copies(self):
        a = integers((4, 5, 6))
        b = np.empty_like(a)
        np.testing.assert_array_equal(self.context.copy(b, a), a)
        wide = np.zeros((9, 20), np.float32)
        self.context.copy(wide[2:6, 3:8], a[0, :, :5].copy()[:4])
        np.testing.assert_array_equal(wide[2:6, 3:8], a[0, :4, :5])
        self.assertEqual(np.count_nonzero(wide), np.count_nonzero(a[0, :4, :5]))
        columns = np.zeros((5, 6), np.float32, order="F")
        np.testing.assert_array_equal(self.context.copy(columns[:4], np.asfortranarray(a[0, :4])), a[0, :4])
        vector = np.empty(6, np.float32)
        np.testing.assert_array_equal(self.context.copy(vector, a[0, 0]), a[0, 0])

    def test_wrong_copies(self):
        a = integers((4, 5))
        for dst, src, text in (
            (a, a[:3].copy(), "src has shape .*; they must be equal"),
            (a, a.astype(np.float64), "and type .*; they must be equal"),
            (a, a, "overlap"),
            (np.asfortranarray(a)[:3], a[:3, ::1], "differ in layout"),
        ):
            with self.assertRaisesRegex(sg.InvalidArgument, text):
                self.context.copy(dst, src)


class Buffers(DeviceTest):
    def test_bounds(self):
        with self.context.buffer(100) as buffer:
            self.assertEqual(buffer.nbytes, 100)
            for shape, offset in (((5, 6), 0), ((5, 5), 4), ((1, 1), -4)):
                with self.assertRaisesRegex(sg.InvalidArgument, "do not fit"):
                    buffer.matrix(shape, offset=offset)
        with self.assertRaises(sg.InvalidHandle):
            buffer.matrix((1, 1))

    def test_memory_of_another_context(self):
        if self.context.device.unified_memory:
            self.skipTest("there is one memory here")
        matrix = self.context.buffer(64).matrix((4, 4))
        other_device = "cpu" if DEVICE.startswith("cuda") else DEVICE  # contexts of one CUDA device share its memory
        with (
            sg.Context(other_device) as other,
            self.assertRaisesRegex(sg.InvalidArgument, "device memory of another|lies on cuda"),
        ):
            other.gemm(matrix, matrix, np.empty((4, 4), np.float32))
        with self.assertRaisesRegex(sg.InvalidArgument, "c must be given"):
            self.context.gemm(matrix, matrix)
        with self.assertRaisesRegex(sg.InvalidArgument, "out must be given"):
            self.context.row_dot(matrix, matrix)
        for call in (self.context.row_reduce, lambda x: self.context.pool2d(x.part((1, 1, 4, 4)), 2)):
            with self.assertRaisesRegex(sg.InvalidArgument, "out must be given"):
                call(matrix)
        with self.assertRaises((BufferError, RuntimeError)):
            np.from_dlpack(matrix)
        with self.assertRaisesRegex(sg.InvalidArgument, "no array of the host"):
            np.asarray(matrix)


class Pinned(DeviceTest):
    def test_types_and_orders(self):
        for dtype in ("f16", "f32", "f64", "c64", "c128", "i8", "i32"):
            array = self.context.pinned_empty((3, 4), dtype, order="F")
            self.assertEqual((array.shape, array.flags.f_contiguous), ((3, 4), True))
            array[...] = 1
            self.assertEqual(array.ctypes.data % 4096, 0)
        self.assertEqual(self.context.pinned_empty(7).shape, (7,))
        for device in (-1, 0):
            self.assertEqual(self.context.pinned_empty((3, 4), device=device).shape, (3, 4))
        with self.assertRaisesRegex(sg.InvalidArgument, "device is 9"):
            self.context.pinned_empty((3, 4), device=9)

    def test_freed_with_its_last_user(self):
        array = self.context.pinned_empty((8, 8), "f64")
        array[...] = 1
        owner = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        gone = weakref.ref(owner.owner)
        job = self.context.gemm_async(array, array)
        del array, owner
        self.assertEqual(job.result(300)[0, 0], 8)
        self.assertTrue(eventually(lambda: gone() is None))

    def test_the_callers_array(self):
        a = np.ones((300, 300))
        with self.context.pin(a) as pinned:
            self.assertIs(pinned, a)
            job = self.context.gemm_async(a, a)
        self.assertEqual(job.result(300)[0, 0], 300)  # closing waited for its possible users
        registration = self.context.pin(a)
        with self.assertRaises(sg.InvalidArgument):
            self.context.pin(a[:10])
        registration.close()
        registration.close()
        self.context.pin(a)  # dropped at once
        gc.collect()
        self.context.pin(a).close()


class Exporter:
    """Another library's array, known by DLPack alone."""

    def __init__(self, array, versioned=True):
        self.array, self.versioned = array, versioned

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versioned and "max_version" in options:
            raise TypeError("unknown argument")
        options.pop("max_version", None)
        options.pop("stream", None)
        return self.array.__dlpack__(**options)


class OnCuda(Exporter):
    def __dlpack_device__(self):
        return (2, 0)


class OtherLibraries(DeviceTest):
    def test_dlpack_in(self):
        a, b, c = integers((5, 4)), integers((4, 6), seed=1), np.empty((5, 6), np.float32)
        for versioned in (True, False):
            result = self.context.gemm(Exporter(a.T, versioned), Exporter(b), Exporter(c, versioned), op_a="T")
            self.assertIsInstance(result, Exporter)
            np.testing.assert_array_equal(c, a @ b)
        with self.assertRaisesRegex(sg.InvalidArgument, "a .*is no operand"):
            self.context.gemm(Exporter(a.astype(np.uint8)), b)

    def test_dlpack_in_is_released_after_the_job(self):
        a = integers((5, 4)).view(type("Watched", (np.ndarray,), {}))
        gone = weakref.ref(a)
        job = self.context.gemm_async(Exporter(a), integers((4, 3)))
        del a
        job.result(300)
        self.assertTrue(eventually(lambda: gone() is None))

    def test_dlpack_out(self):
        a = integers((5, 4))
        matrix = sg.Matrix(a)
        out = np.from_dlpack(matrix)
        self.assertTrue(np.shares_memory(out, a))
        np.testing.assert_array_equal(np.from_dlpack(matrix.T), a.T)
        gone = weakref.ref(a := a.view(type("Watched", (np.ndarray,), {})))
        kept = np.from_dlpack(sg.Matrix(a))
        del a, matrix
        gc.collect()
        self.assertIsNotNone(gone())  # the consumer keeps the owner
        del kept, out
        self.assertTrue(eventually(lambda: gone() is None))
        sg.Matrix(np.ones((2, 2))).__dlpack__()  # a capsule without a consumer
        with self.assertRaises(BufferError):
            sg.Matrix(np.ones((2, 2))).__dlpack__(copy=True)

    def test_array_interface(self):
        a = integers((5, 4))

        class Interface:
            __array_interface__ = a.__array_interface__

        np.testing.assert_array_equal(self.context.gemm(Interface(), a, op_b="T"), a @ a.T)
        self.assertTrue(np.shares_memory(np.asarray(sg.Matrix(a)), a))

    def test_memory_on_a_device_that_is_not_the_contexts(self):
        if DEVICE.startswith("cuda"):
            self.skipTest("here it could be")
        a = integers((4, 4))
        on_cuda = sg.Matrix.at(a.ctypes.data, (4, 4), "f32", device="cuda:0", owner=a)
        self.assertEqual(on_cuda.__cuda_array_interface__["data"], (a.ctypes.data, False))
        self.assertEqual(on_cuda.__dlpack_device__(), (2, 0))
        with self.assertRaisesRegex(sg.InvalidArgument, "b lies on cuda:0, which is no device of this context"):
            self.context.gemm(a, on_cuda)
        with self.assertRaisesRegex(sg.InvalidArgument, r"a \(a OnCuda\) is no operand"):
            self.context.gemm(OnCuda(a), a)  # there is no CUDA driver in this process

    def test_addresses(self):
        memory = (ctypes.c_double * 16)(*range(16))
        m = sg.Matrix.at(ctypes.addressof(memory), (4, 4), "f64", owner=memory)
        wanted = np.arange(16.0).reshape(4, 4)
        np.testing.assert_array_equal(self.context.gemm(m, m.T), wanted @ wanted.T)
        middle = m.part((4, 2), m.strides, offset=8)
        np.testing.assert_array_equal(self.context.gemm(middle, middle, op_b="T"), wanted[:, 1:3] @ wanted[:, 1:3].T)
        with self.assertRaisesRegex(sg.InvalidArgument, "the part has the bytes from 24 to 136; the matrix ends at 128"):
            m.part((4, 2), m.strides, offset=24)
        self.assertIs(m.owner, memory)
        for wrong in (
            lambda: sg.Matrix.at(8, (4, 4), "f99"),
            lambda: sg.Matrix.at(8, (4, -4), "f64"),
            lambda: sg.Matrix.at(8, (1 << 40, 1 << 40), "f64"),
            lambda: sg.Matrix.at(8, (4,), "f64", (8, 8)),
            lambda: sg.Matrix.at(8, (4, 4), "f64", device="tpu"),
            lambda: sg.Matrix(np.ones((2, 2)), "f32"),
        ):
            self.assertRaises(sg.InvalidArgument, wrong)


class Torch(DeviceTest):
    """PyTorch on the host, where it is installed."""

    def setUp(self):
        super().setUp()
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not here")
        self.torch = torch

    def test_in_and_out(self):
        torch = self.torch
        a, b = torch.ones(5, 4, dtype=torch.bfloat16), torch.ones(4, 6, dtype=torch.bfloat16)
        c = self.context.matmul(a, b)
        self.assertIsInstance(c, torch.Tensor)
        self.assertEqual(c.dtype, torch.bfloat16)
        self.assertTrue(bool((c == 4).all()))
        with self.assertRaisesRegex(sg.InvalidArgument, "grad"):
            self.context.matmul(torch.ones(2, 2, requires_grad=True), torch.ones(2, 2))

    def test_a_pending_sign(self):
        torch = self.torch
        view = torch.complex(torch.zeros(2, 2), torch.ones(2, 2)).conj().imag  # whose memory holds 1
        self.assertTrue(bool((self.context.matmul(view.resolve_neg(), torch.ones(2, 2)) == -2).all()))
        for call in (lambda: self.context.matmul(view, torch.ones(2, 2)), lambda: self.context.matmul(torch.ones(2, 2), torch.ones(2, 2), view)):
            with self.assertRaisesRegex(sg.InvalidArgument, "(a|out) .*resolve_neg"):
                call()


if __name__ == "__main__":
    unittest.main()
