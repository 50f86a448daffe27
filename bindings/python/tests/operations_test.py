# SPDX-License-Identifier: Apache-2.0
"""Plans and graphs of every operation, by a loop over streamgemm.operations: a new operation is tested by itself, or fails for want of a shape here."""

import gc
import inspect
import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest

IMAGES, HEADS, STEPS = (8, 2, 2, 2), (1, 2, 8, 4), (2, 4, 8)
# Arguments that are no arrays of 8 x 8: shapes, or values that are no tuples. "*" is for every operation.
ARGUMENTS = {
    "*": {"indices": "indices", "low": 0.2, "high": 0.7, "kernel": 1, "function": "relu"},
    "attention": dict.fromkeys("qkv", HEADS),
    "attention_backward": dict.fromkeys(("q", "k", "v", "d_out"), HEADS),
    "conv2d": {"x": IMAGES, "w": (2, 2, 1, 1)},
    "conv2d_backward": {"dy": IMAGES, "x": IMAGES, "w": (2, 2, 1, 1)},
    "pool2d": {"x": IMAGES},
    "pool2d_backward": {"dy": IMAGES, "x": IMAGES},
    "im2col": {"x": IMAGES},
    "col2im": {"matrix": (32, 2), "shape": "images"},
    "lstm": {"x": STEPS, "w_ih": (32, 8), "w_hh": (32, 8)},
    "gru": {"x": STEPS, "w_ih": (24, 8), "w_hh": (24, 8)},
    "lstm_backward": {"x": STEPS, "w_ih": (32, 8), "w_hh": (32, 8), "y": STEPS, "reserve": (2, 4, 40), "dy": STEPS},
    "gru_backward": {"x": STEPS, "w_ih": (24, 8), "w_hh": (24, 8), "y": STEPS, "reserve": (2, 4, 40), "dy": STEPS},
    "linear_backward": {"x": (8, 8), "w": (8, 8)},
    "dequantize": {"x": "quantized", "scales": (8, 2)},
}
ALL = [name for name in sg.operations.__all__ if name not in ("custom", "all_reduce")]  # whose operands are in certain memory


class Arguments:
    """One set of arguments, of the same values each time."""

    def __init__(self, are_shapes=False):
        self.are_shapes, self.arrays = are_shapes, []

    def array(self, shape, dtype="f32"):
        if self.are_shapes:
            return sg.Matrix.placeholder(shape, dtype, place="pageable")
        random = np.random.default_rng(len(self.arrays))
        made = random.integers(-9, 9, shape, np.int8) if dtype == "i8" else random.uniform(0.1, 1, shape).astype(np.float32)
        self.arrays.append(made)
        return made

    def argument(self, given):
        if isinstance(given, tuple):
            return self.array(given)
        if given == "indices" and self.are_shapes:
            return sg.Matrix.placeholder((8,), "i32", place="pageable")
        values = {"indices": np.array([3, 1, 4, 0, 5, 2, 6, 7], np.int32), "images": IMAGES}
        return self.array((8, 8), "i8") if given == "quantized" else values.get(given, given) if isinstance(given, str) else given

    def named(self, name):
        """The arguments of an operation."""
        known = {**ARGUMENTS["*"], **ARGUMENTS.get(name, {})}
        required = [p.name for p in inspect.signature(getattr(sg.operations, name)).parameters.values() if p.default is p.empty]
        if name == "gemm_grouped":
            return {"products": [(self.array((8, 8)), self.array((8, 8))) for _ in range(2)]}
        return {each: self.argument(known.get(each, (8, 8))) for each in dict.fromkeys([*required, *ARGUMENTS.get(name, {})])}

    def of(self, name):
        """The description, with these arguments."""
        return getattr(sg.operations, name)(**self.named(name))


def values(*results):
    """All numbers of arrays, and of lists of them."""
    flat = [np.ravel(each) if each is not None and not isinstance(each, (list, tuple)) else values(*(each or ())) for each in results]
    return np.concatenate([np.asarray(each, np.float64) for each in flat]) if flat else np.zeros(0)


