# SPDX-License-Identifier: Apache-2.0
"""Dropping and closing objects at any time in any order; process exit; fork."""

import gc
import threading
import unittest
import weakref

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest, eventually, integers, run_python


class Dropped(DeviceTest):
    def test_operands_stay_until_completion(self):
        wrong = 0
        for round_ in range(30):
            stream = self.context.stream()
            if round_ % 10 == 0:
                self.long_job(stream=stream)
            a, b, c = integers((64, 64), seed=round_), integers((64, 64), seed=99), np.empty((64, 64), np.float32)
            wanted = a @ b
            job = self.context.gemm_async(a, b, c, stream=stream)
            del a, b
            gc.collect()
            trash = [np.full((64, 64), np.nan, np.float32) for _ in range(8)]  # takes the memory if it was freed
            job.result(300)
            wrong += not (c == wanted).all()
            del trash
        self.assertEqual(wrong, 0)

    def test_everything_dropped_in_flight(self):
        alive = []

        class Watched(np.ndarray):
            pass

        stream = self.context.stream()
        gate = self.gate()
        self.held_job(gate, stream=stream)
        a = np.ones((50, 50)).view(Watched)
        alive.append(weakref.ref(a))
        job = self.context.gemm_async(a, a, stream=stream)
        alive.append(weakref.ref(job))
        del a, job, stream
        gc.collect()
        self.assertTrue(all(r() is not None for r in alive))
        gate.open()
        self.context.synchronize()
        self.assertTrue(eventually(lambda: all(r() is None for r in alive)))

    def test_operands_are_released_at_completion_not_with_the_job(self):
        a = np.ones((50, 50)).view(type("Watched", (np.ndarray,), {}))
        gone = weakref.ref(a)
        job = self.context.gemm_async(a, np.ones((50, 50)))
        job.result(300)
        del a
        self.assertTrue(eventually(lambda: gone() is None))
        self.assertEqual(job.result()[0, 0], 50)

    def test_a_buffer_cannot_be_resized_in_flight(self):
        stream = self.context.stream()
        gate = self.gate()
        self.held_job(gate, stream=stream)
        memory = bytearray(8 * 16)
        view = memoryview(memory).cast("d", (4, 4))
        job = self.context.gemm_async(view, view, stream=stream)
        view = None
        gc.collect()
        with self.assertRaises(BufferError):
            memory.extend(b"x" * 100000)
        gate.open()
        job.result(300)
        job = None
        self.context.synchronize()
        memory.extend(b"x")

    def test_reference_cycles(self):
        class Owner(np.ndarray):
            pass

        a = np.ones((40, 40)).view(Owner)
        job = self.context.gemm_async(a, np.ones((40, 40)), a.copy().view(Owner))
        job.result().job, a.job = job, job
        gone = weakref.ref(a), weakref.ref(job)
        del a, job
        self.assertTrue(eventually(lambda: all(r() is None for r in gone)))

    def test_pinned_memory_outlives_its_context(self):
        context = sg.Context(DEVICE)
        a = context.pinned_empty((30, 30), "f64")
        a[...] = 1
        context.close()
        del context
        gc.collect()
        self.assertEqual(self.context.matmul(a, a)[0, 0], 30)

    def test_a_matrix_outlives_its_buffer(self):
        with self.context.buffer(4 * 16) as buffer:
            m = buffer.matrix((4, 4))
        self.assertTrue(buffer.closed)
        self.context.copy(m, np.eye(4, dtype=np.float32))
        back = np.empty((4, 4), np.float32)
        np.testing.assert_array_equal(self.context.copy(back, m), np.eye(4))


