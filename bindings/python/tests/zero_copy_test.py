# SPDX-License-Identifier: Apache-2.0
"""A GiB of NumPy array is multiplied in place: resident memory grows by less than a twentieth of it."""

import threading
import unittest

import numpy as np
import streamgemm as sg
from support import resident_bytes

GIB = 1 << 30


class ZeroCopy(unittest.TestCase):
    def peak_growth(self, work):
        start, peak, over = resident_bytes(), 0, threading.Event()

        def watch():
            nonlocal peak
            while not over.wait(0.002):
                peak = max(peak, resident_bytes() - start)

        watcher = threading.Thread(target=watch)
        watcher.start()
        work()
        over.set()
        watcher.join()
        return max(peak, resident_bytes() - start)

    def test_a_gib(self):
        rows, columns, few = 32768, 8192, 4
        a = np.ones((rows, columns), np.float32)
        self.assertEqual(a.nbytes, GIB)
        b = np.full((columns, few), 2, np.float32)
        c = np.zeros((rows, few), np.float32)
        with sg.Context("cpu") as context:
            context.gemm(
                np.ones((500, 500), np.float32), np.ones((500, 500), np.float32)
            )  # the library's own workspace
            for name, work in (
                ("gemm", lambda: context.gemm(a, b, c)),
                ("gemm_async", lambda: context.gemm_async(a, b, c).result()),
                ("transposed", lambda: context.gemm(b.T, a.T, c.T)),
                ("by DLPack", lambda: context.gemm(sg.Matrix(a), b, c)),
            ):
                c[...] = 0
                growth = self.peak_growth(work)
                print(f"{name}: resident memory grew by {growth >> 20} MiB at most beside an operand of 1024 MiB")
                self.assertTrue((c == 2 * columns).all())
                self.assertLess(growth, GIB // 20, name)


if __name__ == "__main__":
    unittest.main()
