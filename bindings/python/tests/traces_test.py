# SPDX-License-Identifier: Apache-2.0
"""Trace: a recording as a context manager, its figures, its files, and what SG_TRACE writes."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest

sys.path += filter(None, [os.environ.get("SG_TEST_PACKAGES")])
try:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as PerfettoTrace
except ImportError:
    PerfettoTrace = None


def slices_of(document):
    return [each for each in document["traceEvents"] if each["ph"] == "X"]


class Traces(DeviceTest):
    def record(self, **options):
        """A trace of two labelled jobs on two streams."""
        a = np.ones((96, 96), np.float32)
        with sg.Trace(**options) as trace:
            streams = [self.context.stream(), self.context.stream()]
            jobs = [self.context.gemm_async(a, a, stream=s, label=f"job {i}") for i, s in enumerate(streams)]
            for job in jobs:
                np.testing.assert_array_equal(job.result(300), a @ a)
        self.addCleanup(trace.close)
        return trace, jobs, streams

    def test_figures(self):
        trace, jobs, streams = self.record()
        figures = trace.metrics(self.context)
        self.assertEqual(2, figures.jobs)
        self.assertEqual(0, figures.dropped_events)
        self.assertGreater(figures.compute_seconds, 0)
        self.assertLessEqual(figures.busy_seconds, figures.span_seconds)
        self.assertGreaterEqual(trace.overlap(*jobs), 0)
        self.assertAlmostEqual(trace.overlap(*jobs), trace.overlap(*streams))
        self.assertGreater(trace.overlap(jobs[0], jobs[0]), 0)
        of_stream = trace.metrics(streams[0])
        self.assertEqual(1, of_stream.jobs)
        self.assertLess(of_stream.commands, figures.commands)
        self.assertAlmostEqual(trace.overlap(jobs[0], jobs[0]), of_stream.busy_seconds)
        with self.assertRaisesRegex(TypeError, "two Jobs, or two Streams"):
            trace.overlap(jobs[0], streams[0])

    def test_trace_id(self):
        """An option of sg_submit that no file of the wrappers names."""
        a = np.ones((96, 96), np.float32)
        graph = self.context.graph()
        graph.gemm(a, a)
        requests = [2**64 - 1, 72]
        with sg.Trace() as trace:
            jobs = [self.context.gemm_async(a, a, trace_id=requests[0]), graph.run_async(trace_id=requests[1])]
            for job in jobs:
                job.result(300)
        self.addCleanup(trace.close)
        self.assertEqual(requests, [job.statistics.trace_id for job in jobs])
        commands = [each for each in slices_of(json.loads(trace.export("json"))) if each["name"].startswith(("gemm", "graph"))]
        self.assertEqual(set(map(str, requests)), {each["args"].get("trace_id") for each in commands})
        with self.assertRaisesRegex(sg.InvalidArgument, "trace_id is -1"):
            self.context.gemm(a, a, trace_id=-1)

    def test_gaps_have_causes(self):
        a = np.ones((96, 96), np.float32)
        with sg.Trace() as trace:
            for _ in range(2):
                self.context.gemm_async(a, a).result(300)
                time.sleep(0.01)  # Nothing to do, for long enough that no coarse clock hides it.
        self.addCleanup(trace.close)
        (context,) = json.loads(trace.export("json"))["otherData"]["contexts"]
        gaps, idle = context["longest_gaps"], context["idle_seconds"]
        self.assertTrue(gaps)
        self.assertEqual(sorted(gaps, key=lambda gap: -gap["seconds"]), gaps)
        for cause, seconds in idle.items():
            of_cause = sum(gap["seconds"] for gap in gaps if gap["cause"] == cause)
            self.assertLessEqual(of_cause, seconds + 1e-9)
            if len(gaps) < 20:
                self.assertAlmostEqual(seconds, of_cause)
        self.assertAlmostEqual(context["span_seconds"] - context["compute_seconds"], sum(idle.values()))

    def test_counters(self):
        before = self.context.metrics
        a = np.ones((64, 64))
        job = self.context.gemm_async(a, a)
        job.result(300)
        self.assertEqual(1.0, job.progress)
        self.context.synchronize()
        after = self.context.metrics
        self.assertEqual(1, after.jobs_submitted - before.jobs_submitted)
        self.assertEqual(after.jobs_submitted, after.jobs_completed)
        self.assertGreater(after.compute_seconds, before.compute_seconds)
        text = sg.metrics_text()
        self.assertTrue(text.endswith("# EOF\n"))
        self.assertIn(f'device="{self.context.device.name}"}} {after.jobs_submitted}', text)
        pinned = self.context.pinned_empty((4, 4))
        unified = self.context.device.unified_memory
        for array, kind in ((pinned, "PINNED"), (pinned[::-1, 1:], "PINNED"), (a, "PAGEABLE"),
                            (self.context.buffer(64).matrix((4, 4)), "DEVICE")):  # fmt: skip
            self.assertEqual(sg.MemoryKind.DEVICE if unified else sg.MemoryKind[kind], self.context.memory_kind(array))
        with self.context.trace() as trace:
            self.context.gemm_async(a, a).result(300)
        self.assertEqual(1, trace.metrics(self.context).jobs)
        trace.close()

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "run.json"
            trace, _, _ = self.record(path=path)
            document = json.loads(path.read_text())
            labels = {each["args"].get("label") for each in slices_of(document)}
            self.assertLessEqual({"job 0", "job 1"}, labels)
            trace.write(path.with_suffix(".html"))
            self.assertIn("job 1", path.with_suffix(".html").read_text())
            trace.write(path.with_suffix(".other"), "text")
            self.assertEqual(trace.text, path.with_suffix(".other").read_text())
            with self.assertRaisesRegex(sg.InvalidArgument, "path is"):
                trace.write(folder + "/none/run.json")
            with self.assertRaisesRegex(sg.InvalidArgument, "format is 'pdf'"):
                trace.write(path, "pdf")
        self.assertTrue(trace._repr_html_().startswith("<svg"))
        self.assertIn(DEVICE.partition(":")[2] or DEVICE, str(trace))

    def virtual_seconds(self, run):
        """Of one run; and the advice of its trace, by the first word of what it says."""
        with sg.Trace() as trace:
            job = run()
            job.result(600)
        self.addCleanup(trace.close)
        statistics = job.statistics
        advice = json.loads(trace.export("json"))["otherData"]["advice"]
        return (statistics.end_ns - statistics.start_ns) * 1e-9, {each["title"]: each["gain_seconds"] for each in advice}

    @unittest.skipUnless(DEVICE.startswith("sim"), "gains are those of a simulated device")
    def test_advice_gains_what_it_promises(self):
        n = 4096
        context = sg.Context(DEVICE + "?timing-only")
        self.addCleanup(context.close)
        a, c = (context.pinned_empty((n, n)) for _ in range(2))
        a[:] = 1
        exact, advice = self.virtual_seconds(lambda: context.gemm_async(a, a, c))
        applied = {
            "allow tf32": lambda: context.gemm_async(a, a, c, compute="tf32"),
            "allow 3xtf32": lambda: context.gemm_async(a, a, c, compute="3xtf32"),
        }
        device = [context.buffer(n * n * 4) for _ in range(2)]
        resident = [each.matrix((n, n), "f32") for each in device]
        context.copy(resident[0], a)
        applied["keep the operands"] = lambda: context.gemm_async(resident[0], resident[0], resident[1])
        for title, run in applied.items():
            promised = [gain for name, gain in advice.items() if name.startswith(title)]
            self.assertEqual(1, len(promised), (title, advice))
            gained = exact - self.virtual_seconds(run)[0]
            self.assertAlmostEqual(1, gained / promised[0], delta=0.2, msg=title)
        forced, advice = self.virtual_seconds(
            lambda: context.gemm_async(a, a, c, options=sg.PlanOptions(tile_m=n, tile_n=n, tile_k=n)))
        promised = [gain for name, gain in advice.items() if name.startswith("leave the split")]
        self.assertEqual(1, len(promised), advice)
        self.assertAlmostEqual(1, (forced - exact) / promised[0], delta=0.2)

    def advice_of(self, run):
        """The figures of a context that ran so, and the advice by title; GEMMs of `run(context)` skip the arithmetic."""
        with sg.Context(DEVICE + "?timing-only") as context:
            work = run(context)
            with sg.Trace() as trace:
                work()
                context.synchronize()
            figures = trace.metrics(context)
            advice = json.loads(trace.export("json"))["otherData"]["advice"]
            trace.close()
        return figures, {each["title"]: each["gain_seconds"] for each in advice}

    def check_gain(self, title, now, better):
        """What `now` would gain by the advice that begins with `title` is what `better` gains."""
        before, advice = self.advice_of(now)
        promised = [gain for name, gain in advice.items() if name.startswith(title)]
        self.assertEqual(1, len(promised), advice)
        after, left = self.advice_of(better)
        self.assertFalse([name for name in left if name.startswith(title)], "the advice was followed")
        gained = before.span_seconds - after.span_seconds
        self.assertAlmostEqual(1, gained / promised[0], delta=0.2, msg=(title, gained, promised))

    @unittest.skipUnless(DEVICE.startswith("sim"), "gains are those of a simulated device")
    def test_advice_on_sizes(self):
        def padded(gap):
            def prepare(context):
                a = context.pinned_empty((32768, 256 + gap), "f32")
                c = context.pinned_empty((256, 256), "f32")
                a[:] = 1
                return lambda: context.gemm_async(a[:, :256], a[:, :256], c, op_a="T")
            return prepare

        self.check_gain("store the operands without gaps", padded(128), padded(0))

        def sized(n, streams=1, jobs=1):
            def prepare(context):
                matrices = [context.buffer(2 * n * n).matrix((n, n), "bf16") for _ in range(2 + jobs)]
                on = [context.stream() for _ in range(streams)]

                def work():
                    for i in range(jobs):
                        context.gemm_async(*matrices[:2], matrices[2 + i], stream=on[i % streams])
                return work
            return prepare

        self.check_gain("choose sizes", sized(4100), sized(4096))
        many, advice = self.advice_of(sized(4096, streams=4, jobs=8))
        self.assertEqual([0], [gain for name, gain in advice.items() if name.startswith("use fewer streams")], advice)
        one, advice = self.advice_of(sized(4096, streams=1, jobs=8))
        self.assertFalse([name for name in advice if name.startswith("use fewer streams")])
        self.assertAlmostEqual(1, one.span_seconds / many.span_seconds, delta=0.05)

    def test_one_at_a_time(self):
        with sg.Trace() as trace:
            with self.assertRaises(sg.Busy):
                sg.Trace()
        trace.close()
        with self.assertRaises(sg.InvalidHandle):
            trace.stop()
        sg.Trace().close()

    @unittest.skipUnless(PerfettoTrace, "the package perfetto is not installed")
    def test_protobuf_is_what_perfetto_reads(self):
        trace, _, _ = self.record()
        read = PerfettoTrace.FromString(trace.export("perfetto"))
        slices = slices_of(json.loads(trace.export("json")))
        begun, open_slices, names, tracks = 0, {}, set(), set()
        for packet in read.packet:
            if packet.HasField("track_descriptor"):
                tracks.add(packet.track_descriptor.uuid)
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            self.assertIn(event.track_uuid, tracks)
            if event.type == event.TYPE_SLICE_BEGIN:
                begun += 1
                names.add(event.name)
                open_slices[event.track_uuid] = open_slices.get(event.track_uuid, 0) + 1
            elif event.type == event.TYPE_SLICE_END:
                open_slices[event.track_uuid] -= 1
                self.assertGreaterEqual(open_slices[event.track_uuid], 0)
        self.assertEqual(len(slices), begun)
        self.assertEqual({each["name"] for each in slices}, names)
        self.assertFalse(any(open_slices.values()))

    def run_program(self, code, trace_file, status=0):
        done = subprocess.run(
            [sys.executable, "-c", "import numpy as np, streamgemm as sg\n" + code.replace("DEVICE", repr(DEVICE))],
            env={**os.environ, "SG_TRACE": str(trace_file)}, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stderr

    def test_variable_records_any_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "run.json"
            work = "c = sg.Context(DEVICE)\na = np.ones((64, 64))\nfor _ in range(3): c.gemm(a, a, label='by hand')\n"
            self.assertEqual("", self.run_program(work, path))
            slices = slices_of(json.loads(path.read_text()))
            self.assertEqual(3, sum(each["name"] == "submit" for each in slices))
            path.unlink()
            self.assertEqual("", self.run_program(work + "c.close()", path))
            self.assertTrue(path.exists(), "closed contexts are in the trace too")
            self.run_program(work, pathlib.Path(folder) / "of-%p.txt")
            (own,) = pathlib.Path(folder).glob("of-*.txt")
            self.assertRegex(own.name, "^of-[0-9]+.txt$")
            # In a fork's child nothing is recorded, and the parent's file is left alone.
            path.unlink()
            self.run_program(work + "import os\npid = os.fork()\nif pid == 0: raise SystemExit(0)\nos.waitpid(pid, 0)", path)
            self.assertEqual(3, sum(each["name"] == "submit" for each in slices_of(json.loads(path.read_text()))))

    def test_variable_that_names_no_file(self):
        message = self.run_program("sg.Context(DEVICE).close()", "/tmp/trace")
        self.assertIn('SG_TRACE is "/tmp/trace"', message)
        message = self.run_program("sg.Context(DEVICE).close()", "/nowhere/at/all.json")
        self.assertIn('SG_TRACE is "/nowhere/at/all.json"', message)


if __name__ == "__main__":
    unittest.main()
