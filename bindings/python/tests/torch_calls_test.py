# SPDX-License-Identifier: Apache-2.0
"""Calls of streamgemm.torch: operands in place, lifetimes, errors, and the order of streams."""

import gc
import itertools
import math
import unittest

import streamgemm as sg
from torch_cases import DEVICE, PLACES, TorchTest, randn, torch


class Recorder:
    """A context that keeps the arguments of each call."""

    def __init__(self, context):
        self.context, self.calls = context, []

    def __getattr__(self, name):
        def call(*operands, **named):
            self.calls.append((operands, named))
            return getattr(self.context, name)(*operands, **named)

        return call


class Operands(TorchTest):
    def places(self, name, given, **how):
        """The operands of both passes, which must lie in the memory of what was given."""
        recorder = Recorder(self.context)
        made = self.call(name, *given, context=recorder, **how)
        made.backward(torch.ones_like(made))
        (forward, _), (backward, named) = recorder.calls
        return forward, backward, named

    def test_indices_of_i64(self):
        table, classes = torch.arange(12.0).reshape(4, 3), torch.tensor([[2, 0], [3, 1]])  # PyTorch's usual type
        self.assertTrue(torch.equal(torch.as_tensor(self.context.gather(table.numpy(), classes)), table[classes]))
        losses = self.context.cross_entropy(table.numpy()[:2], classes[:, 1].contiguous())
        wanted = torch.nn.functional.cross_entropy(table[:2], classes[:, 1], reduction="none")
        self.assertTrue(torch.allclose(torch.as_tensor(losses)[:, 0], wanted))
        with self.assertRaisesRegex(sg.InvalidArgument, r"indices has shape \(2,\) and strides \(2,\); they must be contiguous"):
            self.context.cross_entropy(table.numpy()[:2], torch.arange(4).reshape(2, 2)[:, 1])

    def test_no_copies(self):
        packed = randn(2, 6, 3 * 4 * 5, grad=False).reshape(2, 6, 3, 4, 5).permute(2, 0, 3, 1, 4)  # heads of q, k and v beside each other
        last = torch.channels_last
        cases = (
            ("linear", (randn(2, 3, 4), randn(5, 4))),
            ("linear", (randn(4, 3).T, randn(4, 5).T)),
            ("linear", (randn(7, 9)[1:6, 2:6], randn(9, 8)[::2, 4:])),
            ("attention", packed),
            ("attention", (randn(2, 3, 4, 5), randn(2, 3, 4, 5), randn(2, 3, 4, 5))),
            ("conv2d", (randn(2, 3, 6, 5), randn(4, 3, 2, 2))),
            ("conv2d", (randn(2, 3, 6, 5).to(memory_format=last), randn(4, 3, 2, 2).to(memory_format=last))),
            ("conv2d", (randn(5, 3, 6, 5)[1::2], randn(4, 3, 2, 2))),
        )
        for name, given in cases:
            given = [x.detach().requires_grad_() for x in given]
            with self.subTest(name, strides=[x.stride() for x in given]):
                forward, backward, _ = self.places(name, given)
                addresses = [x.data_ptr() for x in given]
                self.assertEqual(addresses, [x.data_ptr() for x in forward[: len(given)]])
                self.assertTrue(set(addresses) <= {x.data_ptr() for x in backward if x is not None})

    def test_only_needed_gradients(self):
        for name, shapes in (("linear", ((3, 4), (5, 4), (5,))), ("conv2d", ((2, 3, 5, 5), (4, 3, 2, 2), (4,)))):
            for needed in itertools.product((False, True), repeat=3):
                if not any(needed):
                    continue
                given = [randn(*shape, grad=grad) for shape, grad in zip(shapes, needed)]
                with self.subTest(name, needed=needed):
                    _, (_, x, w), named = self.places(name, given)
                    self.assertEqual(needed, (w is not None, x is not None, named["dbias"] is not False))
        given = [randn(1, 2, 3, 4, grad=grad) for grad in (False, True, False)]
        _, _, named = self.places("attention", given)
        self.assertEqual([True, False, True], [named[key] is False for key in ("dq", "dk", "dv")])

    def test_freed_early(self):
        made = []
        for _ in range(20):
            x, w, bias = randn(40, 30), randn(20, 30), randn(20)
            y = self.call("linear", x * 2, w * 3, bias * 4)
            made.append((x, w, y, (x.detach() * 2 @ (w.detach() * 3).T) + bias.detach() * 4))
            del bias
            gc.collect()
            trash = [torch.full((40, 30), math.nan, dtype=torch.float64) for _ in range(8)]
            del trash
        for x, w, y, known in made:
            torch.testing.assert_close(y.detach(), known)
            y.sum().backward()
            torch.testing.assert_close(x.grad, (2 * 3 * w.detach().sum(0)).expand(40, 30))

    def test_a_result_outlives_its_context(self):
        with sg.Context(DEVICE) as other:
            made = self.call("linear", randn(3, 4), randn(2, 4), context=other)
        self.assertFalse(bool(made.isnan().any()))
        with self.assertRaises(sg.InvalidHandle):
            made.sum().backward()


