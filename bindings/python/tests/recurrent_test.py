# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers against NumPy, and their gradients against central differences."""

import os
import unittest

import numpy as np
import streamgemm as sg

DEVICE = os.environ.get("SG_TEST_DEVICE", "cpu")
NAMES = {"float64": "f64", "float32": "f32", "float16": "f16"}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference(cell, x, w_ih, w_hh, bias_ih, bias_hh, h0, c0=None, reset_before=False):
    """(y, hn, cn) of x of (steps, batch, inputs), with gates in the default order."""
    x, w_ih, w_hh, bias_ih, bias_hh, h = (a.astype(np.float64) for a in (x, w_ih, w_hh, bias_ih, bias_hh, h0))
    c, y = None if c0 is None else c0.astype(np.float64), []
    for step in x:
        own = step @ w_ih.T + bias_ih
        if cell == "lstm":
            i, f, g, o = np.split(own + h @ w_hh.T + bias_hh, 4, axis=-1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            r, z, n = np.split(own, 3, axis=-1)
            of_r, of_z, of_n = np.split(h @ w_hh.T + bias_hh, 3, axis=-1)
            r, z = sigmoid(r + of_r), sigmoid(z + of_z)
            size = h.shape[-1]
            n = np.tanh(n + (r * h) @ w_hh[2 * size :].T + bias_hh[2 * size :] if reset_before else n + r * of_n)
            h = (1 - z) * n + z * h
        y.append(h)
    return np.array(y), h, c


class Recurrent(unittest.TestCase):
    steps, batch, inputs, hidden = 5, 3, 4, 6

    def setUp(self):
        self.context = sg.Context(DEVICE, check_hazards=True)
        self.random = np.random.default_rng(8)

    def tearDown(self):
        self.context.close()

    def array(self, *shape, dtype=np.float64):
        return self.random.uniform(-1, 1, shape).astype(dtype)

    def layer(self, gates, dtype=np.float64):
        """x, w_ih, w_hh, bias_ih, bias_hh, h0."""
        rows = gates * self.hidden
        shapes = [(self.steps, self.batch, self.inputs), (rows, self.inputs), (rows, self.hidden), (rows,), (rows,),
                  (self.batch, self.hidden)]
        return [self.array(*shape, dtype=dtype) for shape in shapes]

    def place(self, array):
        """The array where the device computes."""
        if DEVICE == "cpu" or array is None:
            return array
        made = self.context.buffer(max(array.nbytes, 1)).matrix(array.shape, NAMES[array.dtype.name])
        self.context.copy(made, np.ascontiguousarray(array))
        return made

    def fetch(self, placed, like):
        return placed if DEVICE == "cpu" else self.context.copy(np.empty_like(like), placed)

    def like(self, *arrays):
        return [self.place(np.zeros_like(array)) for array in arrays]

    def test_cells_and_types(self):
        for dtype, tolerance in [(np.float64, 1e-12), (np.float32, 1e-5), (np.float16, 1e-2)]:
            with self.subTest(dtype=dtype.__name__):
                operands, c0 = self.layer(4, dtype), self.array(self.batch, self.hidden, dtype=dtype)
                wanted = reference("lstm", *operands, c0)
                zeros = [each.astype(dtype) for each in wanted]
                out, hn, cn = self.like(*zeros)
                found = self.context.lstm(*map(self.place, (*operands, c0)), out, hn=hn, cn=cn)
                self.assertIs(out, found[0])
                for one, other in zip(found, wanted):
                    np.testing.assert_allclose(self.fetch(one, other.astype(dtype)), other, rtol=tolerance, atol=tolerance)
                for before in (False, True):
                    operands = self.layer(3, dtype)
                    wanted = reference("gru", *operands, reset_before=before)
                    out, hn = self.like(*(each.astype(dtype) for each in wanted[:2]))
                    found = self.context.gru(*map(self.place, operands), out, hn=hn, reset_before=before)
                    self.assertEqual(2, len(found))
                    for one, other in zip(found, wanted):
                        np.testing.assert_allclose(self.fetch(one, other.astype(dtype)), other, rtol=tolerance, atol=tolerance)

    def test_layouts_and_new_results(self):
        operands, c0 = self.layer(4), self.array(self.batch, self.hidden)
        x, *others = operands
        wanted = reference("lstm", *operands, c0)
        y, hn, cn = self.context.lstm(np.ascontiguousarray(x.transpose(1, 0, 2)), *others, c0, batch_first=True)
        np.testing.assert_allclose(y, wanted[0].transpose(1, 0, 2), rtol=1e-12)
        np.testing.assert_allclose(cn, wanted[2], rtol=1e-12)
        both = np.zeros((self.steps, self.batch, 2 * self.hidden))
        self.context.lstm(x, *others, c0, both[..., : self.hidden], hn=False, cn=False)
        result = self.context.lstm(x, *others, c0, both[..., self.hidden :], hn=False, cn=False, reverse=True)
        self.assertEqual((None, None), result[1:])
        np.testing.assert_allclose(both[..., : self.hidden], wanted[0], rtol=1e-12)
        np.testing.assert_allclose(both[::-1, :, self.hidden :], reference("lstm", x[::-1], *others, c0)[0], rtol=1e-12)
        y, hn, cn = self.context.lstm(x[:, 0], *others[:4], others[4][0], c0[0])
        np.testing.assert_allclose(y, wanted[0][:, 0], rtol=1e-12)
        self.assertEqual((self.hidden,), hn.shape)
        swapped = [w.reshape(4, self.hidden, -1)[[0, 3, 1, 2]].reshape(w.shape) for w in others[:4]]
        y, *_ = self.context.lstm(x, *swapped, others[4], c0, gate_order="onnx")
        np.testing.assert_allclose(y, wanted[0], rtol=1e-12)

    def test_gradients(self):
        for cell, gates in [("lstm", 4), ("gru", 3)]:
            operands = self.layer(gates)
            states = [self.array(self.batch, self.hidden)] if cell == "lstm" else []
            reserve = np.empty((self.steps, self.batch, 5 * self.hidden))
            y, hn, *cn = getattr(self.context, cell)(*operands, *states, reserve=reserve)
            dy, dhn = self.array(*y.shape), self.array(*hn.shape)
            dcn = {"dcn": self.array(*hn.shape)} if cell == "lstm" else {}
            x, w_ih, w_hh, _, _, h0 = operands
            found = getattr(self.context, f"{cell}_backward")(x, w_ih, w_hh, y, reserve, h0, dy=dy, dhn=dhn, **dcn)
            everything = operands + states

            def loss():
                now = reference(cell, *everything)
                return sum((g * a).sum() for g, a in zip((dy, dhn, *dcn.values()), now))

            for gradient, operand in zip(found, everything):
                self.assertEqual(operand.shape, gradient.shape)
                for index in np.ndindex(operand.shape):
                    kept = operand[index]
                    operand[index] = kept + 1e-6
                    above = loss()
                    operand[index] = kept - 1e-6
                    self.assertAlmostEqual((above - loss()) / 2e-6, gradient[index], delta=1e-7)
                    operand[index] = kept
            dw = np.ones_like(w_hh)
            results = getattr(self.context, f"{cell}_backward")(
                x, w_ih, w_hh, y, reserve, h0, dy=dy, dhn=dhn, **dcn, dx=False, dw_ih=False, dw_hh=dw, dbias_ih=False,
                dbias_hh=False, dh0=False, accumulate=True,
            )
            self.assertIs(dw, results[2])
            self.assertIsNone(results[0])
            np.testing.assert_allclose(dw, 1 + found[2], rtol=1e-12)

    def test_graphs_record_it(self):
        operands = self.layer(3)
        reserve, graph = np.empty((self.steps, self.batch, 5 * self.hidden)), self.context.graph()
        y, hn = graph.gru(*operands, reserve=reserve)
        x, w_ih, w_hh, _, _, h0 = operands
        gradients = graph.gru_backward(x, w_ih, w_hh, y, reserve, h0, dhn=h0)
        graph.run()
        np.testing.assert_allclose(y, reference("gru", *operands)[0], rtol=1e-12)
        x *= 0.5
        graph.run()
        np.testing.assert_allclose(hn, reference("gru", *operands)[1], rtol=1e-12)
        self.assertEqual(6, len(gradients))

    def test_errors_name_the_argument(self):
        x, w_ih, w_hh, bias_ih, bias_hh, h0 = self.layer(4)
        on, y, reserve = self.context, np.zeros((5, 3, 6)), np.zeros((5, 3, 30))
        cases = [
            (lambda: on.lstm(x[0, 0], w_ih, w_hh), "x has 1 dimensions"),
            (lambda: on.lstm(x, w_ih, w_hh[:8]), r"w_hh has shape \(8, 6\); it must be \(24, 6\)"),
            (lambda: on.gru(x, w_ih, w_hh), r"w_hh has shape \(24, 6\); it must be \(24, 8\)"),
            (lambda: on.lstm(x, w_ih[:, :2], w_hh), r"w_ih has shape \(24, 2\); it must be \(24, 4\)"),
            (lambda: on.lstm(x, w_ih.astype(np.float32), w_hh), "w_ih is f32 and x is f64"),
            (lambda: on.lstm(x, np.asfortranarray(w_ih), w_hh), "the elements of w_ih do not follow each other"),
            (lambda: on.lstm(x, w_ih, w_hh, bias_ih[:3]), r"bias_ih has shape \(3,\); it must be \(24,\)"),
            (lambda: on.lstm(x, w_ih, w_hh, h0=h0[:1]), r"h0 has shape \(1, 6\); it must be \(3, 6\)"),
            (lambda: on.lstm(x, w_ih, w_hh, out=np.zeros((3, 5, 6))), r"out has shape \(3, 5, 6\); it must be \(5, 3, 6\)"),
            (lambda: on.lstm(x, w_ih, w_hh, reserve=np.zeros((5, 3, 6))), "reserve has shape"),
            (lambda: on.lstm(x, w_ih, w_hh, gate_order="other"), "gate_order is 'other'"),
            (lambda: on.lstm_backward(x, w_ih, w_hh, y, reserve, accumulate=True), "dw_ih is None; accumulate is True"),
            (lambda: on.lstm_backward(x, w_ih, w_hh, x, reserve), r"w_ih has shape \(24, 4\); it must be \(16, 4\)"),
        ]
        for call, message in cases:
            with self.subTest(message=message), self.assertRaisesRegex(sg.InvalidArgument, message):
                call()


if __name__ == "__main__":
    unittest.main()
