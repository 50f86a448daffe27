# SPDX-License-Identifier: Apache-2.0
"""ONNX's own tests of single operators, as far as an operation here computes them. They are files of Debian's libonnx-testdata:
a model of one node, its inputs and its outputs.

Axes are brought to the end by NumPy, since operations work on rows; everything else is computed by the library."""

import collections
import pathlib
import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest

try:
    import onnx
    from onnx import numpy_helper
except ImportError:
    onnx = None

FOLDER = pathlib.Path("/usr/share/libonnx-testdata/data/node")
FLOATS = (np.float16, np.float32, np.float64)


class NotHere(Exception):
    """The test needs what no operation here has."""


def need(holds, what):
    if not holds:
        raise NotHere(what)


class Runner:
    """Runs nodes on a context, with operands in its device's memory."""

    def __init__(self, context):
        self.context = context
        self.unified = context.device.unified_memory

    def put(self, array):
        array = np.ascontiguousarray(array)
        if self.unified:
            return array
        matrix = self.context.buffer(array.nbytes).matrix(array.shape, f"f{8 * array.itemsize}")
        return self.context.copy(matrix, array)

    def empty(self, like):
        return np.empty_like(like) if self.unified else self.put(np.zeros_like(like))

    def get(self, result, like):
        return result if self.unified else self.context.copy(np.empty_like(like), result)

    def rows(self, function, x, *more, **options):
        """A function of rows, by its method."""
        need(x.dtype in FLOATS and x.ndim > 0, f"{x.dtype} of {x.ndim} dimensions")
        x = np.ascontiguousarray(x)
        out = self.empty(x)
        function(self.put(x), *(self.put(each) for each in more), out=out, **options)
        return self.get(out, x)

    def elementwise(self, function, x, *more):
        return self.rows(lambda *operands, out: self.context.elementwise(function, *operands, out=out), x, *more)

    def two(self, function, x, y):
        need(x.shape == y.shape, "broadcasting")
        return self.elementwise(function, x, y)

    def softmax(self, x, axis=-1):
        return np.moveaxis(self.rows(self.context.softmax, np.moveaxis(x, axis, -1)), -1, axis)

    def layer_norm(self, x, scale, bias=None, axis=-1, epsilon=1e-5):
        columns = int(np.prod(x.shape[axis:]))
        vectors = [each.reshape(columns) for each in (scale, bias) if each is not None]
        return self.rows(self.context.layer_norm, x.reshape(-1, columns), *vectors, epsilon=epsilon).reshape(x.shape)

    def gemm(self, a, b, c=None, alpha=1.0, beta=1.0, transA=0, transB=0):  # noqa: N803, as ONNX has them
        rows, cols = a.shape[1 if transA else 0], b.shape[0 if transB else 1]
        out = np.zeros((rows, cols), a.dtype) if c is None else np.array(np.broadcast_to(c, (rows, cols)))
        options = {"alpha": alpha, "beta": 0.0 if c is None else beta}
        return self.context.gemm(a, b, out, op_a="NT"[transA], op_b="NT"[transB], **options)

    def matmul(self, a, b):
        return self.context.gemm(a, b)

    def recurrent(self, gates, x, w, r, b=None, sequence_lens=None, *states, hidden_size, layout=0, direction="forward", **options):
        """(Y, Y_h) of one direction, or (Y, Y_h, Y_c)."""
        need(direction == "forward" and len(w) == 1 and sequence_lens is None and not states, "directions, lengths or states")
        before = not options.pop("linear_before_reset", 0)
        need(not options, str(options))
        x = np.ascontiguousarray(x.transpose(1, 0, 2) if layout else x)
        steps, batch, _ = x.shape
        biases = (None, None) if b is None else [self.put(each) for each in np.split(b[0], 2)]
        results = [np.zeros((steps, batch, hidden_size), x.dtype)] + [np.zeros((batch, hidden_size), x.dtype) for _ in range(gates - 2)]
        placed = [self.put(each) for each in results]
        operands = [self.put(x), self.put(w[0]), self.put(r[0]), *biases]
        if gates == 4:
            self.context.lstm(*operands, out=placed[0], hn=placed[1], cn=placed[2], gate_order="onnx")
        else:
            self.context.gru(*operands, out=placed[0], hn=placed[1], reset_before=before, gate_order="onnx")
        y, *others = (self.get(each, like) for each, like in zip(placed, results))
        y = y.transpose(1, 0, 2)[:, :, None] if layout else y[:, None]
        return (y, *(each[:, None] if layout else each[None] for each in others))

    def cast(self, x, to):
        target = onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[to]
        need(x.dtype in FLOATS and target in FLOATS and to != onnx.TensorProto.BFLOAT16, f"{x.dtype} to {to}")
        out = np.empty(x.shape, target)
        return self.get(self.context.convert(self.put(x), out if self.unified else self.empty(out)), out)

    def gather(self, table, indices, axis=0):
        need(table.dtype in FLOATS and indices.dtype == np.int64, f"{table.dtype} by {indices.dtype}")
        table = np.moveaxis(table, axis, 0)
        rows = table.reshape(len(table), -1)
        out = np.empty((indices.size, rows.shape[1]), rows.dtype)
        numbers = self.put(indices.reshape(-1).view(np.float64)) if not self.unified else indices.reshape(-1)
        if not self.unified:  # the bytes of the indices, as the type that describes them
            numbers = sg.Matrix._at(numbers.address, (2 * indices.size,), (4,), "i32", False, *self.context._place, 0, numbers)
        result = self.context.gather(
            self.put(rows), numbers, out if self.unified else self.empty(out), index_type=None if self.unified else "i64", from_end=True
        )
        found = self.get(result, out).reshape(*indices.shape, *table.shape[1:])
        return np.moveaxis(found, range(indices.ndim), range(axis, axis + indices.ndim))

    def conv(self, x, w, bias=None, auto_pad=b"NOTSET", dilations=(1, 1), group=1, kernel_shape=None, pads=(0, 0, 0, 0), strides=(1, 1)):
        need(x.dtype in FLOATS and x.ndim == 4, f"{x.dtype} of {x.ndim} dimensions")
        if auto_pad.startswith(b"SAME"):
            ends = [
                max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
                for n, s, d, k in zip(x.shape[2:], strides, dilations, w.shape[2:])
            ]
            starts = [(n + (auto_pad == b"SAME_LOWER")) // 2 for n in ends]
            pads = (*starts, *(n - start for n, start in zip(ends, starts)))
        return self.context.conv2d(
            x, w, bias, stride=strides, padding=pads, dilation=dilations, groups=group
        )

    def conv_transpose(
        self, x, w, auto_pad=b"NOTSET", dilations=None, group=1, kernel_shape=None, output_padding=None, output_shape=None,
        pads=None, strides=None,
    ):  # fmt: skip
        """The gradient of a convolution with respect to its images; one dimension is a row of two."""
        need(x.ndim in (3, 4), f"{x.ndim - 2} dimensions")
        ones = [1] * (x.ndim - 2)
        dilations, strides, extra = dilations or ones, strides or ones, output_padding or [0 * each for each in ones]
        full = [s * (n - 1) + e + d * (k - 1) + 1 for n, s, e, d, k in zip(x.shape[2:], strides, extra, dilations, w.shape[2:])]
        if auto_pad.startswith(b"SAME"):
            output_shape = [n * s for n, s in zip(x.shape[2:], strides)]
        if output_shape:
            size, ends = list(output_shape), [max(n - wanted, 0) for n, wanted in zip(full, output_shape)]
            starts = [(n + (auto_pad != b"SAME_UPPER")) // 2 for n in ends]
            pads = starts + [n - start for n, start in zip(ends, starts)]
        else:
            pads = pads or [0] * (2 * len(ones))
            size = [n - start - end for n, start, end in zip(full, pads, pads[len(ones) :])]
        if x.ndim == 3:
            x, w, size, strides, dilations = x[:, :, None], w[:, :, None], [1, *size], [1, *strides], [1, *dilations]
            pads = [0, pads[0], 0, pads[1]]
        dx = self.context.conv2d_backward(
            x, None, w, dbias=False, size=size, stride=strides, padding=pads, dilation=dilations, groups=group
        )[0]
        return dx[:, :, 0] if len(ones) == 1 else dx


OPERATORS = {
    "Add": lambda on, x, y: on.two("add", x, y),
    "Mul": lambda on, x, y: on.two("multiply", x, y),
    "Relu": lambda on, x: on.elementwise("relu", x),
    "Sigmoid": lambda on, x: on.elementwise("sigmoid", x),
    "Tanh": lambda on, x: on.elementwise("tanh", x),
    "Softmax": Runner.softmax,
    "LayerNormalization": Runner.layer_norm,
    "Gemm": Runner.gemm,
    "MatMul": Runner.matmul,
    "Cast": Runner.cast,
    "Gather": Runner.gather,
    "LSTM": lambda on, *inputs, **options: on.recurrent(4, *inputs, **options),
    "GRU": lambda on, *inputs, **options: on.recurrent(3, *inputs, **options),
    "Conv": Runner.conv,
    "ConvTranspose": Runner.conv_transpose,
}
# The fewest tests of each operator that must pass: the files have these many that an operation here computes.
EXPECTED = {"Add": 1, "Mul": 2, "Relu": 1, "Sigmoid": 2, "Tanh": 2, "Softmax": 7, "LayerNormalization": 18, "Gemm": 11, "MatMul": 3,
            "Cast": 6, "Gather": 4, "Conv": 6, "ConvTranspose": 9, "LSTM": 3, "GRU": 4}


def tensors(folder, kind):
    paths = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.partition("_")[2]))
    return [numpy_helper.to_array(onnx.load_tensor(str(path))) for path in paths]