class Errors(TorchTest):
    def test_each_names_the_argument(self):
        x, w, q, images, filters = randn(3, 4), randn(5, 4), randn(2, 3, 4, 5), randn(2, 4, 6, 5), randn(6, 4, 3, 3)
        cases = (
            ("linear", ([1.0], w), {}, TypeError, "input is a list; it must be a torch.Tensor"),
            ("linear", (x.to(torch.int32), w), {}, sg.InvalidArgument, "input has elements of torch.int32; it must have torch.float64"),
            ("linear", (x, w.float()), {}, sg.InvalidArgument, "weight has elements of torch.float32; it must have torch.float64"),
            ("linear", (x, None), {}, TypeError, "weight is a NoneType"),
            ("linear", (x.detach().to_sparse(), w), {}, sg.InvalidArgument, "input is a torch.sparse_coo tensor"),
            ("linear", (x.to("meta"), w), {}, sg.InvalidArgument, "input is .* on meta"),
            ("linear", (x[:, :2], w), {}, sg.InvalidArgument, r"input has shape \(3, 2\); it must be \(3, 4\)"),
            ("linear", (x, w[None]), {}, sg.InvalidArgument, "weight has shape .* it must have 1 or 2 dimensions"),
            ("linear", (x, w, randn(4)), {}, sg.InvalidArgument, r"bias has shape \(4,\); it must be \(5,\)"),
            ("linear", (x, w), {"compute": "fast"}, sg.InvalidArgument, "compute"),
            ("attention", (q, q[..., :3], q), {}, sg.InvalidArgument, r"key has shape \(2, 3, 4, 3\); it must be \(2, 3, 4, 5\)"),
            ("attention", (q, q, q[:, :, :3]), {}, sg.InvalidArgument, r"value has shape \(2, 3, 3, 5\); it must be \(2, 3, 4, 5\)"),
            ("attention", (q, q[:, :2], q[:, :2]), {}, sg.InvalidArgument, r"key has shape \(2, 2, 4, 5\).*enable_gqa"),
            ("attention", (q, q[:, :2], q[:, :2]), {"enable_gqa": True}, sg.InvalidArgument, "key has 2 heads; they must divide the 3 of query"),
            ("attention", (q[0, 0], q, q), {"enable_gqa": True}, sg.InvalidArgument, "query has shape .* it must have 3 dimensions or more"),
            ("attention", (q, q, q, torch.ones(4, 4, dtype=q.dtype, requires_grad=True)), {}, sg.Unsupported, "attn_mask requires a gradient"),
            ("attention", (q, q, q, torch.ones(4, 4)), {"is_causal": True}, sg.InvalidArgument, "attn_mask is given and is_causal"),
            ("attention", (q, q, q, torch.ones(4, 4).int()), {}, sg.InvalidArgument, "attn_mask has elements of torch.int32"),
            ("attention", (q, q, q, torch.ones(4, 9, dtype=torch.bool)), {}, sg.InvalidArgument, r"attn_mask has shape \(4, 9\); it must"),
            ("attention", (q, q, q), {"dropout_p": 0.1}, sg.Unsupported, "dropout_p is 0.1"),
            ("conv2d", (images, filters[:, :3]), {}, sg.InvalidArgument, r"weight has shape \(6, 3, 3, 3\); it must be \(6, 4, 3, 3\)"),
            ("conv2d", (images, filters), {"groups": 3}, sg.InvalidArgument, "groups is 3; it must divide the 4 channels and the 6 filters"),
            ("conv2d", (images, filters), {"stride": 0}, sg.InvalidArgument, "stride is 0; it must be from 1"),
            ("conv2d", (images, filters), {"dilation": 3}, sg.InvalidArgument, r"weight has shape \(6, 4, 3, 3\), which spans 7 rows; the padded input has 6"),
            ("conv2d", (images, filters), {"padding": "same", "stride": 2}, sg.InvalidArgument, "padding is 'same' and stride 2"),
            ("conv2d", (images, filters), {"padding": (1, 2, 3)}, sg.InvalidArgument, r"padding is \(1, 2, 3\)"),
            ("conv2d", (images[0, 0], filters), {}, sg.InvalidArgument, "input has shape .* it must have 3 or 4 dimensions"),
            ("conv2d", (images, filters, randn(1)), {}, sg.InvalidArgument, "bias has shape"),
        )
        for name, given, how, kind, text in cases:
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                self.call(name, *given, **how)

    def test_gradients_of_gradients(self):
        for name, shapes in (("linear", ((3, 4), (5, 4))), ("attention", ((1, 2, 3, 4),) * 3), ("conv2d", ((1, 2, 5, 5), (3, 2, 3, 3)))):
            given = [randn(*shape) for shape in shapes]
            (gradient,) = torch.autograd.grad(self.call(name, *given).pow(2).sum(), given[0], create_graph=True)
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "once_differentiable"):
                gradient.sum().backward()

    def test_a_saved_tensor_that_is_changed(self):
        x, w = randn(3, 4, grad=False), randn(5, 4)
        y = self.call("linear", x, w)
        x += 1
        with self.assertRaisesRegex(RuntimeError, "inplace"):
            y.sum().backward()


