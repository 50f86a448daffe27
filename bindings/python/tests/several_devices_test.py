# SPDX-License-Identifier: Apache-2.0
"""A context of several devices: where streams, memory and GEMMs are."""

import unittest

import numpy as np
import streamgemm as sg


class SeveralDevices(unittest.TestCase):
    def setUp(self):
        self.context = sg.Context("sim:h200x2")
        self.addCleanup(self.context.close)
        random = np.random.default_rng(7)
        self.a, self.b = (random.integers(-3, 4, (48, 48)).astype(np.float32) for _ in range(2))

    def on_device(self, device, given=None):
        """A matrix in the memory of a device, with the values of an array."""
        buffer = self.context.buffer(self.a.nbytes, device=device)
        self.addCleanup(buffer.close)
        matrix = buffer.matrix(self.a.shape, "f32")
        if given is not None:
            self.context.copy(matrix, given)
        return matrix

    def fetched(self, matrix):
        host = np.empty_like(self.a)
        self.context.copy(host, matrix)
        return host

    def test_each_is_described(self):
        self.assertEqual(["sim:h200x2/0", "sim:h200x2/1"], [each.name for each in self.context.devices])
        self.assertEqual(self.context.device.name, self.context.devices[0].name)
        with sg.Context("cpu") as one:
            self.assertEqual(["cpu"], [each.name for each in one.devices])

    def test_a_gemm_runs_where_its_operands_are(self):
        for device in (0, 1):
            a, b, c = (self.on_device(device, given) for given in (self.a, self.b, None))
            job = self.context.gemm_async(a, b, c)
            job.result()
            self.assertEqual(1 << device, job.statistics.devices)
            np.testing.assert_array_equal(self.a @ self.b, self.fetched(c))

    def test_a_stream_keeps_its_work_on_its_device(self):
        c = np.empty_like(self.a)
        for device in (0, 1):
            job = self.context.gemm_async(self.a, self.b, c, stream=self.context.stream(device=device))
            job.result()
            self.assertEqual(1 << device, job.statistics.devices)
            np.testing.assert_array_equal(self.a @ self.b, c)

    def test_a_plan_tells_the_memory_on_each(self):
        big = np.zeros((256, 256), np.float32)
        plan = self.context.plan(big, big, options=sg.PlanOptions(device_count=2))
        each = [plan.device_size(device) for device in (0, 1)]
        self.assertEqual(plan.prediction.device_bytes, max(each))
        self.assertGreater(min(each), 0)
        with self.assertRaisesRegex(sg.InvalidArgument, "device is 2"):
            plan.device_size(2)

    def test_memory_of_both_is_copied(self):
        c = self.on_device(1)
        self.context.gemm(self.on_device(0, self.a), self.on_device(1, self.b), c)
        np.testing.assert_array_equal(self.a @ self.b, self.fetched(c))

    def test_sums_are_on_each(self):
        both = [self.on_device(0, self.a), self.on_device(1, self.b)]
        job = self.context.all_reduce_async(both)
        self.assertEqual(both, job.result())
        self.assertEqual(3, job.statistics.devices)
        for each in both:
            np.testing.assert_array_equal(self.a + self.b, self.fetched(each))
        graph = self.context.graph()
        graph.all_reduce(both)
        graph.run()
        for each in both:
            np.testing.assert_array_equal(2 * (self.a + self.b), self.fetched(each))
        self.assertIs(both[1], self.context.all_reduce(both[1:])[0])
        with self.assertRaisesRegex(sg.InvalidArgument, r"operands\[1\].*pageable memory"):
            self.context.all_reduce([both[0], self.a])
        with self.assertRaisesRegex(sg.InvalidArgument, r"operands\[0\].*operands\[1\].*overlap"):
            self.context.all_reduce([both[0], both[0]])
        with self.assertRaisesRegex(sg.InvalidArgument, "there are 0 operands"):
            self.context.all_reduce([])
        with self.assertRaisesRegex(sg.InvalidArgument, r"operands\[1\] has 2303 elements of f32"):
            self.context.all_reduce([both[0], self.context.buffer(4 * 2303, device=1).matrix((2303,), "f32")])
        with self.assertRaisesRegex(sg.InvalidArgument, r"operands\[0\] has gaps"):
            self.context.all_reduce([self.a[:, :5], both[1]])

    def test_a_pipeline_has_stages_on_each(self):
        pipeline = self.context.pipeline(self.a.shape, "f32")
        self.addCleanup(pipeline.close)
        for device in (0, 1):
            stage = pipeline.stage(self.a.shape, weights=[self.b], place="streamed", device=device)
            stage.gemm(stage.input, stage.weights[0], stage.output)
        pipeline.stage(self.a.shape, device=0, function=lambda stage, batch: stage.copy(stage.output, stage.input))
        self.assertIn("device 0: 2 stages", pipeline.describe())
        self.assertIn("device 1: 1 stage,", pipeline.describe())
        np.testing.assert_array_equal(self.a @ self.b @ self.b, pipeline.push(self.a))

    def test_other_devices_are_refused_by_name(self):
        stage = self.context.pipeline(self.a.shape, "f32").stage
        for device in (2, -1, 1 << 40):
            for make in (lambda: self.context.stream(device=device), lambda: self.context.buffer(64, device=device),
                         lambda: stage((1, 1), device=device)):
                with self.assertRaisesRegex(sg.InvalidArgument, f"device is {device}"):
                    make()
        with self.assertRaisesRegex(TypeError, "device is 'cuda:1', which is no integer"):
            self.context.buffer(64, device="cuda:1")


if __name__ == "__main__":
    unittest.main()
