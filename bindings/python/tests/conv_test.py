# SPDX-License-Identifier: Apache-2.0
"""Convolutions and their gradients against NumPy."""

import itertools
import unittest

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest


def reference(x, w, stride=(1, 1), pads=(0, 0, 0, 0), dilation=(1, 1), groups=1):
    """x: NCHW, w: OIHW, in f64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    kh, kw = w.shape[2:]
    out_h = (x.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    out_w = (x.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((len(x), len(w), out_h, out_w))
    inputs, outputs = x.shape[1] // groups, len(w) // groups
    for i, j, g in itertools.product(range(kh), range(kw), range(groups)):
        top, left = i * dilation[0], j * dilation[1]
        part = x[:, g * inputs : (g + 1) * inputs, top : top + (out_h - 1) * stride[0] + 1 : stride[0],
                 left : left + (out_w - 1) * stride[1] + 1 : stride[1]]  # fmt: skip
        filters = w[g * outputs : (g + 1) * outputs, :, i, j].astype(np.float64)
        y[:, g * outputs : (g + 1) * outputs] += np.einsum("nchw,oc->nohw", part, filters)
    return y


class Conv(DeviceTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(6)

    def array(self, *shape, dtype=np.float64):
        return self.random.standard_normal(shape).astype(dtype)

    def test_types_layouts_and_windows(self):
        forms = [
            {"stride": 1, "padding": 0}, {"stride": (2, 1), "padding": (1, 2)}, {"padding": (1, 0, 2, 3), "dilation": (1, 2)},
            {"groups": 2, "padding": 1}, {"groups": 4},
        ]  # fmt: skip
        for dtype, tolerance in [(np.float64, 1e-12), (np.float32, 1e-5), (np.float16, 1e-2)]:
            for form, last, inner in itertools.product(forms, (False, True), (False, True)):
                with self.subTest(dtype=dtype.__name__, form=form, last=last, inner=inner):
                    groups = form.get("groups", 1)
                    x, w = self.array(2, 4, 9, 8, dtype=dtype), self.array(8, 4 // groups, 3, 2, dtype=dtype)
                    bias = self.array(8, dtype=dtype)
                    pairs = {key: (v, v) if isinstance(v, int) else v for key, v in form.items() if key != "groups"}
                    pads = pairs.pop("padding", (0, 0))
                    pads = (pads * 2)[:4]
                    wanted = reference(x, w, pads=pads, groups=groups, **pairs) + bias[:, None, None]
                    given = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if last else x
                    filters = np.ascontiguousarray(w.transpose(0, 2, 3, 1)) if inner else w
                    options = {"layout": "nhwc" if last else "nchw", "filter_layout": "ohwi" if inner else "oihw"}
                    found = self.context.conv2d(given, filters, bias, **form, **options)
                    self.assertEqual(dtype, found.dtype)
                    found = found.transpose(0, 3, 1, 2) if last else found
                    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=10 * tolerance)

    def test_activation_and_given_results(self):
        x, w = self.array(3, 2, 5, 5), self.array(4, 2, 3, 3)
        out = np.zeros((6, 4, 3, 3))[::2]  # images with gaps
        self.assertIs(out, self.context.conv2d(x, w, None, out, activation="relu"))
        np.testing.assert_allclose(out, np.maximum(reference(x, w), 0), atol=1e-12)

    def test_gradients(self):
        x, w, dy = self.array(2, 4, 7, 6), self.array(6, 2, 3, 3), self.array(2, 6, 4, 3)
        options = {"stride": 2, "padding": 1, "groups": 2}
        dx, dw, dbias = self.context.conv2d_backward(dy, x, w, **options)
        loss = lambda x, w: (reference(x, w, (2, 2), (1, 1, 1, 1), groups=2) * dy).sum()  # noqa: E731
        np.testing.assert_allclose(dbias, dy.sum(axis=(0, 2, 3)))
        for array, gradient in [(x, dx), (w, dw)]:
            for at in zip(*(self.random.integers(0, n, 5) for n in array.shape)):
                step = np.zeros_like(array)
                step[at] = 1
                change = loss(x + step, w) - loss(x, w) if array is x else loss(x, w + step) - loss(x, w)  # linear in each
                self.assertAlmostEqual(change, gradient[at])
        nothing, same, none = self.context.conv2d_backward(dy, x, dw=np.zeros_like(w), dbias=False, **options)
        self.assertIsNone(nothing)
        self.assertIsNone(none)
        np.testing.assert_allclose(same, dw)
        np.testing.assert_allclose(self.context.conv2d_backward(dy, None, w, size=(7, 6), **options)[0], dx)
        self.assertEqual((2, 4, 8, 6), self.context.conv2d_backward(dy, None, w, size=(8, 6), **options)[0].shape)
        np.testing.assert_allclose(self.context.conv2d_backward(dy)[2], dbias)
        self.context.conv2d_backward(dy, x, w, dw=dw, dbias=dbias, accumulate=True, **options)
        np.testing.assert_allclose(dw, 2 * same)
        np.testing.assert_allclose(dbias, 2 * dy.sum(axis=(0, 2, 3)))

    def test_half_precision_with_gradients_of_f32(self):
        x, w, dy = (self.array(*s, dtype=np.float16) for s in [(2, 3, 6, 6), (4, 3, 3, 3), (2, 4, 4, 4)])
        dx, dw, dbias = self.context.conv2d_backward(
            dy, x, w, dw=np.empty(w.shape, np.float32), dbias=np.empty(4, np.float32)
        )
        self.assertEqual(("float16", "float32", "float32"), (dx.dtype, dw.dtype, dbias.dtype))
        wanted = self.context.conv2d_backward(*(each.astype(np.float64) for each in (dy, x, w)))
        np.testing.assert_allclose(dw, wanted[1], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(dx, wanted[0], rtol=1e-2, atol=1e-2)

    def test_jobs_and_graphs(self):
        x, w, v = self.array(1, 2, 6, 6), self.array(3, 2, 3, 3), self.array(2, 3, 1, 1)
        wanted = reference(reference(x, w), v)
        first = self.context.conv2d_async(x, w)
        np.testing.assert_allclose(self.context.conv2d(first, v), wanted)
        graph = self.context.graph()
        middle = graph.conv2d(x, w)
        out = graph.conv2d(middle, v)
        dx, dw, dbias = graph.conv2d_backward(out, middle, v)
        graph.run_async().wait()
        np.testing.assert_allclose(out, wanted)
        np.testing.assert_allclose(dbias, wanted.sum(axis=(0, 2, 3)))
        self.assertEqual((middle.shape, v.shape), (dx.shape, dw.shape))

    def place(self, array):
        """A copy in the device's memory."""
        made = self.context.buffer(array.nbytes).matrix(array.shape, "f64")
        self.context.copy(made, array)
        return made

    def fetch(self, placed, shape):
        made = np.empty(shape)
        self.context.copy(made, placed)
        return made

    def test_matrices_of_windows(self):
        x, w = self.array(2, 4, 7, 6), self.array(3, 4, 3, 2)
        form = {"stride": (2, 1), "padding": (1, 0, 2, 1), "dilation": (1, 2)}
        wanted = reference(x, w, (2, 1), (1, 0, 2, 1), (1, 2))
        shape = (np.prod(wanted[:, 0].shape), 24)
        for last, inner in itertools.product((False, True), (False, True)):
            with self.subTest(last=last, inner=inner):
                images = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if last else x
                filters = w.transpose(0, 2, 3, 1) if inner else w
                options = {**form, "layout": "nhwc" if last else "nchw", "filter_layout": "ohwi" if inner else "oihw"}
                out = self.place(np.full(shape, np.nan))
                self.assertIs(out, self.context.im2col(self.place(images), (3, 2), out, **options))
                matrix = self.fetch(out, shape)
                y = (matrix @ filters.reshape(3, -1).T).reshape(2, *wanted.shape[2:], 3).transpose(0, 3, 1, 2)
                np.testing.assert_allclose(y, wanted, atol=1e-12)
                sums, counts = self.place(np.full_like(images, np.nan)), self.place(np.full_like(images, np.nan))
                self.context.col2im(out, (3, 2), sums, **options)
                self.context.col2im(self.place(np.ones(shape)), (3, 2), counts, **options)
                counts = self.fetch(counts, images.shape)
                self.assertEqual(matrix.size, counts.sum() + (matrix == 0).sum())  # the others are in the padding
                np.testing.assert_allclose(self.fetch(sums, images.shape), counts * images)
                self.assertIs(sums, self.context.col2im(out, (3, 2), sums, accumulate=True, **options))
                np.testing.assert_allclose(self.fetch(sums, images.shape), 2 * counts * images)
        part = self.place(np.full(x.shape, 9.0))
        two = self.context.im2col_async(self.place(x), 1, self.place(np.zeros((84, 2))), channels=(1, 2))
        self.context.col2im(two, 1, part, channels=(1, 2))
        part = self.fetch(part, x.shape)
        np.testing.assert_array_equal(part[:, 1:3], x[:, 1:3])
        self.assertTrue((part[:, [0, 3]] == 9).all())

    def test_new_matrices_of_windows(self):
        x, ints = self.array(2, 4, 7, 6), np.arange(336, dtype=np.int32).reshape(2, 4, 7, 6)
        np.testing.assert_array_equal(self.context.im2col(ints, 1), ints.transpose(0, 2, 3, 1).reshape(-1, 4))
        sums = self.context.col2im(self.context.im2col_async(x, (7, 6)), (7, 6), shape=x.shape)
        np.testing.assert_array_equal(sums, x)  # one window for each image
        graph = self.context.graph()
        recorded = graph.col2im(graph.im2col(x, 3, padding=1), 3, shape=x.shape, padding=1)
        graph.run_async().wait()
        np.testing.assert_allclose(recorded[:, :, 1:-1, 1:-1], 9 * x[:, :, 1:-1, 1:-1])

    def test_wrong_matrices_of_windows(self):
        x, matrix = self.array(1, 4, 6, 6), self.array(16, 36)
        bad = [
            ("x has 3 dimensions", lambda: self.context.im2col(x[0], 3)),
            ("kernel is 0", lambda: self.context.im2col(x, 0)),
            (r"out has shape \(16, 35\); it must be \(16, 36\)", lambda: self.context.im2col(x, 3, np.empty((16, 35)))),
            ("out is f32 and x is f64", lambda: self.context.im2col(x, 3, np.empty((16, 36), np.float32))),
            (r"channels is \(3, 2\) and x has 4 channels", lambda: self.context.im2col(x, 3, channels=(3, 2))),
            ("stride is 0", lambda: self.context.im2col(x, 3, stride=0)),
            ("stride is 1152921504606846976", lambda: self.context.im2col(x, 3, stride=1 << 60)),
            ("shape is None", lambda: self.context.col2im(matrix, 3)),
            ("which has 3 numbers", lambda: self.context.col2im(matrix, 3, shape=(4, 6, 6))),
            (r"matrix has shape \(16, 36\)", lambda: self.context.col2im(matrix, 3, shape=(1, 4, 7, 6))),
            ("it must be given", lambda: self.context.col2im(matrix, 3, shape=x.shape, accumulate=True)),
            ("of a range of channels", lambda: self.context.col2im(matrix[:, :9], 3, shape=x.shape, channels=(0, 1))),
            ("out is f32 and matrix is f64", lambda: self.context.col2im(matrix, 3, x.astype(np.float32))),
            ("dtype|host memory", lambda: self.context.col2im(np.ones((16, 36), np.int32), 3, shape=x.shape)),
        ]
        for part, call in bad:
            with self.subTest(part=part), self.assertRaisesRegex((sg.InvalidArgument, sg.Unsupported, ValueError), part):
                call()

    def test_wrong_arguments(self):
        x, w = self.array(1, 4, 6, 6), self.array(8, 4, 3, 3)
        bad = [
            ("x has 3 dimensions", lambda: self.context.conv2d(x[0], w)),
            (r"w has shape \(8, 4, 3, 3\); it must be \(8, 2, 3, 3\)", lambda: self.context.conv2d(x, w, groups=2)),
            ("w is f32 and x is f64", lambda: self.context.conv2d(x, w.astype(np.float32))),
            ("out has shape", lambda: self.context.conv2d(x, w, None, np.empty((1, 8, 5, 4)))),
            ("bias has shape", lambda: self.context.conv2d(x, w, np.zeros(7))),
            ("which has 3 numbers", lambda: self.context.conv2d(x, w, padding=(1, 2, 3))),
            ("stride is 0", lambda: self.context.conv2d(x, w, stride=0)),
            ("layout", lambda: self.context.conv2d(x, w, layout="chwn")),
            ("the elements of an image of x", lambda: self.context.conv2d(x[:, :, ::2], w)),
            ("dw is None", lambda: self.context.conv2d_backward(x, x)),
            ("size is None", lambda: self.context.conv2d_backward(self.array(1, 8, 4, 4), None, w)),
            ("dy has shape", lambda: self.context.conv2d_backward(self.array(1, 8, 5, 4), x, w)),
            ("must be given", lambda: self.context.conv2d_backward(self.array(1, 8, 4, 4), x, w, accumulate=True)),
        ]
        for part, call in bad:
            with self.subTest(part=part), self.assertRaisesRegex((sg.InvalidArgument, ValueError), part):
                call()


if __name__ == "__main__":
    unittest.main()
