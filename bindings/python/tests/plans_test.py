# SPDX-License-Identifier: Apache-2.0
"""Plans, options, events, streams, properties of devices and statistics of jobs."""

import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np
import streamgemm as sg
from streamgemm import _raw, operations
from support import DeviceTest, integers


class Plans(unittest.TestCase):
    def setUp(self):
        self.context = sg.Context("sim:h200")
        self.addCleanup(self.context.close)

    def placeholders(self, n, place):
        return [sg.Matrix.placeholder((n, n), place=place) for _ in range(2)]

    def test_places_of_an_operation(self):
        """Only a GEMM's operands have places of their own; what a run could not keep is refused."""
        pinned, pageable, device = (sg.Matrix.placeholder((4, 4), place=place) for place in ("pinned", "pageable", "device"))
        with self.context.plan(operations.gemm(pinned, pageable, device)) as plan:
            self.assertGreater(plan.prediction.bytes_in, 0)
        for given, text in (
            (operations.axpby(pageable, device), "c is a placeholder in device memory, and a one in pageable memory"),
            (operations.softmax(pinned, pageable), "out is a placeholder in pageable memory, and x one in pinned memory"),
            (operations.copy(pinned, pageable), "is a placeholder in pageable memory"),
            (operations.softmax(pinned), "out is None; a run makes it in ordinary memory, and x is a placeholder in pinned memory"),
        ):
            with self.assertRaisesRegex(sg.InvalidArgument, text):
                self.context.plan(given)
        self.assertTrue(self.context.supports(operations.softmax(pinned)))
        x, y = self.context.pinned_empty((4, 4)), self.context.pinned_empty((4, 4))
        np.asarray(x)[...] = np.eye(4)
        with self.context.plan(operations.softmax(pinned, pinned)) as plan:
            plan.run(operations.softmax(x, y))
        np.testing.assert_allclose(np.asarray(y).sum(axis=1), np.ones(4), rtol=1e-6)

    def test_arguments_beside_a_description(self):
        x = np.ones((4, 4), "f")
        for name, value in {"alpha": 2.0, "bias": x, "op_a": "T", "b": x}.items():
            with self.assertRaisesRegex(TypeError, "operation has all arguments; none but options is given beside it"):
                self.context.plan(operations.softmax(x), **{name: value})

    def test_a_description_is_used_again(self):
        described = operations.gemm_grouped((x, x) for x in [np.eye(2)])
        with self.context.plan(described) as plan:
            np.testing.assert_array_equal(plan.run(described)[0], np.eye(2))

    def test_a_plan_runs_no_empty_batch(self):
        empty = np.ones((0, 2, 2))
        with self.context.plan(operations.softmax(np.ones((4, 4)))) as plan:
            with self.assertRaisesRegex(sg.InvalidArgument, "empty batch"):
                plan.run(operations.gemm(empty, empty))

    def test_prediction_for_an_absent_gpu(self):
        pinned = self.context.plan(*self.placeholders(8192, "pinned"), compute="tf32").prediction
        pageable = self.context.plan(*self.placeholders(8192, "pageable"), compute="tf32").prediction
        resident = self.context.plan(*self.placeholders(8192, "device"), compute="tf32").prediction
        self.assertLess(resident.predicted_seconds, pinned.predicted_seconds)
        self.assertLess(pinned.predicted_seconds, pageable.predicted_seconds)
        self.assertLessEqual(pinned.bound_seconds, pinned.predicted_seconds)
        self.assertEqual(pinned.flops, 2 * 8192**3)
        self.assertEqual((pinned.bytes_in, pinned.bytes_out), (2 * 4 * 8192**2, 4 * 8192**2))

    def test_texts(self):
        with self.context.plan(*self.placeholders(4096, "pinned")) as plan:
            self.assertIn("strategy", plan.text)
            self.assertEqual(str(plan), plan.text)
            self.assertIn("compute", plan.timeline)
            self.assertEqual(sum(plan.commands["commands"].values()), len(plan.commands["timeline"]))
            self.assertLessEqual(0, plan.commands["timeline"][0]["start_seconds"])
        with self.assertRaises(sg.InvalidHandle):
            plan.text

    def test_run(self):
        a, b = integers((64, 48)), integers((48, 32), seed=1)
        plan = self.context.plan(a, b, np.empty((64, 32), np.float32), alpha=2.0)
        for seed in range(3):
            b = integers((48, 32), seed=seed)
            c = np.empty((64, 32), np.float32)
            self.assertIs(plan.run_async(a, b, c).result(300), c)
            np.testing.assert_array_equal(c, 2 * (a @ b))
            np.testing.assert_array_equal(plan.run(a, b, alpha=3.0), 3 * (a @ b))
        with self.assertRaises(sg.InvalidArgument):
            plan.run(a.T.copy(), b)
        plan.close()
        with self.assertRaisesRegex(sg.InvalidHandle, "this Plan is closed"):
            plan.run(a, b)

    def test_options(self):
        options = sg.PlanOptions(split="k", parts=3)
        self.assertEqual(repr(options), "PlanOptions(parts=3, split=4)")
        a, b = integers((64, 96)), integers((96, 32), seed=1)
        job = self.context.gemm_async(a, b, options=options)
        np.testing.assert_array_equal(job.result(300), a @ b)
        self.assertGreater(job.statistics.commands, 3)


