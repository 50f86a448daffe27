# SPDX-License-Identifier: Apache-2.0
"""Custom operations: functions in Python as jobs, in graphs, and in the stages of pipelines; functions that record stages."""

import gc
import os
import subprocess
import sys
import threading
import time
import unittest
import weakref

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest, eventually, integers as floats


def integers(shape, seed=0):
    return floats(shape, np.float64, seed)


def add(stream, x, y):
    assert stream == 0
    y += x


@unittest.skipIf(DEVICE.startswith("cuda"), "the functions compute on the host")
class Custom(DeviceTest):
    def on_device(self, values):
        made = self.context.buffer(values.nbytes).matrix(values.shape, "f64")
        self.context.copy(made, values)
        return made

    def fetch(self, matrix):
        return self.context.copy(np.empty(matrix.shape), matrix)

    def test_between_other_jobs(self):
        a, b = (self.on_device(integers((20, 20), seed)) for seed in (1, 2))
        c = self.on_device(np.zeros((20, 20)))
        d = self.on_device(np.zeros((20, 20)))

        def slowly_square(stream, x, y):
            time.sleep(0.02)
            np.multiply(x, x, out=y)

        for _ in range(3):
            self.context.gemm_async(a, b, c)
            job = self.context.custom_async(slowly_square, reads=[c], writes=[d])
            self.context.gemm_async(a, d, c)
            self.assertIs(d, job.result(300))
            product = self.fetch(a) @ self.fetch(b)
            np.testing.assert_array_equal(product**2, self.fetch(d))
            np.testing.assert_array_equal(self.fetch(a) @ product**2, self.fetch(c))

    def test_jobs_and_parts_are_operands(self):
        a, b = self.on_device(integers((8, 8), 1)), self.on_device(integers((8, 8), 2))
        job = self.context.gemm_async(a, b, self.on_device(np.zeros((8, 8))))
        left = a.part((8, 4), (64, 8))
        seen = []

        def collect(stream, product, part, y):
            seen.append((product.shape, part.shape, product.flags.writeable))
            y[:, :4] = product[:, :4] * 2
            y[:, 4:] = part

        result = self.on_device(np.zeros((8, 8)))
        self.assertIs(result, self.context.custom(collect, reads=(job, left), writes=[result]))
        self.assertEqual([((8, 8), (8, 4), False)], seen)
        wanted = np.hstack([(self.fetch(a) @ self.fetch(b))[:, :4] * 2, self.fetch(a)[:, :4]])
        np.testing.assert_array_equal(wanted, self.fetch(result))
        both = self.context.custom(lambda stream, x, y: (x.fill(1), y.fill(2)), writes=[a, b])
        self.assertEqual((a, b), both)
        np.testing.assert_array_equal(np.ones((8, 8)) * 2, self.fetch(b))

    def test_plain_arrays_on_the_cpu(self):
        if self.context.device.name != "cpu":
            self.skipTest("a device with memory of its own")
        x, y = integers((5, 5)), np.zeros((5, 5))
        x.flags.writeable = False
        self.context.custom(add, reads=[x], updates=[y])
        np.testing.assert_array_equal(x, y)

        def writes_what_it_reads(stream, x, y):
            x += 1

        with self.assertRaisesRegex(sg.BackendFailure, "ValueError: output array is read-only"):
            self.context.custom(writes_what_it_reads, reads=[x], updates=[y])

    def test_exceptions_fail_the_job(self):
        x = self.on_device(np.zeros(4))

        def fails(stream, x):
            raise LookupError("no page 7")

        job = self.context.custom_async(fails, writes=[x])
        with self.assertRaisesRegex(sg.BackendFailure, "LookupError: no page 7"):
            job.result(300)
        with self.assertRaisesRegex(sg.OutOfMemory, "MemoryError"):
            self.context.custom(lambda stream, x: bytearray(1 << 62), writes=[x])
        self.context.custom(lambda stream, x: x.fill(3), writes=[x])
        np.testing.assert_array_equal(np.full(4, 3.0), self.fetch(x))

    def test_graphs(self):
        x, y = self.on_device(np.ones(6)), self.on_device(np.zeros(6))
        graph = self.context.graph()
        self.assertIs(y, graph.custom(add, reads=[x], updates=[y]))
        graph.custom(lambda stream, x: np.multiply(x, 2, out=x), updates=[y])
        gc.collect()  # the graph keeps its functions
        for _ in range(3):
            graph.run()
        np.testing.assert_array_equal(np.full(6, 14.0), self.fetch(y))  # (((0 + 1) 2 + 1) 2 + 1) 2

    def test_a_function_lives_as_long_as_its_job(self):
        class Adds:
            def __call__(self, stream, x):
                x += 1

        x = self.on_device(np.zeros(4))
        function = Adds()
        seen = weakref.ref(function)
        self.context.custom_async(function, updates=[x])
        del function
        self.context.synchronize()
        np.testing.assert_array_equal(np.ones(4), self.fetch(x))
        self.assertTrue(eventually(lambda: gc.collect() is not None and seen() is None))

    def test_from_many_threads(self):
        x = self.on_device(np.ones(50))
        sums = [self.on_device(np.zeros(50)) for _ in range(4)]

        def submit(y):
            for _ in range(20):
                self.context.custom_async(add, reads=[x], updates=[y])
                np.ones((30, 30)) @ np.ones((30, 30))

        threads = [threading.Thread(target=submit, args=(y,)) for y in sums]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for y in sums:
            np.testing.assert_array_equal(np.full(50, 20.0), self.fetch(y))

    def test_small_blocking_calls_wait_for_functions(self):
        """A blocking call of a few elements holds the GIL, which the function needs."""
        x, out = self.on_device(np.ones((4, 4))), np.empty((4, 4))
        for _ in range(20):
            self.context.custom_async(lambda stream, x: (time.sleep(0.001), x.fill(2)), writes=[x])
            self.context.gemm(x, x, out)
            np.testing.assert_array_equal(np.full((4, 4), 16.0), out)
            self.context.custom_async(lambda stream, x: (time.sleep(0.001), x.fill(1)), writes=[x])
            self.context.synchronize()

    def test_stages(self):
        w = integers((4, 4), 3)
        made = self.context.pipeline((3, 4), "f64")
        first = made.stage((3, 4), name="halve")
        first.custom(lambda stream, x, y: np.divide(x, 2, out=y), reads=[first.input], writes=[first.output])
        second = made.stage((3, 4), weights=[w])
        second.gemm(second.input, second.weights[0], second.output)
        third = made.stage((3, 1))
        third.custom(
            lambda stream, x, y: np.sum(x, axis=1, keepdims=True, out=y), reads=[third.input], writes=[third.output]
        )
        del first, second, third
        gc.collect()
        batches = [integers((3, 4), seed) for seed in range(12)]
        jobs = [made.push_async(x) for x in batches]
        for x, job in zip(batches, jobs):
            np.testing.assert_array_equal((x / 2 @ w).sum(axis=1, keepdims=True), job.result(300))

    def test_a_failing_batch_does_not_stop_the_next(self):
        made = self.context.pipeline((2,), "f64")
        stage = made.stage((2,))

        def function(stream, x, y):
            if x[0] == 3:
                raise ArithmeticError("three")
            y[:] = x + 1

        stage.custom(function, reads=[stage.input], writes=[stage.output])
        jobs = [made.push_async(np.full(2, float(i))) for i in range(6)]
        for i, job in enumerate(jobs):
            if i == 3:
                # Of the operation itself, or of the copy that was to follow it.
                with self.assertRaisesRegex(sg.Error, "the function of a custom operation returned -9") as raised:
                    job.result(300)
                self.assertIsInstance(raised.exception, (sg.BackendFailure, sg.DependencyFailed))
            else:
                np.testing.assert_array_equal(np.full(2, i + 1.0), job.result(300))

    def test_functions_of_stages(self):
        """The operations depend on the batch."""
        powers = [integers((4, 4), seed) for seed in range(5)]
        seen = []
        made = self.context.pipeline((3, 4), "f64")

        def record(stage, batch):
            seen.append(batch)
            stage.gemm(stage.input, stage.weights[0], stage.output, alpha=1.0 + batch)

        self.assertIsNone(made.stage((3, 4), weights=[powers[0]], function=record, name="scaled"))
        last = made.stage((3, 4))
        last.elementwise("relu", last.input, out=last.output)
        self.assertEqual(2, made.info.stages)
        self.assertEqual({-1}, set(seen))
        batches = [integers((3, 4), seed) for seed in range(6)]
        jobs = [made.push_async(x) for x in batches]
        for i, (x, job) in enumerate(zip(batches, jobs)):
            np.testing.assert_array_equal(np.maximum((1.0 + i) * (x @ powers[0]), 0), job.result(300))
        self.assertEqual([0, 1, 2, 3, 4, 5], [batch for batch in seen if batch >= 0])

    def test_what_a_function_raises_is_raised_by_the_push(self):
        made = self.context.pipeline((3, 4), "f64")

        def record(stage, batch):
            if batch == 1:
                raise KeyError("layer 1")
            stage.elementwise("relu", stage.input, out=stage.output)

        made.stage((3, 4), function=record)
        x = integers((3, 4))
        made.push(x)
        with self.assertRaisesRegex(KeyError, "layer 1"):
            made.push(x)

    def test_refused(self):
        x = self.on_device(np.zeros(4))
        for text, arguments in {
            "function is 5": dict(function=5, writes=[x]),
            "there are 0 operands": dict(function=add),
            "there are 5 operands": dict(function=add, reads=[x] * 5),
            r"writes\[0\] is empty": dict(function=add, writes=[np.empty((3, 0))]),
            "reads is Matrix of shape": dict(function=add, reads=x),
            "compute_units is -2": dict(function=add, writes=[x], compute_units=-2),
            "seconds is -1": dict(function=add, writes=[x], seconds=-1),
            "overlaps": dict(function=add, reads=[x], writes=[x]),
        }.items():
            with self.subTest(text), self.assertRaisesRegex((TypeError, ValueError, sg.Error), text):
                self.context.custom(**arguments)
        made = self.context.pipeline((3, 4), "f64")
        with self.assertRaisesRegex(TypeError, "function is 'record'"):
            made.stage((3, 4), function="record")