class Closed(unittest.TestCase):
    def test_twice_and_in_any_order(self):
        for order in ((0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3)):
            context = sg.Context(DEVICE)
            a = np.ones((8, 8))
            things = [context, context.stream(), context.event(), context.buffer(64), context.plan(a, a)]
            job = context.gemm_async(a, a, stream=things[1])
            for i in order * 2:
                things[i].close()
                self.assertTrue(things[i].closed)
            self.assertEqual(job.result(300)[0, 0], 8)

    def test_use_after_close(self):
        context = sg.Context(DEVICE)
        stream, a = context.stream(), np.ones((4, 4))
        stream.close()
        with self.assertRaisesRegex(sg.InvalidHandle, "this Stream is closed"):
            context.gemm(a, a, stream=stream)
        context.close()
        for use in (
            lambda: context.gemm(a, a),
            lambda: context.gemm_async(a, a),
            lambda: context.stream(),
            lambda: context.device,
            lambda: context.gemm_grouped([(a, a)]),
            lambda: context.copy(a, a.copy()),
        ):
            with self.assertRaisesRegex(sg.InvalidHandle, "this Context is closed"):
                use()

    def test_context_closed_with_work_in_flight(self):
        with sg.Context(DEVICE) as context:
            jobs = [context.gemm_async(np.ones((600, 600)), np.ones((600, 600))) for _ in range(5)]
        del context
        gc.collect()
        for job in jobs:
            self.assertEqual(job.result(300)[0, 0], 600)

    def test_many_contexts_share_the_thread(self):
        jobs = []
        for _ in range(8):
            with sg.Context(DEVICE) as context:
                jobs.append(context.gemm_async(np.ones((9, 9)), np.ones((9, 9))))
        for job in jobs:
            self.assertEqual(job.result(300)[0, 0], 9)
        self.assertEqual(sum(t.name == "streamgemm" for t in threading.enumerate()), 1)


class EndOfProcess(unittest.TestCase):
    """Each in a process of its own, which must exit at once with code 0."""

    START = """
        import sys, asyncio, threading, numpy as np, streamgemm as sg
        context = sg.Context({device!r})
        a = np.ones((1000, 1000))
        stream = context.stream()
        jobs = [context.gemm_async(a, a, stream=stream) for _ in range(8)]
    """

    def ends(self, code, expected=0):
        status, output = run_python(self.START.format(device=DEVICE) + code)
        self.assertEqual(status, expected, output)
        self.assertNotIn("Error", output)
        self.assertNotIn("ignored", output)
        return output

    def test_in_flight(self):
        self.ends("")

    def test_in_flight_and_dropped(self):
        self.ends("""
        del a, jobs, stream, context
        """)

    def test_with_callbacks_waiting(self):
        self.ends("""
        for job in jobs: job.add_done_callback(lambda j: sum(range(1000)))
        """)

    def test_sys_exit_code(self):
        self.ends(
            """
        sys.exit(3)
        """,
            3,
        )

    def test_a_daemon_thread_waits(self):
        self.ends("""
        threading.Thread(target=jobs[-1].result, daemon=True).start()
        """)

    def test_a_joined_thread(self):
        self.assertIn(
            "sum 1000.0",
            self.ends("""
        threading.Thread(target=lambda: print("sum", jobs[-1].result()[0, 0])).start()
        """),
        )

    def test_an_abandoned_loop(self):
        self.ends("""
        async def main():
            asyncio.ensure_future(asyncio.wait([asyncio.wrap_future(jobs[-1])]))
            await asyncio.sleep(0)
        asyncio.run(main())
        """)

    def test_submitted_during_exit(self):
        self.assertIn(
            "late 1000.0",
            self.ends("""
        import atexit
        # Handlers run last first, and streamgemm's was registered when it was imported: ask for one that runs after it.
        import streamgemm._completer as completer
        atexit.unregister(completer._stop)
        atexit.register(lambda: print("late", context.gemm_async(a, a).result()[0, 0]))
        atexit.register(completer._stop)
        """),
        )

    def test_fork(self):
        output = self.ends("""
        import os
        child = os.fork()
        if child == 0:
            try:
                context.gemm(a, a)
            except sg.InvalidHandle as wrong:
                print("child: parent's handle refused")
            try:
                jobs[-1].result(300)
            except sg.InvalidHandle:
                print("child: parent's job refused")
            b = np.ones((3, 3))
            with sg.Context("cpu") as own:
                assert own.gemm_async(b, b).result(300)[0, 0] == 3
            print("child: own context works", flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert jobs[-1].result()[0, 0] == 1000
        """)
        for line in ("parent's handle refused", "parent's job refused", "own context works"):
            self.assertIn(line, output)

    def test_multiprocessing_by_fork(self):
        status, output = run_python(
            """
        import multiprocessing, numpy as np, streamgemm as sg
        def work(n):
            return float(sg.matmul_async(np.full((n, n), 1.0), np.eye(n)).result().sum())
        print(work(3))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(work, [4, 5, 6]))
        """,
            SG_DEVICE="cpu",
        )
        self.assertEqual(status, 0, output)
        self.assertNotIn("ignored", output)
        self.assertIn("[16.0, 25.0, 36.0]", output)


if __name__ == "__main__":
    unittest.main()
