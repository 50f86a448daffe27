# SPDX-License-Identifier: Apache-2.0
"""Mistakes: each message names the argument as Python spells it, the value that was given and the rule. Some are written here, others
are drawn from the methods, which are written from the model of the headers."""

import inspect
import re
import unittest

import numpy as np
import streamgemm as sg
from streamgemm._messages import in_python
from streamgemm._operations import ContextMethods
from streamgemm._tables import NAMES
from support import DeviceTest

C_NAMES = re.compile(r"desc|->|submit|\b[abc]_array|struct|NULL|\.data\b|sg_|nullptr|stride_[abchw]\b|\x01|Methods|array\(")
RULE = re.compile(r"must|which|cannot|; |none of|did you mean|more than|overlap|larger|agree|whose|is given|needs|no result type|has no|are needed|wanted")


class Mistakes(DeviceTest):
    def look(self, call, *words):
        """Checks the message of a call that must be refused: it has the words, in this order, and a rule."""
        with self.assertRaises((sg.Error, TypeError, OverflowError, LookupError)) as caught:
            call()
        message = str(caught.exception)
        with self.subTest(message=message):
            self.assertRegex(message, ".*?".join(rf"(?<![\w.]){re.escape(str(word))}" for word in words))
            self.assertRegex(message, RULE)
            self.assertNotRegex(message, C_NAMES)
            self.assertLess(len(message), 700)
        self.seen += 1

    def setUp(self):
        super().setUp()
        self.seen = 0

    def test_written(self):
        c = self.context
        a, wide, f32, i8 = np.ones((4, 4)), np.ones((4, 5)), np.ones((4, 4), np.float32), np.ones((4, 4), np.int8)
        z, stack = np.ones((4, 4), complex), np.ones((3, 4, 4))
        images, filters = np.ones((1, 2, 6, 6)), np.ones((3, 2, 3, 3))
        q, k = np.ones((1, 2, 5, 4)), np.ones((1, 3, 5, 4))
        raw = np.zeros(129, np.uint8)[1:].view(np.float64).reshape(4, 4)
        classes = np.array([0, 1, 2, 3])
        graph, pipeline, look = c.graph(), c.pipeline((4, 4)), self.look
        graph.gemm(a, a)
        # Shapes.
        look(lambda: c.gemm(a, wide.T), "(4, 4)", "(5, 4)", "4 columns of a", "5 rows of b")
        look(lambda: c.gemm(wide, a), "(4, 5)", "(4, 4)", "5 columns of a", "4 rows of b")
        look(lambda: c.gemm([a, a], [a, a, a]), "a, a list of 2", "b, a list of 3", "batches")
        look(lambda: c.gemm(stack, np.ones((2, 4, 4))), "(3, 4, 4)", "(2, 4, 4)", "batches")
        look(lambda: c.gemm(a, a, wide.copy()), "c has shape", "(4, 5)", "(4, 4)")
        look(lambda: c.matmul(a, a, out=wide.copy()), "out has shape", "(4, 5)", "(4, 4)")
        look(lambda: c.gemm([a, a.T.copy()[:, :3]], a), "a[1]", "a[0]", "share")
        look(lambda: c.gemm(a, a, bias=np.ones(3)), "bias", "(3,)", "(4, 4)")
        look(lambda: c.copy(a, wide), "src has shape", "(4, 5)", "dst", "(4, 4)", "equal")
        look(lambda: c.add(a, wide) if hasattr(c, "add") else c.elementwise("add", a, wide), "b", "(4, 5)", "(4, 4)")
        look(lambda: c.attention(q, k, k), "q.shape[-3] is 2", "k.shape[-3] is 3", "divide")
        look(lambda: c.conv2d(images, np.ones((3, 2, 7, 7))), "7", "7 rows", "6")
        look(lambda: c.conv2d(images, filters, padding=(0, 0), dilation=4), "3", "9 rows", "6")
        look(lambda: c.gather(a, np.ones((2, 4), np.int64)[:, ::2]), "indices")
        # Types.
        look(lambda: c.gemm(a, f32), "a.dtype is f64", "b.dtype is f32", "equal")
        look(lambda: c.gemm(a, a, f32.copy()), "c.dtype is f32", "f64")
        look(lambda: c.gemm(a.astype(int), a), "a", "int64")
        look(lambda: c.gemm(a, "b"), "b", "str")
        look(lambda: c.gemm(None, a), "a", "NoneType")
        look(lambda: c.softmax(i8), "i8", "must be")
        look(lambda: c.gemm(z, z, activation="relu"), "activation", "relu", "c128")
        look(lambda: c.gemm(i8, i8, alpha=0.5), "alpha", "0.5", "integer")
        # Memory.
        look(lambda: c.gemm(a, a, a), "c overlaps", "memory")
        look(lambda: c.gemm(a, a, beta=1), "beta is not 0", "c is read", "must be given")
        look(lambda: c.matmul(a, a, beta=1), "beta is not 0", "out is read", "must be given")
        look(lambda: c.gemm(a[:, ::2], a), "a has shape", "strides", "contiguous")
        # Options of GEMMs.
        look(lambda: c.gemm(a, a, op_a="X"), "op_a is 'X'", "none of", "'N'")
        look(lambda: c.gemm(a, a, op_b=7), "op_b is 7")
        look(lambda: c.gemm(a, a, compute="fast"), "compute is 'fast'", "none of", "exact")
        look(lambda: c.gemm(a, a, compute=77), "compute is 77", "none of")
        look(lambda: c.gemm(a, a, activation=77), "activation is 77", "none of")
        look(lambda: c.gemm(a, a, alpha="x"), "alpha is 'x'", "no number")
        look(lambda: c.gemm(a, a, alpha=a), "alpha is ndarray of shape (4, 4)", "no number")
        look(lambda: c.gemm(a, a, priority=9), "priority is 9", "from -1 to 1")
        look(lambda: c.gemm(a, a, priority=a), "priority is ndarray of shape (4, 4)", "no integer")
        look(lambda: c.gemm(a, a, stream=3), "stream is 3", "no Stream")
        look(lambda: c.gemm(a, a, after=[3]), "after[0] is 3", "no job")
        look(lambda: c.gemm(a, a, timeout=-1), "timeout is -1", "negative")
        look(lambda: c.gemm(a, a, label=3), "label is 3", "no string")
        look(lambda: c.gemm(a, a, options=a), "options is ndarray of shape (4, 4)", "no PlanOptions")
        look(lambda: c.gemm(a, a, options=sg.PlanOptions(parts=-3)), "parts is -3", "from 0")
        look(lambda: c.gemm(a, a, aplha=2), "Context.gemm", "aplha", "did you mean alpha?")
        look(lambda: c.matmul_async(a, a, ot=a), "Context.matmul_async", "ot", "did you mean out?")
        look(lambda: sg.matmul(a, a, ot=a), "streamgemm.matmul", "ot", "did you mean out?")
        look(lambda: graph.gemm(a, a, actvation="relu"), "Graph.gemm", "actvation", "did you mean activation?")
        # Groups.
        look(lambda: c.gemm_grouped([]), "products has 0", "from 1")
        look(lambda: c.gemm_grouped([(a, a), (a, wide.T)]), "products[1]", "b", "rows")
        look(lambda: c.gemm_grouped([(a, a), (a, f32)]), "products[1].a.dtype is f64", "products[1].b.dtype is f32", "equal")
        look(lambda: c.gemm_grouped([(a, a), (a, a, a)]), "products[1].c overlaps", "memory")
        look(lambda: c.gemm_grouped([(a, a, stack[0]), (a, a, stack[0])]), "products[1].c overlaps products[0].c", "memory")
        look(lambda: c.gemm_grouped([(a, stack[0]), (a, a, stack[0])]), "products[1].c overlaps what products[0] reads")
        look(lambda: c.gemm_grouped([(a[:0], a), (a, a, stack[0]), (a, a, stack[0])]), "products[2].c overlaps products[1].c")
        look(lambda: c.gemm_grouped([{"a": a, "b": a, "compute": "f7"}]), "products[0]", "compute is 'f7'", "none of")
        # Other operations.
        look(lambda: c.conv2d(images, filters, stride=0), "stride is 0", "from 1")
        look(lambda: c.conv2d(images, filters, dilation=(1, 0)), "dilation is 0", "from 1")
        look(lambda: c.conv2d(images, filters, padding=-1), "padding is -1", "from 0")
        look(lambda: c.conv2d(images, filters, groups=3), "groups is 3", "divide")
        look(lambda: c.conv2d(images, filters, layout="nchww"), "layout is 'nchww'", "none of", "nchw")
        look(lambda: c.im2col(images, 0), "kernel is 0", "from 1")
        look(lambda: c.elementwise("relo", a), "function is 'relo'", "none of", "relu")
        look(lambda: c.layer_norm(a, epsilon=-1.0), "epsilon is -1", "not negative")
        look(lambda: c.layer_norm(a, epsilon=a), "epsilon is ndarray of shape (4, 4)", "no number")
        look(lambda: c.rotary(a, theta=-1.0), "theta is -1", "positive")
        look(lambda: c.rotary(a, cos=np.ones((4, 2))), "cos is given", "sin is not", "both")
        look(lambda: c.rotary(a, head_size=3), "head_size is 3", "divisor", "4")
        look(lambda: c.softmax(a, mask="cause"), "mask is 'cause'", "none of", "causal")
        look(lambda: c.axpby(a, wide.copy()), "c has shape", "(4, 5)", "(4, 4)")
        look(lambda: c.custom(3), "function is 3", "called")
        look(lambda: c.row_reduce(a, "median"), "reduction is 'median'", "none of", "mean")
        look(lambda: c.row_reduce(a, axis=2), "axis is 2", "2 dimensions")
        look(lambda: c.cross_entropy(a, classes[:3]), "indices has shape (3,)", "(4,)")
        look(lambda: c.cross_entropy(a, wide), "indices has elements of f64", "i32 or i64")
        look(lambda: c.cross_entropy_backward(a, classes, scale="x"), "scale", "'x'")
        look(lambda: c.layer_norm_backward(a, a, np.ones(3)), "gamma has shape (3,)", "(4,)")
        look(lambda: c.scatter_add(a, wide, classes), "x has rows of 5 elements", "those of table have 4")
        look(lambda: c.sgd(a, wide), "gradient has shape (4, 5)", "(4, 4)")
        look(lambda: c.sgd(a, stack[0], momentum=0.5), "momentum_buffer is None", "given")
        look(lambda: c.adam(a, stack[0], stack[1], stack[2], step=0), "step is 0", "from 1")
        look(lambda: c.pool2d(images, 7), "kernel is 7", "7 rows", "6")
        look(lambda: c.pool2d(images, 2, pooling="sum"), "pooling is 'sum'", "none of", "average")
        look(lambda: c.pool2d_backward(images, None, 2), "x is None", "reads it")
        look(lambda: sg.SGD(c, [a], lr="x"), "lr is 'x'", "no number")
        look(lambda: sg.Adam(c, a), "parameters is ndarray of shape (4, 4)", "must be a list")
        look(lambda: sg.SGD(c, [a]).step([wide]), "gradients[0]", "gradient has shape (4, 5)", "(4, 4)")
        look(lambda: c.custom(print, reads=a), "reads is ndarray of shape (4, 4)", "tuple or a list")
        # Objects.
        look(lambda: sg.Context("cpu", compute_lanes=-1), "compute_lanes is -1", "from 0")
        look(lambda: sg.Context("cpu", job_limit="x"), "job_limit is 'x'")
        look(lambda: sg.Context("cpu", memory_limit="8 lots"), "memory_limit is '8 lots'", "8MiB")
        look(lambda: sg.Context("cpu", memory_limt=8), "memory_limt", "did you mean memory_limit?")
        look(lambda: sg.Context("no-such"), "no-such")
        look(lambda: sg.PlanOptions(tile_n_=3), "tile_n_", "did you mean tile_n?")
        look(lambda: sg.PlanOptions(split="q"), "split is 'q'", "none of")
        look(lambda: c.stream(priority=5), "priority is 5", "from -1 to 1")
        look(lambda: graph.set_gemm(7, a, a), "index is 7", "1 submissions")
        look(lambda: pipeline.stage((4, 4), weights=a), "weights is ndarray of shape (4, 4)", "sequence")
        look(lambda: pipeline.stage((4, 4), weights=3), "weights is 3", "sequence")
        look(lambda: c.pipeline((4, 4), memory_limit="none"), "memory_limit is 'none'", "8MiB")
        look(lambda: sg.Trace("/no/such/folder/a.html"), "path is \"/no/such/folder/a.html\"", "written")
        look(lambda: sg.Trace("run.htm"), "path is \"run.htm\"", ".html")
        self.assertGreaterEqual(self.seen, 60)

    def test_drawn_from_the_methods(self):
        """Each option of each operation gets an object that it cannot be, each operand a text."""
        x, classes = np.ones((4, 4), np.float32), np.array([0, 1, 2, 3])
        for name in (n for n in NAMES if hasattr(ContextMethods, n) and n != "gemm_grouped"):
            method = getattr(self.context, name)
            parameters = [p for p in inspect.signature(method).parameters.values()]
            required = [p.name for p in parameters if p.default is p.empty]
            filled = {n: "relu" if n == "function" else 1.0 if n in ("low", "high") else 1 if n == "kernel" else classes if n == "indices" else x for n in required}
            for p in parameters:
                if isinstance(p.default, str) and p.name != "layout":
                    self.look(lambda p=p: method(**{**filled, p.name: "nonsense"}), f"{p.name} is 'nonsense'")
                elif type(p.default) in (int, float) and p.name not in ("priority", "trace_id"):  # of every submission, looked at last
                    self.look(lambda p=p: method(**{**filled, p.name: "nonsense"}), p.name, "'nonsense'")
                elif p.name == required[0] and p.name != "function":
                    self.look(lambda p=p: method(**{**filled, p.name: "nonsense"}), f"{p.name} is a str")
        self.assertGreater(self.seen, 75)