EXITS = """
import sys, threading, time
import numpy as np
import streamgemm as sg
context = sg.Context(sys.argv[1])
x = context.buffer(32).matrix((4,), "f64")
begun = threading.Event()
def slow(stream, x):
    print("begins", flush=True)
    begun.set()
    time.sleep(0.3)
    print("ends", flush=True)
for _ in range(50):
    context.custom_async(slow, writes=[x])
begun.wait(60)
"""


class Exits(unittest.TestCase):
    def test_the_interpreter_exits_beside_functions(self):
        for device in ("cpu", "sim:h200"):
            with self.subTest(device):
                done = subprocess.run([sys.executable, "-c", EXITS, device], capture_output=True, text=True, timeout=120)
                self.assertEqual((0, ""), (done.returncode, done.stderr))
                said = done.stdout.split()
                self.assertEqual(said.count("begins"), said.count("ends"))
                self.assertTrue(1 <= said.count("begins") <= 5, said)

    def test_a_child_of_fork_goes_on(self):
        with sg.Context("cpu") as context:
            x = np.zeros(3)
            context.custom(lambda stream, x: x.fill(1), writes=[x])
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    with sg.Context("cpu") as own:
                        own.custom(lambda stream, x: x.fill(2), writes=[x])
                    code = 0 if x[0] == 2 else 2
                finally:
                    os._exit(code)
            self.assertEqual(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            self.assertEqual(1, x[0])


if __name__ == "__main__":
    unittest.main()
