# SPDX-License-Identifier: Apache-2.0
"""Pipelines: stages recorded once, batches of arrays, places of weights, what is kept and what is refused."""

import gc
import unittest
import weakref

import numpy as np
import streamgemm as sg
from support import DeviceTest, eventually, integers as floats


def integers(shape, seed=0):
    return floats(shape, np.float64, seed)


def relu(x):
    return np.maximum(x, 0)


class Pipelines(DeviceTest):
    rows = 6

    def network(self, place="auto", weights=None, **options):
        """Two layers, the first with a bias and an activation; the arrays of weights."""
        w1, b1, w2 = weights or (integers((5, 8), seed=1), integers((8,), seed=2), integers((8, 3), seed=3))
        made = self.context.pipeline((self.rows, 5), "f64", **options)
        hidden = made.stage((self.rows, 8), weights=(w1, b1), place=place, name="hidden")
        hidden.gemm(hidden.input, hidden.weights[0], hidden.output, bias=hidden.weights[1], activation="relu")
        last = made.stage((self.rows, 3), weights=(w2,), place=place)
        last.gemm(last.input, last.weights[0], last.output)
        return made, (w1, b1, w2)

    def expected(self, x, weights):
        w1, b1, w2 = weights
        return relu(x @ w1 + b1) @ w2

    def test_batches(self):
        for place in ("auto", "resident", sg.WeightsPlace.STREAMED):
            with self.subTest(place=place):
                made, weights = self.network(place)
                batches = [integers((self.rows, 5), seed=seed) for seed in range(9)]
                jobs = [made.push_async(x) for x in batches]
                for x, job in zip(batches, jobs):
                    np.testing.assert_array_equal(self.expected(x, weights), job.result(300))
                out = np.empty((self.rows, 3))
                self.assertIs(out, made.push(batches[0], out))
                np.testing.assert_array_equal(self.expected(batches[0], weights), out)

    def test_pinned_and_device_arrays(self):
        made, weights = self.network()
        x = self.context.pinned_empty((self.rows, 5), "f64")
        x[...] = integers((self.rows, 5))
        on_device = self.context.buffer(x.nbytes).matrix(x.shape, "f64")
        self.context.copy(on_device, x)
        result = self.context.buffer(self.rows * 3 * 8).matrix((self.rows, 3), "f64")
        made.push(on_device, result)
        np.testing.assert_array_equal(self.expected(x, weights), self.context.copy(np.empty((self.rows, 3)), result))
        np.testing.assert_array_equal(self.expected(x, weights), made.push(x))

    def test_a_job_as_input(self):
        made, weights = self.network()
        a, b = integers((self.rows, 4)), integers((4, 5), seed=9)
        job = self.context.gemm_async(a, b)
        np.testing.assert_array_equal(self.expected(a @ b, weights), made.push(job))

    def test_a_workspace_and_operations_between(self):
        made = self.context.pipeline((4, 4), "f32")
        w = np.eye(4, dtype=np.float32)
        stage = made.stage((4, 4), weights=(w,), workspace=2 * 64)
        scores, probabilities = stage.workspace((4, 4)), stage.workspace((4, 4), offset=64)
        stage.gemm(stage.input, stage.weights[0], scores)
        stage.softmax(scores, probabilities, mask="causal")
        stage.layer_norm(probabilities, out=stage.output)
        x = np.zeros((4, 4), np.float32)
        p = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
        wanted = (p - p.mean(1, keepdims=True)) / np.sqrt(p.var(1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(wanted, made.push(x), atol=1e-5)

    def test_images_and_losses_of_a_stage(self):
        images, classes = floats((2, 3, 4, 6), np.float32), np.array([1, 5, 0, -100, 2, 3], np.int32)
        made = self.context.pipeline(images.shape, "f32")
        smaller = made.stage((2, 3, 2, 3))
        smaller.pool2d(smaller.input, 2, smaller.output)
        last = made.stage((6, 1), weights=(classes,), workspace=6 * 4)
        scores = last.input.part((6, 6))
        losses = last.workspace((6, 1))
        last.cross_entropy(scores, last.weights[0], losses)
        last.row_reduce(losses, "mean", last.output)
        wanted = images.reshape(2, 3, 2, 2, 3, 2).max((3, 5)).reshape(6, 6)
        wanted = np.log(np.exp(wanted).sum(1)) - wanted[np.arange(6), classes % 6]
        np.testing.assert_allclose(np.where(classes < 0, 0, wanted)[:, None], made.push(images), rtol=1e-5, atol=1e-6)

    def test_quantised_weights_are_expanded_by_their_stage(self):
        w = np.random.default_rng(5).integers(-127, 128, (64, 32)).astype(np.int8)
        scales = np.random.default_rng(6).random((64, 1)).astype(np.float32)
        x = floats((3, 64), np.float32)
        made = self.context.pipeline(x.shape, "f32")
        stage = made.stage((3, 32), weights=(w, scales), place="streamed", workspace=64 * 32 * 4)
        whole = stage.dequantize(*stage.weights, out=stage.workspace((64, 32)))
        stage.linear(stage.input, whole, out=stage.output)
        for _ in range(3):
            np.testing.assert_allclose(x @ (w * scales), made.push(x), rtol=1e-5, atol=1e-3)
        if not self.context.device.unified_memory:
            self.assertLess(made.info.streamed_bytes, 64 * 32 * 2)

    def test_figures(self):
        made, _ = self.network("streamed", depth=2)
        self.assertEqual((2, 2), (made.info.stages, made.info.depth))
        self.assertGreater(made.info.seconds_per_batch, 0)
        self.assertIn("2 stages", made.describe())

    def test_weights_and_batches_are_kept(self):
        made, weights = self.network("streamed", weights=None)
        expected = self.expected(np.ones((self.rows, 5)), weights)
        seen = [weakref.ref(each) for each in weights]
        del weights
        gc.collect()
        job = made.push_async(np.ones((self.rows, 5)))
        made.close()
        gc.collect()
        np.testing.assert_array_equal(expected, job.result(300))
        del made, job
        eventually(lambda: gc.collect() or not any(each() is not None for each in seen))

    def test_graphs_record_operations(self):
        x = np.array([[-1.0, 2.0]])
        with self.context.graph() as graph:
            y = graph.elementwise("relu", x)
            z = graph.rms_norm(y)
            graph.run()
            np.testing.assert_array_equal([[0, 2]], y)
            np.testing.assert_allclose([[0, 2 / np.sqrt(2 + 1e-5)]], z)
            with self.assertRaisesRegex(sg.InvalidArgument, "describes"):
                graph.update(0, x)

    def test_graphs_record_what_contexts_submit(self):
        x, w = floats((2, 4, 6), np.float32), floats((6, 6), np.float32, 1)
        q, table = x.transpose(1, 0, 2), floats((5, 3), np.float32, 2)
        classes, images = np.array([[0, 5, -100, 2], [1, 1, 6, 3]]), floats((1, 2, 4, 4), np.float32)
        calls = {
            "attention": ((q, q, q), {"mask": "causal", "window": 2, "bias": w[:2, :2], "key_lengths": np.array([1], np.int32)}),
            "attention_backward": ((q, q, q, q), {"mask": "causal", "visible": w[:2, :2] > 0}),
            "clamp": ((x, -0.5, 0.5), {}),
            "fill": ((x.copy(), 2.5), {}),
            "clamp_backward": ((x, x, -0.5, 0.5), {}),
            "row_dot": ((x, x), {}),
            "triangular": ((w, w.copy()), {"diagonal": "unit", "kind": "multiply"}),
            "symmetric": ((w, w, np.zeros_like(w)), {"side": "right"}),
            "rank_k": ((w, np.zeros_like(w)), {"triangle": "upper"}),
            "convert": ((w,), {"dtype": "f64", "op_a": "T"}),
            "gather": ((table, np.array([4, -1, 0])), {"from_end": True}),
            "linear": ((x, w), {"activation": "relu"}),
            "linear_backward": ((x, x, w), {}),
            "rotary": ((x,), {"position": 3}),
            "lstm": ((x, floats((8, 6), np.float32, 3), floats((8, 2), np.float32, 4)), {}),
            "gru": ((x, floats((6, 6), np.float32, 3), floats((6, 2), np.float32, 4)), {"reset_before": True}),
            "elementwise": (("silu", x), {}),
            "softmax": ((x,), {"mask": "causal"}),
            "softmax_backward": ((x, x[..., ::-1].copy()), {}),
            "row_reduce": ((x, "max"), {}),
            "cross_entropy": ((x, classes), {}),
            "cross_entropy_backward": ((x, classes), {"scale": 0.5}),
            "layer_norm_backward": ((x, x), {"dbeta": False}),
            "rms_norm_backward": ((x, x), {}),
            "rotary_backward": ((x,), {"position": 3}),
            "scatter_add": ((table.copy(), floats((4, 3), np.float32), classes[0]), {}),
            "sgd": ((w.copy(), w), {"rate": 0.5}),
            "adam": ((w.copy(), w, np.zeros_like(w), np.zeros_like(w)), {}),
            "pool2d": ((images, 2), {"pooling": "average"}),
            "pool2d_backward": ((images[:, :, :2, :2].copy(), images, 2), {}),
        }
        with self.context.graph() as graph:
            for name, (operands, options) in calls.items():
                getattr(graph, name)(*operands, **options)
            for name, found in zip(calls, graph.run()):
                operands, options = calls[name]
                if name in ("scatter_add", "sgd", "adam", "triangular"):  # updated in place: once more would differ
                    self.assertTrue(any(found is each for each in operands))
                    continue
                wanted = getattr(self.context, name)(*operands, **options)
                for each, other in zip(wanted, found) if isinstance(wanted, tuple) else ((wanted, found),):
                    np.testing.assert_array_equal(each, other, err_msg=name)

    def test_refused(self):
        made, _ = self.network()
        x = integers((self.rows, 5))
        for given, text in (
            (x[:-1], "x has shape"),
            (x.astype(np.float32), "x is f32"),
            (np.asfortranarray(x), "x has gaps"),
        ):
            with self.assertRaisesRegex(sg.InvalidArgument, text):
                made.push(given)
        with self.assertRaisesRegex(sg.InvalidArgument, "out has shape"):
            made.push(x, np.empty((3, self.rows)))
        with self.assertRaisesRegex(sg.Busy, "prepared"):
            made.info
            made.stage((self.rows, 3))
        with self.assertRaisesRegex(sg.InvalidArgument, "an extent of shape is 0"):
            self.context.pipeline((0, 3))
        with self.assertRaisesRegex(TypeError, "no_such_option is none of the options"):
            self.context.pipeline((1, 3), no_such_option=1)
        with self.assertRaisesRegex(sg.InvalidArgument, "depth is 65"):
            self.context.pipeline((1, 3), depth=65)
        other = self.context.pipeline((1, 3))
        stage = other.stage((1, 3))
        with self.assertRaisesRegex(sg.InvalidArgument, "do not fit"):
            stage.workspace((1,))
        with self.assertRaisesRegex(sg.InvalidArgument, "no operation"):
            other.push(np.zeros((1, 3), np.float32))
        with self.assertRaisesRegex(sg.InvalidArgument, "a stage of a pipeline"):
            stage.run()
        other.close()
        with self.assertRaisesRegex(sg.InvalidHandle, "this Pipeline is closed"):
            other.push(np.zeros((1, 3), np.float32))


class PlacedStages(unittest.TestCase):
    """Stages that name no device, on simulated machines of two."""

    rows, width = 4, 512

    def stages(self, context, pipeline, place, count=4):
        weights = context.pinned_empty((self.width, self.width), "f32")
        weights[:] = np.eye(self.width) * 2
        made = [pipeline.stage((self.rows, self.width), weights=[weights], place=place) for _ in range(count)]
        for stage in made:
            stage.gemm(stage.input, stage.weights[0], stage.output)
        return made

    def expect_sixteen_times(self, pipeline):
        x = np.ones((self.rows, self.width), np.float32)
        np.testing.assert_array_equal(np.asarray(pipeline.push(x)), 16 * x)

    def test_a_failed_preparation_leaves_nothing_behind(self):
        failures = 0
        for copy in range(4, 12):
            with sg.Context(f"sim:h200x2?d1.fail-copy={copy}") as context:
                extra = context.buffer(self.rows * self.width * 4, device=0).matrix((self.rows, self.width), "f32")
                with context.pipeline((self.rows, self.width), "f32", memory_limit=2 * self.width * self.width * 4 + 65536) as pipeline:
                    made = self.stages(context, pipeline, "resident")
                    try:
                        pipeline.info
                        continue
                    except sg.BackendFailure:
                        failures += 1
                    for stage in made:  # in device 0's memory, so that no stage is moved any more
                        stage.copy(extra, stage.input)
                    with self.assertRaises(sg.OutOfMemory):  # device 0 has room for two
                        pipeline.info
        self.assertGreater(failures, 0)

    def test_memory_that_others_use(self):
        with sg.Context("sim:h200x2?memory=64MiB&d1.taken=60MiB") as context:
            with context.pipeline((self.rows, self.width), "f32") as pipeline:
                self.stages(context, pipeline, "streamed")
                self.expect_sixteen_times(pipeline)

    def replicated(self, context, place, **options):
        pipeline = context.pipeline((self.rows, self.width), "f32", replicas="batches", batches_in_flight=12, **options)
        self.stages(context, pipeline, place)
        return pipeline

    def test_replicas(self):
        with sg.Context("sim:h200x2", check_hazards=True) as context:
            for place in ("resident", "streamed"):
                with self.subTest(place=place), self.replicated(context, place) as pipeline:
                    self.assertEqual(pipeline.info.replicas, 2)
                    self.assertEqual(bool(pipeline.info.shares_weights), place == "streamed")
                    self.expect_sixteen_times(pipeline)
                    xs = [integers((self.rows, self.width), i).astype(np.float32) for i in range(5)]
                    outs = [None, np.zeros_like(xs[0]), None, None, None]
                    job = pipeline.push_batches_async(xs, outs, label="five")
                    for i, (x, y) in enumerate(zip(xs, job.result())):
                        np.testing.assert_array_equal(np.asarray(y), 16 * x, f"batch {i}")
                    self.assertIs(job.result()[1], outs[1])
                    np.testing.assert_array_equal(np.asarray(pipeline.push_batches(xs[:2])[1]), 16 * xs[1])

    def test_replicas_refused(self):
        with sg.Context("sim:h200x2") as context, self.replicated(context, "resident") as pipeline:
            x = np.zeros((self.rows, self.width), np.float32)
            with self.assertRaisesRegex(sg.InvalidArgument, "x has 0 items"):
                pipeline.push_batches([])
            with self.assertRaisesRegex(sg.InvalidArgument, "out has 1 items, and x has 2"):
                pipeline.push_batches([x, x], [x])
            with self.assertRaisesRegex(sg.InvalidArgument, r"x\[1\]: .*has shape \(4,\)"):
                pipeline.push_batches([x, np.zeros(4, np.float32)])
            with self.assertRaisesRegex(sg.InvalidArgument, "^x has 13 batches, and the pipeline's limit of batches in flight is 12"):
                pipeline.push_batches([x] * 13)
            y = np.zeros((self.rows, self.width), np.float32)
            with self.assertRaisesRegex(sg.InvalidArgument, r"^x\[1\] \(.*\) and out\[1\] \(.*\) overlap"):
                pipeline.push_batches([x, y], [None, y])
            with self.assertRaisesRegex(TypeError, "x is 5; it must be a sequence of arrays"):
                pipeline.push_batches(5)
            with self.assertRaisesRegex(TypeError, "out is 5; it must be a sequence of arrays"):
                pipeline.push_batches([x], 5)
            with self.assertRaisesRegex(sg.InvalidArgument, "replicas is 'some'"):
                context.pipeline((1, 3), replicas="some")
            with self.assertRaisesRegex(sg.InvalidArgument, "device is 1; a stage of a pipeline with replicas"):
                context.pipeline((1, 3), replicas="batches").stage((1, 3), device=1)


if __name__ == "__main__":
    unittest.main()
