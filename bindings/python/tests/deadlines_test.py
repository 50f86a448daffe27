# SPDX-License-Identifier: Apache-2.0
"""timeout=: a job that has not completed in time is dropped or stopped, and fails as DeadlineExceeded."""

import asyncio
import time
import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest


class Deadlines(DeviceTest):
    def test_jobs_that_have_not_started_are_dropped(self):
        gate, stream, one = self.gate(), self.context.stream(), np.ones((1, 1))
        self.held_job(gate, stream=stream)
        with self.context.plan(one, one) as plan:
            graph = self.context.graph()
            graph.gemm(one, one)
            late = {"stream": stream, "timeout": 0.01}
            jobs = [
                self.context.gemm_async(one, one, **late),
                self.context.matmul_async(one, one, **late),
                self.context.gemm_grouped_async([(one, one)], **late),
                self.context.copy_async(one.copy(), one, **late),
                plan.run_async(one, one, **late),
                graph.run_async(**late),
            ]
            time.sleep(0.05)
            gate.open()
            for job in jobs:
                self.assertIsInstance(job.exception(300), sg.DeadlineExceeded)
                self.assertIsInstance(job.exception(), TimeoutError)

    def test_a_blocking_call(self):
        gate, stream, one = self.gate(), self.context.stream(), np.ones((1, 1))
        self.held_job(gate, stream=stream)
        asked = self.context.gemm_async(one, one, stream=stream, timeout=0.01)
        asked.add_done_callback(lambda _: None)
        time.sleep(0.05)
        gate.open()
        with self.assertRaises(sg.DeadlineExceeded):
            asked.result()
        a = np.ones((3000, 3000))
        if self.context.device.name == "cpu":
            with self.assertRaises(sg.DeadlineExceeded):
                while True:
                    self.context.gemm(a, a, timeout=0.05)
        np.testing.assert_array_equal(self.context.matmul(one, one, timeout=300), one)
        np.testing.assert_array_equal(sg.matmul(one, one, timeout=float("inf")), one)

    def test_asyncio(self):
        async def main():
            gate, stream, one = self.gate(), self.context.stream(), np.ones((1, 1))
            self.held_job(gate, stream=stream)
            job = self.context.gemm_async(one, one, stream=stream, timeout=0.01)
            asyncio.get_running_loop().call_later(0.05, gate.open)
            with self.assertRaises(sg.DeadlineExceeded):
                await job

        asyncio.run(main())

    def test_invalid_values_are_refused(self):
        one = np.ones((1, 1))
        for timeout, kind in ((-1, sg.InvalidArgument), (float("nan"), sg.InvalidArgument), ("x", TypeError), ([], TypeError)):
            with self.assertRaisesRegex(kind, "timeout is"):
                self.context.gemm(one, one, timeout=timeout)


if __name__ == "__main__":
    unittest.main()
