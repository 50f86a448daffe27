# SPDX-License-Identifier: Apache-2.0
"""Messages use Python's argument names, wherever the call is refused."""

import subprocess
import sys
import unittest

import numpy as np
import streamgemm as sg
from numpy.lib.stride_tricks import as_strided
from support import DeviceTest


class Messages(DeviceTest):
    def bad_calls(self):
        x, y = np.ones((4, 4)), np.ones((4, 5))
        f, i = np.ones((4, 4), np.float32), np.ones((4, 4), np.int8)
        z, stack = np.ones((4, 4), complex), np.ones((3, 4, 4))
        raw = np.zeros(129, np.uint8)[1:].view(np.float64).reshape(4, 4)
        hole = sg.Matrix.at(0, (4, 4), "f64")
        c, g, graph = self.context, self.context.gemm, self.context.graph()
        graph.gemm(x, x)
        graph.copy(x.copy(), x)
        plan = c.plan(x, x, bias=np.ones(4))
        event, stream = c.event(), c.stream()
        other = sg.Context("cpu")
        self.addCleanup(other.close)
        options = sg.PlanOptions
        yield from (
            lambda: g(x, y.T),
            lambda: g(x, x, y),
            lambda: g(x, f),
            lambda: g(x, x, f),
            lambda: g(i, i, alpha=0.5),
            lambda: g(i, i, np.ones((4, 4), np.int32), beta=1e300),
            lambda: g(i, i, activation="gelu"),
            lambda: g(z, z, activation="relu"),
            lambda: g(x, x, compute="tf32"),
            lambda: g(x, x, compute="f8"),
            lambda: g(x, x, compute=77),
            lambda: g(x, x, activation=77),
            lambda: g(x, x, op_a=77),
            lambda: g(x, x, op_b=-1),
            lambda: g(x, x, priority=9),
            lambda: g(x, x, x),
            lambda: g(x, x.copy(), x),
            lambda: g(raw, x),
            lambda: g(x, x, raw),
            lambda: g([x, raw], x),
            lambda: g(stack, raw),
            lambda: g(hole, x),
            lambda: g(x, hole),
            lambda: g(x, x, hole),
            lambda: g([x, hole], x),
            lambda: g(x, x, bias=hole.T),
            lambda: g(z, np.asfortranarray(z), op_b="C"),
            lambda: g(stack, x, as_strided(stack.copy(), (3, 4, 4), (64, 32, 8))),
            lambda: g(stack, x, as_strided(stack.copy(), (3, 4, 4), (0, 32, 8))),
            lambda: g(stack, x, [x.copy()] * 3),
            lambda: g([x, x], x, [stack[0], stack[0, 1:]]),
            lambda: g(x[:, 0], stack, stack[:, 0, :3]),
            lambda: g(x, x, x, bias=x[0]),
            lambda: g(x, x, bias=x),
            lambda: g(x, x, beta=1),
            lambda: g(x, x, stream=other.stream()),
            lambda: g(x, x, options=options(parts=3)),
            lambda: g(x, x, options=options(parts=-3)),
            lambda: g(x, x, options=options(tile_m=-3)),
            lambda: g(x, x, options=options(split="k", parts=4096)),
            lambda: g(x, x, options=options(streams=-1)),
            lambda: g(x, x, options=options(split=99)),
            lambda: g(x, x, options=options(place_a=99)),
            lambda: c.plan(x, x, options=options(tile_k=-3)),
            lambda: c.plan(x[:0], x),
            lambda: c.plan(x, f),
            lambda: c.plan(x, x, np.ones((4, 5))),
            lambda: plan.run(x, x),
            lambda: plan.run(x, y, bias=np.ones(5)),
            lambda: plan.run(f, f, bias=np.ones(4, np.float32)),
            lambda: c.gemm_grouped([(x, x), (x, f)]),
            lambda: c.gemm_grouped([(x, x), (x, x, x)]),
            lambda: c.gemm_grouped([(x, x), (raw, x)]),
            lambda: c.gemm_grouped([(x, x, stack[0]), (x, x, stack[0])]),
            lambda: c.gemm_grouped([(x, stack[0]), (x, x, stack[0])]),
            lambda: c.gemm_grouped([{"a": x, "b": x, "compute": "tf32"}]),
            lambda: c.gemm_grouped([{"a": stack, "b": x, "c": as_strided(stack.copy(), (3, 4, 4), (64, 32, 8))}]),
            lambda: c.gemm_grouped([(x,)]),
            lambda: graph.gemm(x, f),
            lambda: graph.set_gemm(0, x, y),
            lambda: graph.set_gemm(0, f, f),
            lambda: graph.set_gemm(0, x, x, bias=np.ones(4)),
            lambda: graph.set_gemm(7, x, x),
            lambda: graph.set_gemm(1, x, x),
            lambda: graph.set_copy(1, x, x),
            lambda: graph.run(stream=other.stream()),
            lambda: graph.run(priority=9),
            lambda: c.copy(x, x),
            lambda: c.copy(x, y),
            lambda: c.copy(hole, x),
            lambda: c.copy(x[:, ::2], x[:, ::2]),
            lambda: c.buffer(0),
            lambda: c.buffer(1 << 62),
            lambda: c.buffer(64).matrix((9, 9)),
            lambda: c.pinned_empty((1 << 30, 1 << 30)),
            lambda: c.pinned_empty((3, 3), "f99"),
            lambda: c.pin(hole),
            lambda: c.pin(x[::-1]),
            lambda: c.stream(priority=9),
            lambda: c.stream(compute_units=-1),
            lambda: c.wrap_stream(0),
            lambda: c.stream(priority="high"),
            lambda: c.stream(compute_units=1 << 40),
            lambda: c.buffer("64"),
            lambda: c.buffer(-1),
            lambda: c.buffer(64).matrix((2, 2), offset="x"),
            lambda: g(x, x, priority="high"),
            lambda: g(x, x, priority=1 << 70),
            lambda: g(x, x, priority=1 << 40),
            lambda: g(x, x, stream=3),
            lambda: g(x, x, options=3),
            lambda: g(x, x, after=3),
            lambda: g(x, x, after=[3]),
            lambda: g(x, x, alpha=None),
            lambda: g(x, x, beta="x"),
            lambda: g(x, x, activation=3.5),
            lambda: g(None, x),
            lambda: g(x, "b"),
            lambda: g(x, 3.0),
            lambda: options(parts="many"),
            lambda: options(parts=1 << 40),
            lambda: sg.Context(3),
            lambda: sg.Context("cpu", job_limit="x"),
            lambda: graph.set_gemm("0", x, x),
            lambda: event.seconds_since(event),
            lambda: event.record(other.stream()),
            lambda: stream.wait_event(other.event()),
            lambda: sg.Context("cpu", compute_lanes=-1),
            lambda: sg.Context("cpu", memory_limit=(1 << 64) - 1),
            lambda: sg.Context("cpu", when_full=99),
            lambda: sg.Context("cpu", job_limit=-1),
            lambda: sg.Context("sim:/no/such/file.json"),
            lambda: sg.Context("x" * 300),
        )

    def test_no_message_uses_c_names(self):
        refused = 0
        for number, call in enumerate(self.bad_calls()):
            try:
                call()
            except (sg.Error, TypeError, OverflowError) as failure:
                refused += 1
                with self.subTest(number=number, message=str(failure)):
                    self.assertNotRegex(str(failure), r"desc|->|submit|\b[abc]_array|struct|NULL|\.data\b|sg_|nullptr|stride_[abc]\b")
                    self.assertGreater(len(str(failure)), 8)
        self.assertGreater(refused, 100)

    def test_the_selftest_prints_no_empty_brackets(self):
        said = subprocess.run([sys.executable, "-m", "streamgemm.selftest", "cpu"], capture_output=True, text=True, check=True, timeout=300).stdout
        self.assertIn("backend cuda", said)
        self.assertNotIn("()", said)


if __name__ == "__main__":
    unittest.main()
