# SPDX-License-Identifier: Apache-2.0
"""PyTorch's and CuPy's arrays on a CUDA device: in and out without a copy, after pending work in their own streams."""

import sys
import unittest

import numpy as np
import streamgemm as sg
from support import integers

SKIPPED = 77
DEVICE = next((d.name for d in sg.devices() if d.name.startswith("cuda")), None)


class OnCuda(unittest.TestCase):
    def setUp(self):
        self.context = sg.Context(DEVICE)
        self.addCleanup(self.context.close)


class Torch(OnCuda):
    def setUp(self):
        super().setUp()
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not here")
        self.torch = torch
        self.a, self.b = torch.from_numpy(integers((300, 200))), torch.from_numpy(integers((200, 100), seed=1))
        self.wanted = self.a @ self.b

    def test_types(self):
        torch = self.torch
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128):
            a, b = (x[:40, :40].to(dtype).cuda() for x in (self.a, self.b))
            c = self.context.matmul(a, b)
            self.assertEqual((c.dtype, c.device), (dtype, a.device))
            torch.testing.assert_close(c, a @ b, rtol=0, atol=0)
        a, b = (x[:40, :40].to(torch.int8).cuda() for x in (self.a, self.b))
        self.assertEqual(self.context.matmul(a, b).cpu().tolist(), (a.cpu().int() @ b.cpu().int()).tolist())

    def test_in_place_and_transposed(self):
        c = self.torch.empty((100, 300), device="cuda").T
        job = self.context.gemm_async(self.a.cuda(), self.b.T.contiguous().cuda().T, c)
        self.assertIs(job.result(30), c)
        self.assertTrue(bool((c.cpu() == self.wanted).all()))

    def test_mixed_places(self):
        c = np.empty((300, 100), np.float32)
        self.context.gemm(self.a.cuda(), self.b.numpy(), c)
        np.testing.assert_array_equal(c, self.wanted.numpy())

    def test_after_the_producers_stream(self):
        torch = self.torch
        side = torch.cuda.Stream()
        big = torch.ones((8192, 8192), device="cuda")
        for _ in range(5):
            a = torch.zeros((300, 200), device="cuda")
            with torch.cuda.stream(side):
                for _ in range(4):
                    big @ big  # keeps the stream busy, so that the next line is late
                a.copy_(self.a.pin_memory(), non_blocking=True)
                c = self.context.matmul(a, self.b.cuda())
            self.assertTrue(bool((c.cpu() == self.wanted).all()))

    def test_between_a_streams_own_work(self):
        torch = self.torch
        pinned, b = self.a.pin_memory(), self.b.cuda()
        for native in (torch.cuda.Stream(), torch.cuda.default_stream()):
            with self.context.wrap_stream(native) as wrapped, torch.cuda.stream(native):
                for _ in range(5):
                    a, c = torch.zeros((300, 200), device="cuda"), torch.zeros((300, 100), device="cuda")
                    torch.cuda._sleep(10_000_000)  # some milliseconds, in which none of the following can run
                    a.copy_(pinned, non_blocking=True)
                    self.context.gemm_async(a, b, c, stream=wrapped)
                    doubled = c * 2  # ordered after it by the stream alone
                    self.assertTrue(bool((doubled.cpu() == 2 * self.wanted).all()))

    def test_out_by_dlpack(self):
        with self.context.buffer(4 * 300 * 100) as buffer:
            on_device = buffer.matrix((300, 100))
        self.context.gemm(self.a.cuda(), self.b.cuda(), on_device)
        seen = self.torch.from_dlpack(on_device)
        self.assertEqual((seen.data_ptr(), seen.device.type), (on_device.address, "cuda"))
        del on_device
        self.assertTrue(bool((seen.cpu() == self.wanted).all()))

    def test_dropped_in_flight(self):
        for _ in range(20):
            a, b = self.a.cuda(), self.b.cuda()
            job = self.context.gemm_async(a, b)
            del a, b
            trash = [self.torch.full((300, 200), float("nan"), device="cuda") for _ in range(4)]
            self.assertTrue(bool((job.result(30).cpu() == self.wanted).all()))
            del trash

    def test_errors(self):
        with sg.Context("cpu") as cpu, self.assertRaisesRegex(sg.InvalidArgument, "a lies on cuda:0"):
            cpu.gemm(self.a.cuda(), self.b.cuda())
        with self.assertRaisesRegex(sg.InvalidArgument, "grad"):
            self.context.matmul(self.a.cuda().requires_grad_(), self.b.cuda())


class Cupy(OnCuda):
    def setUp(self):
        super().setUp()
        try:
            import cupy
        except ImportError:
            self.skipTest("CuPy is not here")
        self.cupy = cupy

    def test_both_interfaces(self):
        cupy = self.cupy
        host_a, host_b = integers((300, 200)), integers((200, 100), seed=1)
        a, b = cupy.asarray(host_a), cupy.asarray(host_b)
        c = self.context.matmul(a, b)
        self.assertIsInstance(c, cupy.ndarray)
        np.testing.assert_array_equal(cupy.asnumpy(c), host_a @ host_b)

        class InterfaceOnly:
            def __init__(self, array):
                self.__cuda_array_interface__ = array.__cuda_array_interface__
                self.kept = array

        out = cupy.empty((300, 100), cupy.float32)
        with cupy.cuda.Stream(non_blocking=True):
            late = cupy.zeros_like(a)
            late += a
            self.context.gemm(InterfaceOnly(late), InterfaceOnly(b), InterfaceOnly(out))
        np.testing.assert_array_equal(cupy.asnumpy(out), host_a @ host_b)

    def test_out_by_the_interface(self):
        with self.context.buffer(4 * 16) as buffer:
            matrix = buffer.matrix((4, 4))
        self.context.copy(matrix, np.eye(4, dtype=np.float32))
        np.testing.assert_array_equal(self.cupy.asnumpy(self.cupy.asarray(matrix)), np.eye(4))


if __name__ == "__main__":
    if DEVICE is None:
        print("there is no CUDA device here")
        sys.exit(SKIPPED)
    unittest.main()
