# SPDX-License-Identifier: Apache-2.0
"""Failures of jobs: they poison the memory until the application has asked for the outcome, however far the package's thread is;
the whole text of a failure."""

import asyncio
import concurrent.futures as cf
import os
import unittest

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest, eventually

LONG = "page " + "7" * 350 + " is missing €"


def fails(stream, y):
    raise LookupError(LONG)


@unittest.skipIf(DEVICE.startswith("cuda"), "the functions compute on the host")
class Observation(DeviceTest):
    def setUp(self):
        super().setUp()
        self.y = self.context.buffer(32).matrix((4,), "f64")

    def failed(self):
        """A failed job that the package's thread has seen and the application has not asked for."""
        job = self.context.custom_async(fails, writes=[self.y])
        self.assertTrue(eventually(lambda: job._status < 0))
        return job

    def read(self):
        return self.context.copy(np.empty(4), self.y)

    def test_readers_fail_until_the_application_asks(self):
        async def awaited(job):
            await job

        async def waited_for(job):
            await asyncio.wait([future := asyncio.wrap_future(job)])
            future.exception()

        ways = {
            "result": lambda job: job.result(),
            "exception": lambda job: job.exception(),
            "wait": lambda job: job.wait(),
            "done": lambda job: job.done(),
            "cancelled": lambda job: job.cancelled(),
            "callback": lambda job: job.add_done_callback(lambda job: None),
            "futures.wait": lambda job: cf.wait([job]),
            "as_completed": lambda job: list(cf.as_completed([job])),
            "await": lambda job: asyncio.run(awaited(job)),
            "asyncio.wait": lambda job: asyncio.run(waited_for(job)),
        }
        for name, ask in ways.items():
            with self.subTest(name):
                job = self.failed()
                for _ in range(2):
                    with self.assertRaisesRegex(sg.DependencyFailed, "LookupError"):
                        self.read()
                    job = self.failed()
                try:
                    ask(job)
                except sg.BackendFailure:
                    pass
                self.read()

    def test_readers_that_are_submitted_at_once_fail(self):
        for _ in range(300 if os.environ.get("SG_SOAK") == "1" else 30):
            self.context.custom_async(fails, writes=[self.y])
            with self.assertRaises(sg.DependencyFailed):
                self.read()
            self.context.copy(self.y, np.zeros(4))

    def test_a_callback_that_gets_the_job_observes_it(self):
        gate = self.gate()
        held, seen = self.held_job(gate), []
        job = self.context.custom_async(fails, writes=[self.y], after=[held])
        job.add_done_callback(seen.append)
        gate.open()
        self.assertTrue(eventually(lambda: seen))
        self.read()

    def test_a_dropped_job_is_not_observed(self):
        self.context.custom_async(fails, writes=[self.y])
        self.context.synchronize()
        with self.assertRaises(sg.DependencyFailed):
            self.read()

    def test_the_whole_text(self):
        for job in (self.failed(), self.context.custom_async(fails, writes=[self.y])):
            with self.assertRaises(sg.BackendFailure) as raised:
                job.result()
            self.assertIn("LookupError: " + LONG, str(raised.exception))
        with self.assertRaisesRegex(sg.DependencyFailed, "is a Job that failed: .*" + LONG):
            self.context.copy(np.empty(4), self.failed())

    def test_an_exception_without_a_text_keeps_its_type(self):
        class Mute(Exception):
            def __str__(self):
                raise ValueError

        def mute(stream, y):
            raise Mute

        with self.assertRaisesRegex(sg.BackendFailure, "Mute"):
            self.context.custom(mute, writes=[self.y])


if __name__ == "__main__":
    unittest.main()
