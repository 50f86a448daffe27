# SPDX-License-Identifier: Apache-2.0
"""Jobs as futures: of concurrent.futures, under asyncio, cancelled, failed, waited for from callbacks and many
threads."""

import asyncio
import concurrent.futures as cf
import signal
import threading
import time
import unittest

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest, integers


class Futures(DeviceTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = integers((30, 20)), integers((20, 10), seed=1)
        self.wanted = self.a @ self.b

    def submit(self, **how):
        return self.context.gemm_async(self.a, self.b, **how)

    def test_is_a_future(self):
        job = self.submit()
        self.assertIsInstance(job, cf.Future)
        np.testing.assert_array_equal(job.result(10), self.wanted)
        self.assertTrue(job.done())
        self.assertFalse(job.cancelled())
        self.assertIsNone(job.exception())
        self.assertEqual(job.statistics.commands_run, job.statistics.commands)
        with self.assertRaises(cf.InvalidStateError):
            job.set_result(1)
        with self.assertRaises(TypeError):
            sg.Job()

    def test_wait_and_as_completed(self):
        jobs = [self.submit() for _ in range(200)]
        done, pending = cf.wait(jobs, timeout=10)
        self.assertEqual((len(done), len(pending)), (200, 0))
        jobs = [self.submit() for _ in range(200)]
        self.assertEqual(set(cf.as_completed(jobs, timeout=10)), set(jobs))
        cf.wait([self.long_job(), self.submit()], return_when=cf.FIRST_COMPLETED, timeout=10)

    def test_timeout(self):
        job = self.long_job()
        with self.assertRaises(TimeoutError):
            job.result(0)
        self.assertFalse(job.wait(0.0001))
        self.assertTrue(job.wait())
        job = self.long_job()
        with self.assertRaises(cf.TimeoutError):
            job.exception(timeout=0.001)
        job.result()

    def test_callbacks(self):
        seen, told = [], threading.Event()
        job = self.long_job()
        job.add_done_callback(lambda j: seen.append((j, threading.current_thread())))
        job.add_done_callback(lambda j: told.set())
        self.assertTrue(told.wait(10))
        self.assertIs(seen[0][0], job)
        job.add_done_callback(lambda j: seen.append("at once"))
        self.assertEqual(seen[-1], "at once")

    def test_a_callback_may_wait_for_another_job(self):
        results = []

        def then(job):
            results.append(self.submit().result(10))

        jobs = [self.long_job() for _ in range(3)]
        for job in jobs:
            job.add_done_callback(then)
        for job in jobs:
            job.result()
        deadline = time.monotonic() + 10
        while len(results) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(len(results), 3)

    def test_a_callback_that_raises_harms_nobody(self):
        job, after = self.long_job(), threading.Event()

        def wrong(_):
            raise RuntimeError("planted")

        job.add_done_callback(wrong)
        job.add_done_callback(lambda _: after.set())
        with self.assertLogs("concurrent.futures", "ERROR"):
            self.assertTrue(after.wait(10))
        self.submit().result(10)

    def test_after_and_streams_order(self):
        c = np.zeros((1000, 1000))
        a = np.ones((1000, 1000))
        stream = self.context.stream()
        first = self.context.gemm_async(a, a, c, stream=stream)
        second = self.context.gemm_async(self.a, self.b, stream=stream)
        third = self.context.gemm_async(self.a, self.b, after=[first, second], untracked=True)
        third.result(30)
        self.assertTrue(first.done() and second.done())
        self.assertTrue(stream.synchronize(10) and stream.done())

    def test_cancel(self):
        stream = self.context.stream()
        before = [self.long_job(stream=stream) for _ in range(3)]
        job = self.submit(stream=stream)
        told = threading.Event()
        job.add_done_callback(lambda _: told.set())
        self.assertTrue(job.cancel())
        with self.assertRaises(sg.Cancelled) as raised:
            job.result(30)
        self.assertIsInstance(raised.exception, cf.CancelledError)
        self.assertEqual(raised.exception.status_name, "SG_STATUS_CANCELLED")
        self.assertTrue(job.cancelled() and job.done() and told.wait(10))
        self.assertTrue(job.cancel())  # as concurrent.futures has it of one that is cancelled
        for other in before:
            other.result(30)
        self.assertFalse(before[0].cancel())

    def test_dependants_of_the_cancelled_fail(self):
        stream = self.context.stream()
        self.long_job(stream=stream)
        job = self.submit(stream=stream)
        after = self.submit(after=[job])
        job.cancel()
        self.assertIsInstance(after.exception(30), sg.DependencyFailed)
        self.assertIs(after.exception(), after.exception())
        done, _ = cf.wait([job, after], timeout=10)
        self.assertEqual(len(done), 2)

    def test_many_threads(self):
        wrong = []

        def work():
            for _ in range(200):
                if not (self.submit().result(30) == self.wanted).all():
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_job_limit(self):
        free = []
        with sg.Context(DEVICE, job_limit=2) as context, context.stream() as stream:
            started = threading.Event()

            def beside():
                started.set()
                while len(free) < 3:
                    free.append(time.sleep(0.001))

            a = np.ones((1000, 1000))
            thread = threading.Thread(target=beside)
            jobs = [context.gemm_async(a, a, stream=stream) for _ in range(2)]
            thread.start()
            started.wait(10)
            jobs += [context.gemm_async(self.a, self.b, stream=stream) for _ in range(20)]  # waits, without the GIL
            self.assertTrue(jobs[0].done())
            thread.join(10)
            np.testing.assert_array_equal(jobs[-1].result(10), self.wanted)
        with sg.Context(DEVICE, job_limit=1, when_full="refuse") as context:
            first = context.gemm_async(a, a)
            if not first.done():
                with self.assertRaises(sg.Busy):
                    context.gemm_async(a, a)
            first.result(10)

    def test_a_signal_ends_a_wait(self):
        class Rang(Exception):
            pass

        def ring(*_):
            raise Rang

        stream = self.context.stream()
        jobs = [self.long_job(stream=stream) for _ in range(100)]
        before = signal.signal(signal.SIGALRM, ring)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with self.assertRaises(Rang):
            jobs[-1].result()
        self.assertFalse(jobs[-1].done())
        for job in jobs:
            job.cancel()

    def test_waiting_frees_the_interpreter(self):
        counted = []

        def count():
            while not over.is_set():
                counted.append(1)
                time.sleep(0)

        over = threading.Event()
        thread = threading.Thread(target=count)
        thread.start()
        a = np.ones((1500, 1500))
        before = len(counted)
        self.context.gemm(a, a)
        during = len(counted) - before
        over.set()
        thread.join()
        self.assertGreater(during, 100)


class Asyncio(DeviceTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = integers((30, 20)), integers((20, 10), seed=1)

    def submit(self, **how):
        return self.context.gemm_async(self.a, self.b, **how)

    def test_await_gather_wrap(self):
        async def main():
            results = [await self.submit(), await asyncio.wrap_future(self.submit())]
            results += await asyncio.gather(*(self.submit() for _ in range(300)))
            shared = self.submit()
            results += await asyncio.gather(*(self.awaited(shared) for _ in range(5)))
            done = self.submit()
            done.result()
            results.append(await done)
            return results

        for result in asyncio.run(main()):
            np.testing.assert_array_equal(result, self.a @ self.b)

    async def awaited(self, job):
        return await job

    def test_failure_is_raised(self):
        async def main():
            stream = self.context.stream()
            self.long_job(stream=stream)
            job = self.submit(stream=stream)
            job.cancel()
            with self.assertRaises(sg.Cancelled):
                await job

        asyncio.run(main())

    def test_cancelling_the_task_cancels_the_job(self):
        async def main():
            stream = self.context.stream()
            before = [self.long_job(stream=stream) for _ in range(3)]
            job = self.submit(stream=stream)
            task = asyncio.ensure_future(self.awaited(job))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await asyncio.gather(*before)
            return job

        self.assertIsInstance(asyncio.run(main()).exception(10), sg.Cancelled)

    def test_timeout(self):
        async def main():
            stream = self.context.stream()
            for _ in range(5):
                self.long_job(stream=stream)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.awaited(self.submit(stream=stream)), 0.001)

        asyncio.run(main())

    def test_a_loop_that_is_gone(self):
        async def main():
            asyncio.ensure_future(self.awaited(self.long_job()))
            await asyncio.sleep(0)

        asyncio.run(main())  # its task is cancelled with the loop
        self.submit().result(10)


if __name__ == "__main__":
    unittest.main()
