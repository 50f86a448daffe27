# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of streamgemm.torch, which are skipped without PyTorch or without their device."""

import math
import os
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
if DEVICE.startswith("cuda") and DEVICE not in [device.name for device in sg.devices()]:
    print(f"there is no {DEVICE} here")
    sys.exit(77)


def known_attention(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """The formula of torch.nn.functional.scaled_dot_product_attention, which older versions do not have."""
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = query @ key.transpose(-1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1), -math.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return scores.softmax(-1).nan_to_num() @ value


def known_linear(x, w, bias=None):
    """That of PyTorch, with a vector of weights in every version."""
    if w.dim() == 2:
        return torch.nn.functional.linear(x, w, bias)
    return x @ w if bias is None else x @ w + bias


KNOWN = {"linear": known_linear, "attention": known_attention, "conv2d": torch.nn.functional.conv2d}


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
