# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C interrupts a blocking call: the job is cancelled, and its operands stay until it has completed."""

import gc
import os
import signal
import threading
import time
import unittest
import weakref

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest, eventually, run_python


class Interrupts(DeviceTest):
    def setUp(self):
        super().setUp()
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def interrupt_after(self, seconds, then=lambda: None):
        """Ctrl-C, from another thread, and that thread's next action."""
        begun = threading.Event()  # a thread may take long to start

        def press():
            begun.wait()
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGINT)
            then()

        thread = threading.Thread(target=press)
        thread.start()
        self.addCleanup(thread.join)
        begun.set()

    def calls(self, gate):
        one, context = np.ones((1, 1)), self.context
        plan, graph = context.plan(gate.matrix, one), context.graph()
        self.addCleanup(plan.close)
        graph.gemm(gate.matrix, one)
        return {
            "gemm": lambda: context.gemm(gate.matrix, one, stream=context.stream()),
            "matmul": lambda: context.matmul(gate.matrix, one, after=[context.gemm_async(one, one)]),
            "gemm_grouped": lambda: context.gemm_grouped([(gate.matrix, one), (one, one)]),
            "linear": lambda: context.linear(gate.matrix, one, stream=context.stream()),
            "copy": lambda: context.copy(np.empty((1, 1)), gate.matrix),
            "plan.run": lambda: plan.run(gate.matrix, one),
            "graph.run": graph.run,
        }

    def test_every_blocking_call(self):
        for name in self.calls(self.gate()):
            gate = self.gate()
            with self.subTest(name):
                call = self.calls(gate)[name]
                self.interrupt_after(0.05, then=lambda gate=gate: (time.sleep(0.1), gate.open()))
                with self.assertRaises(KeyboardInterrupt):
                    call()
                gate.open()

    def test_jobs_that_have_not_started_are_dropped_at_once(self):
        gate, stream = self.gate(), self.context.stream()
        held = self.held_job(gate, stream=stream)
        a, c = np.ones((300, 300)), np.zeros((300, 300))
        self.interrupt_after(0.05, then=lambda: (time.sleep(0.2), gate.open()))
        with self.assertRaises(KeyboardInterrupt):
            self.context.gemm(a, a, c, stream=stream)
        held.result(300)
        self.context.synchronize()
        self.assertTrue((c == 0).all())

    def test_a_second_signal_does_not_wait(self):
        gate, stream = self.gate(), self.context.stream()
        operand = np.ones((1, 1)).view(type("Watched", (np.ndarray,), {}))
        gone = weakref.ref(operand)
        self.interrupt_after(0.05, then=lambda: (time.sleep(0.1), os.kill(os.getpid(), signal.SIGINT)))
        with self.assertRaises(KeyboardInterrupt):
            self.context.gemm(gate.matrix, operand, stream=stream)
        del operand
        gc.collect()
        self.assertIsNotNone(gone())  # the job still has it
        gate.open()

        def released():
            self.context.gemm_async(np.ones((1, 1)), np.ones((1, 1))).result()
            return gone() is None

        self.assertTrue(eventually(released))

    def test_other_threads_are_not_interrupted(self):
        gate, results = self.gate(), []
        thread = threading.Thread(
            target=lambda: results.append(self.context.gemm(gate.matrix, np.ones((1, 1)), stream=self.context.stream()))
        )
        thread.start()
        self.interrupt_after(0.05)
        with self.assertRaises(KeyboardInterrupt):
            time.sleep(300)
        gate.open()
        thread.join()
        self.assertEqual(results[0][0, 0], 1)

    def test_a_handler_that_raises_nothing_interrupts_nothing(self):
        rang = []
        before = signal.signal(signal.SIGINT, lambda *_: rang.append(1))
        self.addCleanup(signal.signal, signal.SIGINT, before)
        gate = self.gate()
        self.interrupt_after(0.05, then=lambda: (time.sleep(0.1), gate.open()))
        self.assertEqual(self.context.gemm(gate.matrix, np.ones((1, 1)), stream=self.context.stream())[0, 0], 1)
        self.assertEqual(rang, [1])


class LargeGemms(unittest.TestCase):
    def test_a_program(self):
        code, output = run_python(
            f"""
            import os, signal, threading, time
            import numpy as np, streamgemm as sg
            context = sg.Context({DEVICE!r})
            a = np.ones((2500, 2500))
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                while True:
                    context.gemm(a, a)
            except KeyboardInterrupt:
                print("interrupted")
            print(context.gemm(np.ones((2, 2)), np.ones((2, 2)))[0, 0])
            """
        )
        self.assertEqual((code, output), (0, "interrupted\n2.0\n"))


if __name__ == "__main__":
    unittest.main()
