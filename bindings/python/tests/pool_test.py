# SPDX-License-Identifier: Apache-2.0
"""Pooling of images and its gradient against NumPy in f64."""

import itertools
import unittest

import numpy as np
from training_cases import TrainingCases


def pooled(x, dy, kernel, stride, padding, dilation, pooling):
    """Pooled NCHW images and, of their gradient dy, that of x."""
    (height, width), planes = x.shape[2:], x.reshape(-1, *x.shape[2:])
    out = [(n + before + after - d * (k - 1) - 1) // s + 1
           for n, k, s, d, before, after in zip((height, width), kernel, stride, dilation, padding[:2], padding[2:])]  # fmt: skip
    y, dx = np.zeros((len(planes), *out)), np.zeros_like(planes)
    for n, i, j in np.ndindex(y.shape):
        rows = [r for r in (i * stride[0] - padding[0] + a * dilation[0] for a in range(kernel[0])) if 0 <= r < height]
        columns = [c for c in (j * stride[1] - padding[1] + b * dilation[1] for b in range(kernel[1])) if 0 <= c < width]
        window, gradient = np.ix_(rows, columns), dy.reshape(y.shape)[n, i, j]
        values = planes[n][window]
        if pooling == "max":
            y[n, i, j] = values.max() if values.size else -np.inf
            if values.size:
                r, c = divmod(values.argmax(), len(columns))
                dx[n, rows[r], columns[c]] += gradient
        else:
            count = max(1, values.size) if pooling == "average_inside" else kernel[0] * kernel[1]
            y[n, i, j] = values.sum() / count
            dx[n][window] += gradient / count
    return y.reshape(*x.shape[:2], *out), dx.reshape(x.shape)


class Pooling(TrainingCases):
    def test_pooling(self):
        forms = (
            {"kernel": 2}, {"kernel": 3, "stride": 2, "padding": 1}, {"kernel": (2, 3), "stride": 1, "padding": (0, 1)},
            {"kernel": (3, 2), "stride": (1, 2), "dilation": (2, 1), "padding": (1, 0, 2, 1)},
        )  # fmt: skip
        for (form, pooling, layout), shape in itertools.product(
            itertools.product(forms, ("max", "average", "average_inside"), ("nchw", "nhwc")), self.cases(((2, 2, 6, 5),))
        ):
            pair = {key: (v, v) if isinstance(v, int) else v for key, v in {"padding": 0, "dilation": 1, "stride": form["kernel"], **form}.items()}
            pair["padding"] = (pair["padding"] * 2)[:4]
            order, back = ((0, 2, 3, 1), (0, 3, 1, 2)) if layout == "nhwc" else ((0, 1, 2, 3),) * 2
            x, values = self.drawn(*(shape[i] for i in order))
            found = self.context.pool2d(x, pooling=pooling, layout=layout, **form)
            dy, gradient = self.drawn(*found.shape)
            wanted, dx = pooled(values.transpose(back), gradient.transpose(back), pooling=pooling, **pair)
            self.check(wanted.transpose(order), found, 3)
            self.assertIs(found, self.context.pool2d(x, out=found, pooling=pooling, layout=layout, **form))
            options = {"pooling": pooling, "layout": layout, **form}
            self.check(dx.transpose(order), self.context.pool2d_backward(dy, x, **options), 3)
            out = self.place(np.ones(x.shape))
            self.assertIs(out, self.context.pool2d_backward(dy, x, dx=out, **options))
            self.check(dx.transpose(order), out, 3)
            if pooling != "max":
                self.check(dx.transpose(order), self.context.pool2d_backward(dy, None, size=shape[2:], **options), 3)


if __name__ == "__main__":
    unittest.main()