class Values(unittest.TestCase):
    """Names are translated, values are not: however they look."""

    def test_a_path_and_a_label_stay(self):
        for path in ("/data/src/dst/x.json", "/no/such/desc->a_array/x.json", "/no/such/submit/bytes/x.json"):
            with self.assertRaises(sg.InvalidArgument) as caught:
                sg.Trace(path)
            self.assertIn(f'path is "{path}"', str(caught.exception))
        for label in ("src->dst", "a_array", "desc->a.rows"):
            with sg.Context("sim:h200?fail-launch=1") as context:
                job = context.gemm_async(np.ones((4, 4)), np.ones((4, 4)), label=label)
                self.assertIn(label, str(job.exception()))

    def test_forms(self):
        for operation, c, python in (
            ("gemm", "\x01desc->a.dtype is f64 and \x01desc->b.rows is 3", "a.dtype is f64 and b.shape[-2] is 3"),
            ("", "\x01submit->plan->tile_m is -1", "tile_m is -1"),
            ("", "\x01submit->timeout_ns is -1", "timeout is -1"),
            ("gemm_grouped", "\x01descs[2]->c overlaps \x01descs[2]->a", "products[2].c overlaps products[2].a"),
            ("gemm", "\x01desc->a_array[3] is \x01NULL", "a[3] is at address 0"),
            ("gemm", "\x01desc->c_array, desc->c_array", "c, desc->c_array"),
            ("matmul", "\x01desc->c is 4 x 4", "out is 4 x 4"),
            ("attention", "\x01desc->kv_heads is 3", "k.shape[-3] is 3"),
            ("conv2d", "\x01desc->windows.stride_h is 0", "stride is 0"),
            ("softmax", "\x01desc->y.ld is 3", "out.strides is 3"),
        ):  # fmt: skip
            self.assertEqual(in_python(c, operation), python)


if __name__ == "__main__":
    unittest.main()
