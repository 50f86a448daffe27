# SPDX-License-Identifier: Apache-2.0
"""Attention against NumPy."""

import os
import unittest

import numpy as np
import streamgemm as sg

DEVICE = os.environ.get("SG_TEST_DEVICE", "cpu")
NAMES = {"float64": "f64", "float32": "f32", "float16": "f16", "int32": "i32"}


def reference(q, k, v, scale=None, offset=None, added=0):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    members = q.shape[-3] // k.shape[-3] if q.ndim > 2 else 1
    if members > 1:
        k, v = np.repeat(k, members, axis=-3), np.repeat(v, members, axis=-3)
    scores = q @ np.swapaxes(k, -1, -2) * (scale or 1 / np.sqrt(q.shape[-1]))
    if offset is not None:
        hidden = np.arange(k.shape[-2]) > np.arange(q.shape[-2])[:, None] + offset
        scores = np.where(hidden, -np.inf, scores)
    scores = np.where(added == -np.inf, -np.inf, scores + added)
    weights = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), -1e300))
    return weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-300) @ v


class Attention(unittest.TestCase):
    def setUp(self):
        self.context = sg.Context(DEVICE)
        self.random = np.random.default_rng(6)

    def tearDown(self):
        self.context.close()

    def array(self, *shape, dtype=np.float64):
        return self.random.standard_normal(shape).astype(dtype)

    def place(self, array):
        """The array where the device computes."""
        if DEVICE == "cpu":
            return array
        made = self.context.buffer(max(array.nbytes, 1)).matrix(array.shape, NAMES[array.dtype.name])
        self.context.copy(made, np.ascontiguousarray(array))
        return made

    def run_on(self, q, k, v, **options):
        out = np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
        placed = self.place(out)
        self.assertIs(placed, self.context.attention(self.place(q), self.place(k), self.place(v), placed, **options))
        if DEVICE != "cpu":
            self.context.copy(out, placed)
        return out

    def test_shapes_and_types(self):
        for dtype, tolerance in [(np.float64, 1e-12), (np.float32, 1e-5), (np.float16, 5e-3)]:
            for batch in [(), (3,), (2, 4)]:
                with self.subTest(dtype=dtype.__name__, batch=batch):
                    q, k, v = (self.array(*batch, n, d, dtype=dtype) for n, d in [(5, 8), (9, 8), (9, 6)])
                    np.testing.assert_allclose(self.run_on(q, k, v), reference(q, k, v), rtol=tolerance, atol=tolerance)

    def test_causal_grouped_queries_with_cached_keys(self):
        q, k, v = self.array(2, 6, 4, 8), self.array(2, 2, 10, 8), self.array(2, 2, 10, 8)
        for workspace in (0, 2048):
            found = self.run_on(q, k, v, mask="causal", mask_offset=6, scale=0.5, workspace=workspace)
            np.testing.assert_allclose(found, reference(q, k, v, 0.5, 6), rtol=1e-12, atol=1e-12)

    def test_strides_and_new_results(self):
        packed = self.array(2, 7, 3, 4, 8)  # batch, token, (q, k, v), head, width
        q, k, v = (packed[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        result = self.context.attention(q, k, v, mask="causal")
        np.testing.assert_allclose(result, reference(q, k, v, offset=0), rtol=1e-12, atol=1e-12)
        job = self.context.attention_async(q, k, v)
        mixed = self.context.gemm_async(job, self.array(8, 8))
        self.assertEqual((2, 4, 7, 8), mixed.result().shape)

    def test_masks(self):
        q, k, v = self.array(2, 4, 5, 8), self.array(2, 2, 7, 8), self.array(2, 2, 7, 3)
        i, j = np.arange(5)[:, None], np.arange(7)
        keys, queries = (np.array(each, np.int32) for each in ([7, 4], [5, 3]))
        end = (keys - queries)[:, None, None, None]  # of each batch, the position of the first query
        exists = (j < keys[:, None, None, None]) & (i < queries[:, None, None, None])
        hides = lambda shown: np.where(shown, 0.0, -np.inf)
        cases = [({"window": 3, "mask": "causal", "mask_offset": 2}, hides((j <= i + 2) & (j > i - 1))),
                 ({"query_lengths": queries, "key_lengths": keys}, hides(exists)),
                 ({"query_lengths": queries, "key_lengths": keys, "mask": "causal_from_end"}, hides(exists & (j <= i + end))),
                 ({"mask": sg.Mask.CAUSAL_FROM_END}, hides(j <= i + 2))]
        for shape in [(7,), (5, 7), (4, 1, 7), (2, 1, 5, 7), (2, 4, 5, 7)]:
            bias, shown = self.array(*shape), self.random.random(shape) < 0.7
            bias[..., 1] = -np.inf
            cases += [({"bias": bias}, bias), ({"visible": shown}, hides(shown)),
                      ({"bias": bias, "visible": shown.astype(np.uint8)}, bias + hides(shown))]
        cases.append(({"bias": np.broadcast_to(self.array(5, 7), (2, 4, 5, 7)).copy()[:1, :1]}, None))
        for options, added in cases:
            added = options["bias"] if added is None else added
            with self.subTest(options=options):
                expected = reference(q, k, v, added=added)
                placed = {name: self.place(x) if name.endswith("lengths") or name == "bias" else x for name, x in options.items()}
                np.testing.assert_allclose(self.run_on(q, k, v, **placed), expected, rtol=1e-12, atol=1e-12)
                np.testing.assert_allclose(self.context.attention(q, k, v, **options), expected, rtol=1e-12, atol=1e-12)
                d_out, step = self.array(*expected.shape), 1e-6 * self.array(*q.shape)
                losses = [(d_out * reference(each, k, v, added=added)).sum() for each in (q + step, q - step)]
                dq, dk, dv = self.context.attention_backward(q, k, v, d_out, **options)
                self.assertAlmostEqual((losses[0] - losses[1]) / 2, (dq * step).sum(), delta=1e-10)

    def test_a_cache_grows_under_a_graph(self):
        q, k, v, out = self.array(2, 1, 4), self.array(2, 6, 4), self.array(2, 6, 4), np.zeros((2, 1, 4))
        length = np.array([0], np.int32)
        with self.context.graph() as graph:
            graph.attention(q, k, v, out, key_lengths=length)
            for n in range(7):
                length[0] = n
                graph.run()
                np.testing.assert_allclose(out, reference(q, k[:, :n], v[:, :n]) if n else 0 * out, rtol=1e-12, atol=1e-12)

    def test_gradients(self):
        q, k, v, d_out = (self.array(2, *shape) for shape in [(4, 5, 3), (2, 6, 3), (2, 6, 2), (4, 5, 2)])
        for offset in (None, 1):
            mask = {} if offset is None else {"mask": "causal", "mask_offset": offset}
            found = self.context.attention_backward(q, k, v, d_out, **mask)
            for operand, gradient in zip((q, k, v), found):
                self.assertEqual(operand.shape, gradient.shape)
                for index in np.ndindex(operand.shape):
                    kept, losses = operand[index], []
                    for step in (1e-6, -1e-6):
                        operand[index] = kept + step
                        losses.append((d_out * reference(q, k, v, offset=offset)).sum())
                    operand[index] = kept
                    self.assertAlmostEqual((losses[0] - losses[1]) / 2e-6, gradient[index], delta=1e-7)
        packed = np.zeros((2, 6, 2, 5))  # dk and dv of each token
        dk, dv = packed[..., :3].transpose(0, 2, 1, 3), packed[..., 3:].transpose(0, 2, 1, 3)
        apart = self.context.attention_backward(q, k, v, d_out)
        self.context.attention_backward(q, k, v, d_out, dk=dk, dv=dv)  # one between the heads of the other
        np.testing.assert_allclose(dk, apart[1], rtol=1e-12)
        np.testing.assert_allclose(dv, apart[2], rtol=1e-12)
        with self.assertRaisesRegex(sg.InvalidArgument, "overlap"):  # an element of both
            self.context.attention_backward(q, k, v, d_out, dk=dk, dv=packed[..., 2:4].transpose(0, 2, 1, 3))
        dv = np.zeros_like(v)
        result = self.context.attention_backward(q, k, v, d_out, dq=False, dk=False, dv=dv)
        self.assertEqual((None, None), result[:2])
        self.assertIs(dv, result[2])
        np.testing.assert_allclose(dv, self.context.attention_backward(q, k, v, d_out)[2], rtol=1e-12)
        for call, message in [
            (lambda: self.context.attention_backward(q, k, v, q), r"d_out has shape \(2, 4, 5, 3\); it must be \(2, 4, 5, 2\)"),
            (lambda: self.context.attention_backward(q, k, v, d_out, dk=v), r"dk has shape \(2, 2, 6, 2\); it must be"),
        ]:
            with self.subTest(message=message), self.assertRaisesRegex(sg.InvalidArgument, message):
                call()

    def test_errors_name_the_argument(self):
        q, k = self.array(2, 3, 4), self.array(2, 5, 4)
        cases = [
            (lambda: self.context.attention(q[0, 0], k, k), "q has 1 dimensions"),
            (lambda: self.context.attention(q, k[..., :3], k), r"k has shape \(2, 5, 3\); it must be \(2, 5, 4\)"),
            (lambda: self.context.attention(q, k, k[:, :4]), r"v has shape \(2, 4, 4\); it must be \(2, 5, 4\)"),
            (lambda: self.context.attention(q, k, k.astype(np.float32)), "v is f32 and q is f64"),
            (lambda: self.context.attention(q[..., ::2], k[..., :2], k), "elements of a token of q do not follow"),
            (lambda: self.context.attention(q, k, k, np.zeros((2, 3, 5))), r"out has shape \(2, 3, 5\); it must be \(2, 3, 4\)"),
            (lambda: self.context.attention(q, k, k, mask="upper"), "mask is 'upper'"),
            (lambda: self.context.attention(q, k, k, mask_offset=1), "mask_offset is 1"),
            (lambda: self.context.attention(q, k, k, scale=np.inf), "scale is inf"),
            (lambda: self.context.attention(q, k, k, workspace=-1), "workspace"),
            (lambda: self.context.attention(q, k, k, window=2), "window is 2 and mask is none"),
            (lambda: self.context.attention(q, k, k, window=-2, mask="causal"), "window is -2"),
            (lambda: self.context.attention(q, k, k, bias=np.zeros((3, 4))), r"bias has shape \(3, 4\); it must be \(1, 2, 3, 5\), or 1 in"),
            (lambda: self.context.attention(q, k, k, bias=np.zeros((3, 1))), r"bias has shape \(3, 1\)"),
            (lambda: self.context.attention(q, k, k, bias=np.zeros((3, 5), np.float32)), "bias is f32 and q is f64"),
            (lambda: self.context.attention(q, k, k, bias=np.zeros((5, 3)).T), "keys of a query of bias do not follow"),
            (lambda: self.context.attention(q, k, k, visible=np.zeros((3, 5))), "visible is f64; it must be bool, uint8 or i8"),
            (lambda: self.context.attention(q, k, k, key_lengths=np.zeros(2, np.int32)), r"key_lengths has shape \(2,\); it must be \(1,\)"),
            (lambda: self.context.attention(q, k, k, key_lengths=np.zeros(1, np.float32)), "key_lengths is f32; it must be i32"),
        ]
        for call, message in cases:
            with self.subTest(message=message), self.assertRaisesRegex(sg.InvalidArgument, message):
                call()


if __name__ == "__main__":
    unittest.main()
