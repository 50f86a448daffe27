# SPDX-License-Identifier: Apache-2.0
"""Many threads in the package at once: on a free-threaded Python nothing but the package's own lock keeps them apart."""

import asyncio
import concurrent.futures as cf
import subprocess
import sys
import sysconfig
import threading
import unittest

import numpy as np
from support import DeviceTest, eventually, integers

THREADS = 8


def together(work, count=THREADS):
    """work(index) in as many threads, which begin at the same time. Raises what one of them raises."""
    barrier = threading.Barrier(count)

    def begin(index):
        barrier.wait()
        return work(index)

    with cf.ThreadPoolExecutor(count) as pool:
        return [each.result(600) for each in [pool.submit(begin, i) for i in range(count)]]


class Threads(DeviceTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = integers((12, 9)), integers((9, 7), seed=1)
        self.wanted = self.a @ self.b

    def submit(self, **how):
        return self.context.gemm_async(self.a, self.b, **how)

    def test_one_job_is_asked_by_all(self):
        calls = [lambda job: job.result(300), lambda job: job.exception(300), lambda job: job.wait(300), lambda job: cf.wait([job], 300),
                 lambda job: job.done(), lambda job: job.cancelled(), repr, lambda job: job.add_done_callback(called.append)]  # fmt: skip
        for _ in range(60):
            called, job = [], self.submit()
            together(lambda index: calls[index](job))
            np.testing.assert_array_equal(job.result(), self.wanted)
            self.assertTrue(eventually(lambda: called))
            self.assertEqual(called, [job])

    def test_one_failure_is_observed_by_all(self):
        for _ in range(40):
            gate = self.gate()
            first = self.submit(after=[self.held_job(gate)])
            after = self.submit(after=[first])
            self.assertTrue(first.cancel())
            gate.open()
            errors = together(lambda index: after.exception(300))
            self.assertTrue(errors[0] is not None and all(each is errors[0] for each in errors), errors)

    def test_a_flood_beyond_the_queue(self):
        """Submitters settle completions, too, when the package's thread is behind."""
        out = [np.empty_like(self.wanted) for _ in range(THREADS)]

        def work(index):
            last = None
            for _ in range(3000):
                last = self.submit(c=out[index])
            return last

        for job, result in zip(together(work), out):
            np.testing.assert_array_equal(job.result(300), self.wanted)
            np.testing.assert_array_equal(result, self.wanted)

    def test_each_kind_of_call(self):
        """Operations whose tables are filled by the first call, groups, graphs, custom operations and blocking calls."""
        x = integers((6, 8))
        with self.context.graph() as graph:
            graph.gemm(self.a, self.b)

            def work(index):
                for i in range(40):
                    kind = (index + i) % 6
                    if kind == 0:
                        got = self.context.gemm(self.a, self.b)
                    elif kind == 1:
                        got = self.context.gemm_grouped([(self.a, self.b)] * 3)[2]
                    elif kind == 2:
                        got = np.empty_like(self.wanted)
                        self.context.custom(lambda stream, to: np.copyto(to, self.wanted), writes=[got])
                    elif kind == 3:
                        got = np.empty_like(self.wanted)
                        self.context.copy(got, self.wanted)
                    elif kind == 4:
                        np.testing.assert_allclose(self.context.softmax(x).sum(axis=1), 1, rtol=1e-5)
                        continue
                    else:
                        graph.run_async().result(300)
                        continue
                    np.testing.assert_array_equal(got, self.wanted)

            together(work)

    def test_loops_of_several_threads(self):
        shared = [self.submit() for _ in range(50)]

        async def client():
            for job in shared:
                np.testing.assert_array_equal(await job, self.wanted)
            for own in await asyncio.gather(*(asyncio.wrap_future(self.submit()) for _ in range(50))):
                np.testing.assert_array_equal(own, self.wanted)

        together(lambda index: asyncio.run(client()))

    def test_callbacks_come_once(self):
        called = []

        def work(index):
            for _ in range(200):
                job = self.submit()
                job.add_done_callback(called.append)
                job.wait()

        together(work)
        self.assertTrue(eventually(lambda: len(called) >= 200 * THREADS))
        self.assertEqual(len(set(called)), 200 * THREADS)
        self.assertEqual(len(called), 200 * THREADS)

    @unittest.skipUnless(sysconfig.get_config_var("Py_GIL_DISABLED"), "this Python has a lock, always")
    def test_the_interpreter_goes_on_without_its_lock(self):
        code = "import sys, streamgemm; sys.exit(sys._is_gil_enabled())"
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
