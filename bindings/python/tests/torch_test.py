# SPDX-License-Identifier: Apache-2.0
"""streamgemm.torch against PyTorch's own functions: values, gradients, layouts, lifetimes and errors."""

import gc
import itertools
import math
import os
import random
import sys
import unittest

import streamgemm as sg

try:
    import torch
except ImportError:
    print("PyTorch is not here")
    sys.exit(77)

import streamgemm.torch as sgt

DEVICE = os.environ.get("SG_TEST_DEVICE", "cpu")
PLACES = ["cpu", "cuda"] if DEVICE.startswith("cuda") and torch.cuda.is_available() else ["cpu"]
TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
torch.set_num_threads(1)


def known_attention(query, key, value, is_causal=False, scale=None, enable_gqa=False):
    """The formula of torch.nn.functional.scaled_dot_product_attention, which older versions do not have."""
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = query @ key.transpose(-1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1), -math.inf)
    return scores.softmax(-1) @ value


def known_linear(x, w, bias=None):
    """That of PyTorch, with a vector of weights in every version."""
    if w.dim() == 2:
        return torch.nn.functional.linear(x, w, bias)
    return x @ w if bias is None else x @ w + bias


KNOWN = {"linear": known_linear, "attention": known_attention, "conv2d": torch.nn.functional.conv2d}


class Recorder:
    """A context that keeps the arguments of each call."""

    def __init__(self, context):
        self.context, self.calls = context, []

    def __getattr__(self, name):
        def call(*operands, **named):
            self.calls.append((operands, named))
            return getattr(self.context, name)(*operands, **named)

        return call


class TorchTest(unittest.TestCase):
    def setUp(self):
        self.context = sg.Context(DEVICE)
        self.addCleanup(self.context.close)
        torch.manual_seed(7)

    def call(self, name, *given, context=None, **how):
        return getattr(sgt, name)(*given, context=context or self.context, **how)

    def like_torch(self, name, given, tolerance=None, **how):
        """Results and gradients are those of PyTorch in f64; gradients only of tensors that require them."""
        leaves = [x for x in given if x is not None and x.requires_grad]
        made = self.call(name, *given, **how)
        wide = [x if x is None else dense(x.detach().cpu().double()).requires_grad_(x.requires_grad) for x in given]
        known = KNOWN[name](*wide, **how)
        tolerance = tolerance or TOLERANCE[given[0].dtype]
        self.assertEqual((made.shape, made.dtype, made.device.type), (known.shape, given[0].dtype, given[0].device.type))
        torch.testing.assert_close(made.detach().cpu().double(), known.detach(), rtol=tolerance, atol=tolerance)
        self.assertEqual(made.requires_grad, bool(leaves))
        if not leaves:
            return
        upstream = torch.randn(made.shape, dtype=made.dtype).to(made.device)
        gradients = torch.autograd.grad(made, leaves, upstream)
        wanted = torch.autograd.grad(known, [x for x in wide if x is not None and x.requires_grad], upstream.cpu().double())
        for leaf, gradient, one in zip(leaves, gradients, wanted):
            self.assertEqual((gradient.shape, gradient.dtype, gradient.device), (leaf.shape, leaf.dtype, leaf.device))
            scale = max(1.0, float(one.abs().max())) if one.numel() else 1.0
            torch.testing.assert_close(gradient.cpu().double(), one, rtol=tolerance, atol=tolerance * scale)


def dense(x):
    return x.clone(memory_format=torch.contiguous_format)


def randn(*shape, dtype=torch.float64, place="cpu", grad=True):
    return torch.randn(shape, dtype=torch.float64).to(dtype).to(place).requires_grad_(grad)


