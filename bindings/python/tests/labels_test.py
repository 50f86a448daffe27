# SPDX-License-Identifier: Apache-2.0
"""label=: a name for a job, read back, and part of the message of its failure."""

import time
import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest


class Labels(DeviceTest):
    def test_every_submission_takes_a_label(self):
        one = np.ones((1, 1))
        with self.context.plan(one, one) as plan:
            graph = self.context.graph()
            graph.gemm(one, one, label="a part")
            graph.copy(one.copy(), one, label="another")
            named = {"label": "q · k"}
            jobs = [
                self.context.gemm_async(one, one, **named),
                self.context.matmul_async(one, one, **named),
                self.context.gemm_grouped_async([(one, one)], **named),
                self.context.copy_async(one.copy(), one, **named),
                plan.run_async(one, one, **named),
                graph.run_async(**named),
                sg.matmul_async(one, one, **named),
            ]
            self.assertEqual(["q · k"] * len(jobs), [job.label for job in jobs])
            for job in jobs:
                job.result(300)
                self.assertEqual("q · k", job.label)
            self.context.gemm(one, one, **named)
            self.context.matmul(one, one, **named)
            self.context.gemm_grouped([(one, one)], **named)
            self.context.copy(one.copy(), one, **named)
            plan.run(one, one, **named)
            graph.run(**named)
            sg.matmul(one, one, **named)
        self.assertEqual("", self.context.gemm_async(one, one).label)
        self.assertEqual("", self.context.gemm_async(one, one, label=None).label)
        self.assertEqual("", self.context.matmul_async(np.ones((0, 1, 1)), np.ones((0, 1, 1)), label="nothing").label)

    def test_long_labels_are_cut_between_characters(self):
        one = np.ones((1, 1))
        self.assertEqual("a" * 63, self.context.gemm_async(one, one, label="a" * 70).label)
        self.assertEqual("a" * 62, self.context.gemm_async(one, one, label="a" * 62 + "€").label)

    def test_a_label_begins_the_message_of_a_failure(self):
        gate, one = self.gate(), np.ones((1, 1))
        held = self.held_job(gate)
        job = self.context.gemm_async(one, one, after=[held], timeout=0.001, label="late")
        time.sleep(0.05)
        gate.open()
        failure = job.exception(300)
        self.assertIsInstance(failure, sg.DeadlineExceeded)
        self.assertIn('job "late": the deadline passed', str(failure))

    def test_invalid_values_are_refused(self):
        one = np.ones((1, 1))
        with self.assertRaisesRegex(TypeError, "label is 3"):
            self.context.gemm(one, one, label=3)
        with self.assertRaisesRegex(sg.InvalidArgument, "label is"):
            self.context.gemm(one, one, label="a\0b")
        with self.assertRaises(UnicodeEncodeError):
            self.context.gemm(one, one, label="\ud800")

    def test_every_text_is_refused_that_holds_a_nul(self):
        pipeline = self.context.pipeline((2, 2), "f64")
        with sg.Trace() as trace:
            uses = {
                "device": lambda: sg.Context("cpu\0z"),
                "path": lambda: trace.write("x\0y.json"),
                "name": lambda: pipeline.stage((2, 2), name="a\0b"),
                "name ": lambda: pipeline.stage((2, 2), name="a\0b", function=lambda stage, batch: None),
                "label": lambda: self.context.copy(np.empty(1), np.ones(1), label="a\0b"),
            }
            for argument, use in uses.items():
                with self.subTest(argument), self.assertRaisesRegex(
                    sg.InvalidArgument, rf"^{argument.strip()} is '.*\\x00.*', which holds a NUL"
                ):
                    use()
        for argument, use in {"device": lambda: sg.Context(b"cpu"), "name": lambda: pipeline.stage((2, 2), name=3)}.items():
            with self.assertRaisesRegex(TypeError, f"{argument} is"):
                use()


if __name__ == "__main__":
    unittest.main()
