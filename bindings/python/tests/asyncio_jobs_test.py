# SPDX-License-Identifier: Apache-2.0
"""Jobs under asyncio: every primitive works on a Job or raises at once, and cancellation reaches it."""

import asyncio
import sys
import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest, integers


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
            gate = self.gate()
            self.held_job(gate, stream=stream)
            job = self.submit(stream=stream)
            job.cancel()
            gate.open()
            with self.assertRaises(sg.Cancelled):
                await job

        asyncio.run(main())

    def test_cancelling_the_task_cancels_the_job(self):
        async def main():
            stream = self.context.stream()
            gate = self.gate()
            before = self.held_job(gate, stream=stream)
            job = self.submit(stream=stream)
            task = asyncio.ensure_future(self.awaited(job))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            gate.open()
            await before
            return job

        self.assertIsInstance(asyncio.run(main()).exception(300), sg.Cancelled)

    def test_timeout(self):
        async def main():
            stream = self.context.stream()
            gate = self.gate()
            self.held_job(gate, stream=stream)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.awaited(self.submit(stream=stream)), 0.001)
            gate.open()

        asyncio.run(main())

    def test_every_primitive_of_asyncio(self):
        wanted = self.a @ self.b

        async def main():
            gate = self.gate()
            held, quick = self.held_job(gate), self.submit()
            given = (lambda jobs: {asyncio.ensure_future(job) for job in jobs}) if sys.version_info < (3, 11) else set  # Python 3.10 wraps awaitables into tasks
            both = given([held, quick])
            done, pending = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            self.assertEqual((len(done), len(pending), done | pending), (1, 1, both))
            done, pending = await asyncio.wait(pending, timeout=0.01)
            self.assertEqual((len(done), len(pending)), (0, 1))
            self.assertEqual(held._done_callbacks, [])  # asyncio removed its callbacks
            asyncio.get_running_loop().call_later(0.01, gate.open)
            done, pending = await asyncio.wait(both)
            self.assertEqual((done, pending), (both, set()))
            jobs = given([self.submit() for _ in range(20)])
            done, pending = await asyncio.wait(jobs, return_when=asyncio.FIRST_EXCEPTION)
            self.assertEqual((done, pending), (jobs, set()))
            done, _ = await asyncio.wait([self.submit(), asyncio.ensure_future(asyncio.sleep(0))])
            self.assertEqual(len(done), 2)
            results = [await next_one for next_one in asyncio.as_completed([self.submit() for _ in range(5)])]
            results += await asyncio.gather(self.submit(), self.submit())
            results += [await asyncio.shield(self.submit()), await asyncio.wait_for(self.submit(), 300)]
            results += [await asyncio.ensure_future(self.submit()), await asyncio.wrap_future(self.submit())]
            results.append(await asyncio.get_running_loop().run_in_executor(None, self.submit().result))
            if hasattr(asyncio, "timeout"):
                async with asyncio.timeout(300):
                    results.append(await self.submit())
            for result in results:
                np.testing.assert_array_equal(result, wanted)
            for refused in (asyncio.create_task, asyncio.get_running_loop().create_task):
                with self.assertRaises(TypeError):
                    refused(self.submit())
            with self.assertRaises(TypeError):
                asyncio.run_coroutine_threadsafe(self.submit(), asyncio.get_running_loop())

        asyncio.run(asyncio.wait_for(main(), 300))
        with self.assertRaises((TypeError, ValueError)):
            asyncio.run(self.submit())

    def test_waiting_for_failures(self):
        async def main():
            stream, gate = self.context.stream(), self.gate()
            held = self.held_job(gate, stream=stream)
            cancelled = self.submit(stream=stream)
            after = self.submit(after=[cancelled])
            cancelled.cancel()
            asyncio.get_running_loop().call_later(0.01, gate.open)
            done, _ = await asyncio.wait([held, cancelled, after])
            self.assertEqual(len(done), 3)
            self.assertIsInstance(after.exception(), sg.DependencyFailed)
            found = await asyncio.gather(held, cancelled, after, return_exceptions=True)
            self.assertEqual([type(x) for x in found[1:]], [sg.Cancelled, sg.DependencyFailed])

        asyncio.run(asyncio.wait_for(main(), 300))

    def test_a_cancelled_wait_reaches_the_job(self):
        async def main(wait):
            stream, gate = self.context.stream(), self.gate()
            before = self.held_job(gate, stream=stream)
            job = self.submit(stream=stream)
            with self.assertRaises((asyncio.TimeoutError, asyncio.CancelledError)):
                await wait(job)
            gate.open()
            await before
            return job

        async def cancelled_gather(job):
            gathered = asyncio.gather(job)
            asyncio.get_running_loop().call_later(0.01, gathered.cancel)
            await gathered

        waits = [lambda job: asyncio.wait_for(job, 0.01), cancelled_gather]
        if hasattr(asyncio, "timeout"):

            async def timeout(job):
                async with asyncio.timeout(0.01):
                    await job

            waits.append(timeout)
        for wait in waits:
            self.assertIsInstance(asyncio.run(main(wait)).exception(300), sg.Cancelled)

    def test_a_closed_loop(self):
        async def main():
            asyncio.ensure_future(self.awaited(self.long_job()))
            await asyncio.sleep(0)

        asyncio.run(main())  # its task is cancelled with the loop
        self.submit().result(300)


if __name__ == "__main__":
    unittest.main()