class Values(TorchTest):
    def test_gradcheck_of_each_subset(self):
        cases = (
            ("linear", ((2, 3, 4), (5, 4), (5,)), {}),
            ("attention", ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3)), {"is_causal": True, "scale": 0.7}),
            ("conv2d", ((2, 2, 4, 3), (3, 2, 2, 2), (3,)), {"padding": 1, "stride": (2, 1)}),
        )
        for (name, shapes, how), needed in itertools.product(cases, itertools.product((False, True), repeat=3)):
            with self.subTest(name, needed=needed):
                given = [randn(*shape, grad=grad) for shape, grad in zip(shapes, needed)]
                if any(needed):
                    self.assertTrue(torch.autograd.gradcheck(lambda *x, n=name, h=how: self.call(n, *x, **h), given))
                self.like_torch(name, given, **how)

    def test_types_and_places(self):
        for dtype, place in itertools.product(TOLERANCE, PLACES):
            with self.subTest(dtype=dtype, place=place):
                new = lambda *shape: randn(*shape, dtype=dtype, place=place)  # noqa: E731
                self.like_torch("linear", (new(3, 17, 33), new(21, 33), new(21)))
                self.like_torch("attention", (new(2, 4, 9, 16), new(2, 2, 13, 16), new(2, 2, 13, 16)), enable_gqa=True, is_causal=True)
                self.like_torch("conv2d", (new(2, 4, 9, 8), new(6, 2, 3, 3), new(6)), stride=2, padding=1, groups=2)

    def drawn(self, draw, shape, place):
        """A tensor of a shape, in one of the layouts that views have."""
        kind = draw.randrange(6)
        if kind == 0 or not shape:
            made = randn(*shape, grad=False)
        elif kind == 1:
            order = draw.sample(range(len(shape)), len(shape))
            made = randn(*(shape[i] for i in order), grad=False).permute([order.index(i) for i in range(len(shape))])
        elif kind == 2:
            made = randn(*(2 * extent + 1 for extent in shape), grad=False)
            made = made[tuple(draw.choice((slice(1, None, 2), slice(0, extent))) for extent in shape)]
        elif kind == 3:
            made = randn(*(1 if draw.random() < 0.5 else e for e in shape), grad=False).expand(shape)
        elif kind == 4 and len(shape) == 4:
            made = randn(*shape, grad=False).to(memory_format=torch.channels_last)
        else:
            made = torch.complex(*(randn(*shape, grad=False) for _ in range(2))).conj().imag  # its sign is pending
        return made.to(place).requires_grad_(draw.random() < 0.7)

    def test_drawn(self):
        for seed in range(90):
            draw = random.Random(seed)
            extent = lambda low=0: draw.choice((low, 1, 2, 3, 5, draw.randrange(1, 20)))  # noqa: E731
            new = lambda *shape: self.drawn(draw, shape, draw.choice(PLACES))  # noqa: E731,B023
            batch = [extent() for _ in range(draw.randrange(3))]
            name = draw.choice(("linear", "attention", "conv2d"))
            how = {}
            if name == "linear":
                inputs, outputs = extent(), extent()
                weight = (outputs, inputs) if draw.random() < 0.8 else (inputs,)
                given = new(*batch, extent(), inputs), new(*weight), new(*weight[:-1]) if draw.random() < 0.5 else None
            elif name == "attention":
                how = {"is_causal": draw.random() < 0.5, "enable_gqa": draw.random() < 0.5}
                kv, queries, keys, width = extent(1), extent(), extent(1), extent(1)
                heads = [kv * draw.choice((1, 2, 3)) if how["enable_gqa"] else kv]
                ones = [1 if draw.random() < 0.3 else e for e in batch]
                given = new(*batch, *heads, queries, width), new(*ones, kv, keys, width), new(*batch, kv, keys, extent(1))
            else:
                groups, kernel = extent(1), (extent(1) % 4 + 1, extent(1) % 3 + 1)
                how = {"groups": groups, "stride": draw.choice((1, 2, (1, 3))), "dilation": draw.choice((1, (2, 1)))}
                how["padding"] = draw.choice((0, (1, 2), "valid"))
                if how["stride"] == 1 and draw.random() < 0.3:
                    how["padding"] = "same"
                image = [8 + extent(), 6 + extent()]
                weight = new(groups * extent(1), extent(1), *kernel)
                images = [draw.randrange(4)] if draw.random() < 0.8 else []
                given = new(*images, groups * weight.shape[1], *image), weight, new(weight.shape[0]) if draw.random() < 0.5 else None
            with self.subTest(seed=seed, name=name, how=how, shapes=[None if x is None else tuple(x.shape) for x in given]):
                self.like_torch(name, given, **how)

    def test_empty(self):
        for given in (((0, 3), (4, 3)), ((2, 0, 3), (4, 3)), ((2, 0), (4, 0), (4,)), ((2, 3), (0, 3))):
            self.like_torch("linear", [randn(*shape) for shape in given])
        for given in (((0, 2, 3, 4),) * 3, ((2, 2, 0, 4), (2, 2, 3, 4), (2, 2, 3, 4))):
            self.like_torch("attention", [randn(*shape) for shape in given])
        self.like_torch("conv2d", [randn(0, 2, 5, 5), randn(3, 2, 3, 3), randn(3)])

    def test_the_default_context(self):
        before = sg.default_context()
        self.addCleanup(sg.set_default_context, before)
        sg.set_default_context(self.context)
        x, w = randn(3, 4), randn(2, 4)
        torch.testing.assert_close(sgt.linear(x, w), x @ w.T)

    def test_a_training_step(self):
        x, target, w, bias = randn(64, 8, grad=False), randn(64, 1, grad=False), randn(1, 8), randn(1)
        optimizer, losses = torch.optim.SGD([w, bias], lr=0.1), []
        for _ in range(20):
            loss = (self.call("linear", x, w, bias, label="model") - target).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        self.assertLess(losses[-1], losses[0] / 2)

    @unittest.skipUnless(DEVICE.startswith("sim"), "the memory of a simulated device")
    def test_host_tensors_larger_than_the_device(self):
        with sg.Context(DEVICE, memory_limit=4 << 20) as small:
            x, w = randn(4096, 512, dtype=torch.float32), randn(96, 512, dtype=torch.float32)  # x has 8 MiB
            made = self.call("linear", x, w, context=small)
            made.backward(torch.ones_like(made))
            torch.testing.assert_close(x.grad, torch.ones_like(made) @ w, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(w.grad, torch.ones_like(made).T @ x, rtol=1e-3, atol=1e-3)

            x, w = randn(32, 8, 96, 96, dtype=torch.float32), randn(2, 8, 3, 3, dtype=torch.float32)  # 9 MiB
            made = self.call("conv2d", x, w, padding=1, context=small)
            made.backward(torch.ones_like(made))
            wide, known = dense(x.detach()).requires_grad_(), dense(w.detach()).requires_grad_()
            torch.nn.functional.conv2d(wide, known, padding=1).sum().backward()
            torch.testing.assert_close(x.grad, wide.grad, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(w.grad, known.grad, rtol=1e-3, atol=5e-2)

    @unittest.skipUnless(DEVICE.startswith("sim"), "the memory of a simulated device")
    def test_attention_larger_than_the_device(self):
        context, self.context = self.context, sg.Context(DEVICE, memory_limit=1 << 20)
        self.addCleanup(context.close)
        many = lambda batch, heads: randn(batch, heads, 128, 64)   # noqa: E731
        for batch, heads, kv in ((5, 1, 1), (1, 6, 3), (3, 4, 4)):
            self.like_torch("attention", (many(batch, heads), many(batch, kv), many(batch, kv)), is_causal=True, enable_gqa=True)
        with self.assertRaisesRegex(sg.OutOfMemory, "device memory"):
            self.call("attention", *(randn(1, 1, 2000, 64) for _ in range(3)))


class Operands(TorchTest):
    def places(self, name, given, **how):
        """The operands of both passes, which must lie in the memory of what was given."""
        recorder = Recorder(self.context)
        made = self.call(name, *given, context=recorder, **how)
        made.backward(torch.ones_like(made))
        (forward, _), (backward, named) = recorder.calls
        return forward, backward, named

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
            ("attention", (q, q, q, torch.ones(4, 4)), {}, sg.Unsupported, "attn_mask is given"),
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
    if DEVICE.startswith("cuda") and DEVICE not in [device.name for device in sg.devices()]:
        print(f"there is no {DEVICE} here")
        sys.exit(77)
    unittest.main()