class Operations(DeviceTest):
    def test_every_operation_is_planned_by_its_shapes(self):
        for name in ALL:
            with self.subTest(name), self.context.plan(Arguments(True).of(name)) as plan:
                self.assertTrue(self.context.supports(Arguments(True).of(name)))
                self.assertGreater(plan.prediction.predicted_seconds, 0)
                self.assertIn("strategy", plan.text)
                self.check_runs(name, plan)
                other = "fill" if name != "fill" else "softmax"
                with self.assertRaisesRegex(sg.InvalidArgument, "operation is"):
                    plan.run(Arguments().of(other))

    def check_runs(self, name, plan):
        """Two runs of the plan, synchronous and not, give what the context's method gives."""
        arguments = Arguments()
        bound = getattr(self.context, name)(**arguments.named(name))
        expected = values(bound, *arguments.arrays)
        for run in (plan.run, lambda operation: plan.run_async(operation).result(300)):
            own = Arguments()
            result = run(own.of(name))
            np.testing.assert_array_equal(expected, values(result, *own.arrays), name)

    def test_every_recorded_operation_is_updated(self):
        for name in (n for n in ALL if n not in ("matmul", "gemm_grouped")):
            with self.subTest(name), self.context.graph() as graph:
                eager, first, second = Arguments(), Arguments(), Arguments()
                expected = values(getattr(self.context, name)(**eager.named(name)), *eager.arrays)
                recorded = getattr(graph, name)(**first.named(name))
                operation = second.of(name)
                graph.run()
                np.testing.assert_array_equal(expected, values(recorded, *first.arrays), name)
                result = graph.update(0, operation)
                graph.run()
                np.testing.assert_array_equal(expected, values(result, *second.arrays), name)
                with self.assertRaises(sg.InvalidArgument):
                    graph.update(1, operation)

    def test_a_function_stays_that_of_the_plan(self):
        calls = []

        def function(stream, y):
            calls.append(y)
            y[0, 0] = len(calls)

        one, other = self.context.pinned_empty((4, 4)), self.context.pinned_empty((4, 4))
        describe = sg.operations.custom
        with self.context.plan(describe(function, writes=[one])) as plan, self.context.graph() as graph:
            self.assertIs(plan.run(describe(function, writes=[other])), other)
            self.assertEqual(other[0, 0], 1)
            for wrong in (describe(lambda stream, y: None, writes=[other]), describe(function, writes=[other.reshape(2, 8)])):
                self.assertRaisesRegex(sg.InvalidArgument, "function is not the one", lambda wrong=wrong: plan.run(wrong))
            graph.custom(function, writes=[one])
            graph.update(0, describe(function, writes=[other]))
            graph.update(0, describe(function, writes=[one]))
            gc.collect()
            graph.run()
            self.assertEqual(one[0, 0], 2)

    def test_mistakes(self):
        x, describe = np.ones((4, 4), np.float32), sg.operations
        with self.context.plan(describe.softmax(x)) as plan, self.context.graph() as graph:
            graph.softmax(x)
            for error, words, wrong in (
                (TypeError, "operation is 3", lambda: self.context.supports(3)),
                (TypeError, "none is given beside", lambda: plan.run(describe.softmax(x), x)),
                (TypeError, "this plan runs", lambda: plan.run(x, x)),
                (TypeError, "operations.softmax: maskk is none of the options", lambda: describe.softmax(x, maskk="causal")),
                (sg.InvalidArgument, "differs from the plan", lambda: plan.run(describe.softmax(x[:2]))),
                (sg.InvalidArgument, "out has shape", lambda: self.context.plan(describe.softmax(x, x[:2]))),
                (sg.InvalidArgument, "w has shape", lambda: self.context.supports(describe.linear(x, x[:2]))),
                (sg.InvalidArgument, "differs from submission 0", lambda: graph.update(0, describe.softmax(x[:2]))),
                (sg.InvalidArgument, "streamgemm.operations", lambda: graph.update(0, x)),
                (sg.InvalidArgument, "empty batch", lambda: self.context.plan(describe.gemm(np.ones((0, 2, 2)), np.ones((0, 2, 2))))),
            ):
                self.assertRaisesRegex(error, words, wrong)


if __name__ == "__main__":
    unittest.main()
