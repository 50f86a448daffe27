# SPDX-License-Identifier: Apache-2.0
"""Values and gradients of streamgemm.torch against PyTorch's own functions."""

import itertools
import random
import unittest

import streamgemm as sg
from torch_cases import DEVICE, PLACES, TOLERANCE, TorchTest, dense, randn, torch  # first, as it skips without PyTorch

import streamgemm.torch as sgt


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
                if not how["is_causal"] and draw.random() < 0.7:
                    sizes = [1 if draw.random() < 0.3 else e for e in (*batch, *heads, queries)]
                    mask = randn(*sizes[draw.randrange(len(sizes)):], keys, grad=False)
                    how["attn_mask"] = mask if draw.random() < 0.5 else (mask > 0).index_fill(-1, torch.tensor(0), True)
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

    def test_a_query_without_keys(self):
        q, mask = randn(2, 3, 4), torch.ones(3, 3, dtype=torch.bool).tril(-1)
        out = self.call("attention", q, q, q, mask)
        self.assertEqual(float(out[:, 0].abs().sum()), 0)
        out.sum().backward()
        self.assertTrue(bool(q.grad.isfinite().all()))

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
            for shape in ((128, 128), (batch, heads, 1, 128)):
                self.like_torch("attention", (many(batch, heads), many(batch, heads), many(batch, heads)), attn_mask=randn(*shape, grad=False))
        with self.assertRaisesRegex(sg.OutOfMemory, "device memory"):
            self.call("attention", *(randn(1, 1, 2000, 64) for _ in range(3)))


if __name__ == "__main__":
    unittest.main()