@unittest.skipUnless("cuda" in PLACES, "PyTorch and a CUDA device with SG_TEST_DEVICE=cuda:0")
class Streams(TorchTest):
    """The order of PyTorch's streams: what was enqueued before a call is read by it, and what is enqueued after it reads its result."""

    def test_between_a_streams_own_work(self):
        x, w = randn(300, 200, dtype=torch.float32, grad=False), randn(100, 200, dtype=torch.float32, grad=False)
        known, pinned = x @ w.T, x.pin_memory()
        for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
            with torch.cuda.stream(stream):
                on_device = w.cuda().requires_grad_()
                for _ in range(5):
                    late = torch.zeros_like(pinned, device="cuda")
                    reused = torch.zeros_like(known, device="cuda")
                    torch.cuda._sleep(10_000_000)  # some milliseconds, in which none of the following can run
                    late.copy_(pinned, non_blocking=True)
                    reused.fill_(math.nan)
                    del reused  # its memory may become that of the result
                    doubled = 2 * self.call("linear", late, on_device)
                    torch.cuda._sleep(10_000_000)
                    (gradient,) = torch.autograd.grad(doubled.sum(), on_device)
                    torch.testing.assert_close(doubled.detach().cpu(), 2 * known, rtol=1e-4, atol=1e-4)
                    torch.testing.assert_close(gradient.cpu(), 2 * x.sum(0).expand(100, 200), rtol=1e-4, atol=1e-3)

    def test_mixed_places(self):
        x, w = randn(30, 20), randn(10, 20, place="cuda")
        made = self.call("linear", x, w)
        self.assertEqual(made.device.type, "cpu")
        made.sum().backward()
        self.assertEqual((x.grad.device.type, w.grad.device.type), ("cpu", "cuda"))
        torch.testing.assert_close(w.grad.cpu(), x.detach().sum(0).expand(10, 20))

    def test_another_device(self):
        with sg.Context("cpu") as cpu, self.assertRaisesRegex(sg.InvalidArgument, "cuda:0"):
            self.call("linear", randn(3, 4, place="cuda"), randn(5, 4, place="cuda"), context=cpu)


if __name__ == "__main__":
    unittest.main()