class Facts(DeviceTest):
    def test_devices(self):
        self.assertIn("cpu", [d.name for d in sg.devices()])
        self.assertLessEqual({"cpu", "sim"}, {b.name for b in sg.backends() if b.available})
        with self.assertRaisesRegex(sg.NoDevice, 'path "/.*/no-such-plugin.so": No such file'):
            sg.load_backend(pathlib.Path("no-such-plugin.so"))
        device = self.context.device
        self.assertEqual(device, self.context.device)
        self.assertIn("name=", repr(device))
        with self.assertRaisesRegex(AttributeError, "it has"):
            device.nonsense
        self.assertIn(self.context.available_memory(), range(1, device.memory_bytes + 1))
        with self.assertRaisesRegex(sg.InvalidArgument, "device is 1"):
            self.context.available_memory(1)

    def test_log(self):
        program = "import sys, numpy, streamgemm as sg; sg.set_log(sys.argv[1]); context = sg.Context('sim:h200'); context.gemm(numpy.ones((1, 1)), numpy.ones((1, 1)))"
        for level, words in (("info", "streamgemm: info: plan: 1 x 1 x 1 f64 on "), ("error", "")):
            logged = subprocess.run([sys.executable, "-c", program, level], env=dict(os.environ, SG_LOG="debug"), capture_output=True, text=True, check=True).stderr
            self.assertIn(words, logged)
            self.assertEqual(bool(words), bool(logged), logged)
        with self.assertRaisesRegex(sg.InvalidArgument, "level is 'loud', which is none of"):
            sg.set_log("loud")

    def test_statistics(self):
        job = self.context.gemm_async(np.ones((100, 100)), np.ones((100, 100)))
        statistics = job.statistics
        self.assertEqual(statistics.flops, 2e6)
        self.assertGreaterEqual(statistics.end_ns, statistics.start_ns)

    def test_enums_are_the_headers(self):
        self.assertEqual(sg.Compute.TF32, _raw.SG_COMPUTE_TF32)
        self.assertEqual(sg.__version__, _raw.sg_version_string())
        for kind, prefix in (
            (sg.Status, "SG_STATUS_"),
            (sg.Transpose, "SG_TRANSPOSE_"),
            (sg.Split, "SG_SPLIT_"),
            (sg.Compute, "SG_COMPUTE_"),
        ):
            self.assertEqual(len(kind), sum(name.startswith(prefix) for name in vars(_raw)))

    def test_events_and_streams(self):
        stream, event, start = self.context.stream(priority=1), self.context.event(), self.context.event()
        self.assertEqual(stream.priority, 1)
        self.assertEqual(stream.compute_units, 0)
        limited = self.context.stream(compute_units=1)
        self.assertEqual((limited.compute_units, limited.is_partition), (1, False))
        self.assertTrue(event.done() and event.wait(0))
        start.record(stream)
        gate = self.gate()
        job = self.held_job(gate, stream=stream)
        event.record(stream)
        other = self.context.stream()
        other.wait_event(event)
        behind = self.context.gemm_async(np.ones((2, 2)), np.ones((2, 2)), stream=other)
        self.assertFalse(event.wait(0) or stream.synchronize(0) or behind.done())
        gate.open()
        behind.result(300)
        # A waiter of one job may see its completion before another waiter is notified of its own.
        self.assertTrue(job.wait(300) and event.wait(300) and stream.synchronize(300) and stream.done())
        self.assertGreater(event.seconds_since(start), 0)
        self.context.synchronize()


class Places(DeviceTest):
    """A placeholder keeps its memory space in derived matrices."""

    def bytes_in(self, a, b, **how):
        with self.context.plan(a, b, **how) as plan:
            return plan.prediction.bytes_in

    def test_transposes_and_lists(self):
        if self.context.device.unified_memory:
            self.skipTest("there is one memory here")
        n = 512
        a = sg.Matrix.placeholder((n, n), place="pinned")
        wanted = self.bytes_in(a, a)
        self.assertGreaterEqual(wanted, n * n * 4)
        for x, y in ((a.T, a.T), (a.T, a), (a.T.T, a.T), ([a.T], [a.T])):
            self.assertEqual(self.bytes_in(x, y), wanted)
        on_device = sg.Matrix.placeholder((n, n), place="device").T
        self.assertEqual(self.bytes_in(on_device, on_device, c=on_device.T), 0)
        self.assertEqual(a.T._memory, sg.MemoryKind.PINNED)


if __name__ == "__main__":
    unittest.main()