@unittest.skipIf(onnx is None or not FOLDER.is_dir(), "python3-onnx and libonnx-testdata are not installed")
class OnnxNodes(DeviceTest):
    def test_nodes(self):
        on, passed, left_out = Runner(self.context), collections.Counter(), []
        for folder in sorted(FOLDER.iterdir()):
            nodes = onnx.load(str(folder / "model.onnx")).graph.node if (folder / "model.onnx").is_file() else ()
            if len(nodes) != 1 or nodes[0].op_type not in OPERATORS:
                continue
            node = nodes[0]
            options = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
            with self.subTest(test=folder.name):
                for data in sorted(folder.glob("test_data_set_*")):
                    inputs, outputs = tensors(data, "input")[: len(node.input)], tensors(data, "output")
                    try:
                        found = OPERATORS[node.op_type](on, *inputs, **options)
                    except NotHere as reason:
                        left_out.append(f"{folder.name}: {reason}")
                        continue
                    results = found if isinstance(found, tuple) else (found,)
                    for one, wanted in zip([each for each, name in zip(results, node.output) if name], outputs):
                        np.testing.assert_allclose(one, wanted, rtol=1e-3, atol=1e-7)
                        self.assertEqual((one.shape, one.dtype), (wanted.shape, wanted.dtype))
                    passed[node.op_type] += 1
        print(f"{passed.total()} tests: {dict(passed)}; left out: {', '.join(left_out)}")
        for operator, fewest in EXPECTED.items():
            self.assertGreaterEqual(passed[operator], fewest, operator)


if __name__ == "__main__":
    unittest.main()
