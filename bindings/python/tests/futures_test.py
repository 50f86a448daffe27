# SPDX-License-Identifier: Apache-2.0
"""Jobs as futures: of concurrent.futures, cancelled, failed, waited for from callbacks and many threads."""

import concurrent.futures as cf
import signal
import threading
import time
import unittest

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest, eventually, integers


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
        np.testing.assert_array_equal(job.result(300), self.wanted)
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
        done, pending = cf.wait(jobs, timeout=300)
        self.assertEqual((len(done), len(pending)), (200, 0))
        jobs = [self.submit() for _ in range(200)]
        self.assertEqual(set(cf.as_completed(jobs, timeout=300)), set(jobs))
        done, _ = cf.wait([self.long_job(), self.submit()], return_when=cf.FIRST_COMPLETED, timeout=300)
        self.assertTrue(done)

    def test_timeout(self):
        gate = self.gate()
        job = self.held_job(gate)
        with self.assertRaises(cf.TimeoutError):
            job.result(0)
        self.assertFalse(job.wait(0.0001))
        with self.assertRaises(cf.TimeoutError):
            job.exception(timeout=0.001)
        gate.open()
        self.assertTrue(job.wait())
        self.assertEqual(job.result()[0, 0], 1)

    def test_callbacks(self):
        seen, notified = [], threading.Event()
        gate = self.gate()
        job = self.held_job(gate)
        job.add_done_callback(lambda j: seen.append((j, threading.current_thread())))
        job.add_done_callback(lambda j: notified.set())
        self.assertEqual(seen, [])
        gate.open()
        self.assertTrue(notified.wait(300))
        self.assertIsNot(seen[0][1], threading.current_thread())
        self.assertIs(seen[0][0], job)
        job.add_done_callback(lambda j: seen.append("at once"))
        self.assertEqual(seen[-1], "at once")

    def test_a_callback_may_wait_for_another_job(self):
        results = []

        def then(job):
            results.append(self.submit().result(300))

        gate = self.gate()
        jobs = [self.held_job(gate) for _ in range(3)]
        for job in jobs:
            job.add_done_callback(then)
        gate.open()
        self.assertTrue(eventually(lambda: len(results) == 3))

    def test_a_callback_that_raises_has_no_effect_on_others(self):
        gate = self.gate()
        job, after = self.held_job(gate), threading.Event()

        def wrong(_):
            raise RuntimeError("planted")

        job.add_done_callback(wrong)
        job.add_done_callback(lambda _: after.set())
        with self.assertLogs("concurrent.futures", "ERROR"):
            gate.open()
            self.assertTrue(after.wait(300))
        self.submit().result(300)

    def test_after_and_streams_order(self):
        c = np.zeros((1000, 1000))
        a = np.ones((1000, 1000))
        stream = self.context.stream()
        first = self.context.gemm_async(a, a, c, stream=stream)
        second = self.context.gemm_async(self.a, self.b, stream=stream)
        third = self.context.gemm_async(self.a, self.b, after=[first, second], untracked=True)
        third.result(300)
        self.assertTrue(first.done() and second.done())
        self.assertTrue(stream.synchronize(300) and stream.done())

    def test_done_does_not_wait_for_callbacks(self):
        called, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)
        gate, notified = self.gate(), []
        self.held_job(gate).add_done_callback(lambda _: (called.set(), go_on.wait(300)))
        gate.open()
        self.assertTrue(called.wait(300))  # no other callback runs meanwhile
        first = self.submit()
        first.add_done_callback(lambda _: notified.append(True))
        stream, gate = self.context.stream(), self.gate()
        self.held_job(gate, stream=stream)
        dropped = self.submit(stream=stream)
        dropped.add_done_callback(lambda _: notified.append(True))
        self.assertTrue(dropped.cancel())
        gate.open()
        self.assertTrue(stream.synchronize(300))
        gate = self.gate()
        later = self.held_job(gate, after=[first])
        threading.Timer(0.2, gate.open).start()
        self.assertEqual(later.result(300)[0, 0], 1)  # a wait does not need the thread that is in the callback
        self.assertTrue(first.done() and not first.cancelled() and "ok" in repr(first))
        self.assertTrue(dropped.done() and dropped.cancelled())
        self.assertEqual((notified, cf.wait([first], timeout=0).done), ([], set()))  # these are notified together
        np.testing.assert_array_equal(first.result(0), self.wanted)
        self.assertRaises(sg.Cancelled, dropped.result, 0)
        self.assertEqual(notified, [True, True])  # by the waiters

    def test_cancel(self):
        stream = self.context.stream()
        gate = self.gate()
        before = self.held_job(gate, stream=stream)
        job = self.submit(stream=stream)
        notified = threading.Event()
        job.add_done_callback(lambda _: notified.set())
        self.assertTrue(job.cancel())
        gate.open()
        with self.assertRaises(sg.Cancelled) as raised:
            job.result(300)
        self.assertIsInstance(raised.exception, cf.CancelledError)
        self.assertEqual(raised.exception.status_name, "SG_STATUS_CANCELLED")
        self.assertTrue(job.cancelled() and job.done() and notified.wait(300))
        self.assertTrue(job.cancel())  # as concurrent.futures does for a cancelled future
        before.result()
        self.assertFalse(before.cancel())

    def test_dependants_of_the_cancelled_fail(self):
        stream = self.context.stream()
        gate = self.gate()
        self.held_job(gate, stream=stream)
        job = self.submit(stream=stream)
        after = self.submit(after=[job])
        self.assertTrue(job.cancel())
        gate.open()
        self.assertIsInstance(after.exception(300), sg.DependencyFailed)
        self.assertIs(after.exception(), after.exception())
        done, _ = cf.wait([job, after], timeout=300)
        self.assertEqual(len(done), 2)

    def test_many_threads(self):
        wrong = []

        def work():
            for _ in range(200):
                if not (self.submit().result(300) == self.wanted).all():
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

                gate.open()

            gate, one = self.gate(), np.ones((1, 1))
            thread = threading.Thread(target=beside)
            jobs = [context.gemm_async(gate.matrix, one, stream=stream) for _ in range(2)]
            thread.start()
            started.wait()
            jobs += [context.gemm_async(self.a, self.b, stream=stream) for _ in range(20)]  # waits, without the GIL
            self.assertEqual(len(free), 3)  # the gate was open by then
            thread.join()
            jobs[0].result(300)
            np.testing.assert_array_equal(jobs[-1].result(300), self.wanted)
        with sg.Context(DEVICE, job_limit=1, when_full="refuse") as context:
            gate = self.gate()
            first = context.gemm_async(gate.matrix, one)
            with self.assertRaises(sg.Busy):
                context.gemm_async(one, one)
            gate.open()
            first.result()

    def test_every_primitive_of_concurrent_futures(self):
        jobs = [self.submit() for _ in range(5)]
        for when in (cf.FIRST_COMPLETED, cf.FIRST_EXCEPTION, cf.ALL_COMPLETED):
            done, _ = cf.wait(jobs, timeout=300, return_when=when)
            self.assertTrue(done)
        self.assertEqual(set(cf.as_completed(jobs + jobs)), set(jobs))
        gate = self.gate()
        held = self.held_job(gate)
        with self.assertRaises(cf.TimeoutError):
            list(cf.as_completed([held], timeout=0.01))
        self.assertEqual(cf.wait([held], timeout=0.01), (set(), {held}))
        with cf.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(held.result)
            gate.open()
            self.assertIs(waiting.result(300), held.result())
        seen = []
        job = self.submit()
        self.assertEqual(job.remove_done_callback(seen.append), 0)
        job.result()

    def test_callbacks_that_are_removed(self):
        seen, gate = [], self.gate()
        job = self.held_job(gate)
        for _ in range(2):
            job.add_done_callback(seen.append)
        self.assertEqual(job.remove_done_callback(seen.append), 2)
        gate.open()
        cf.wait([job])
        self.assertEqual(seen, [])

    def test_a_signal_interrupts_a_wait(self):
        class Rang(Exception):
            pass

        def ring(*_):
            raise Rang

        gate = self.gate()
        job = self.held_job(gate)
        before = signal.signal(signal.SIGALRM, ring)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        with self.assertRaises(Rang):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            job.result()
        self.assertFalse(job.done())
        gate.open()
        job.result()

    def test_waiting_releases_the_gil(self):
        gate, waits = self.gate(), threading.Event()

        def beside():
            waits.wait()
            for _ in range(100):
                time.sleep(0)
            gate.open()

        thread = threading.Thread(target=beside)
        thread.start()
        waits.set()
        self.assertEqual(self.context.gemm(gate.matrix, np.ones((1, 1)))[0, 0], 1)
        thread.join()


if __name__ == "__main__":
    unittest.main()
