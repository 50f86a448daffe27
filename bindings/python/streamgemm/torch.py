# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch's autograd whose forward and backward passes are jobs of StreamGEMM.

    import streamgemm.torch as sgt
    y = sgt.linear(x, weight, bias)  # like torch.nn.functional.linear
    y.sum().backward()

Tensors are on the host, where they may be larger than the memory of the GPU that computes, or on the CUDA device of the
context. They share one element type: float64, float32, float16 or bfloat16. They are operands in place where their strides
allow; else they are copied. A call waits for its job, and before that for PyTorch's current stream if a tensor is on a CUDA
device. Only the gradients that are needed are computed. Gradients of gradients are refused.
"""

import functools
import math

import torch
from torch.autograd.function import once_differentiable

from ._arguments import windows_of
from ._default import default_context
from ._errors import InvalidArgument, OutOfMemory, Unsupported

__all__ = ["attention", "conv2d", "linear"]

_TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_LAST = torch.channels_last


def _check(**tensors):
    """Refuses what is no tensor in memory of one of the types, which is the first one's; a bias may be None."""
    allowed = _TYPES
    for name, tensor in tensors.items():
        if tensor is None and name == "bias":
            continue
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}; it must be a torch.Tensor")
        if tensor.layout != torch.strided or tensor.device.type not in ("cpu", "cuda"):
            raise InvalidArgument(f"{name} is a {tensor.layout} tensor on {tensor.device}; it must be torch.strided, on cpu or cuda")
        if tensor.dtype not in allowed:
            raise InvalidArgument(f"{name} has elements of {tensor.dtype}; it must have {', '.join(map(str, allowed))}")
        allowed = (tensor.dtype,)


def _has_dimensions(name, tensor, *counts):
    if tensor is not None and tensor.dim() not in counts:
        raise InvalidArgument(f"{name} has shape {tuple(tensor.shape)}; it must have {' or '.join(map(str, counts))} dimensions")


def _has_shape(name, tensor, shape):
    if tensor is not None and tuple(tensor.shape) != tuple(shape):
        raise InvalidArgument(f"{name} has shape {tuple(tensor.shape)}; it must be {tuple(shape)}")


def _plain(tensor):
    return tensor.detach().resolve_neg()  # without a gradient or a pending sign, which DLPack does not export


def _matrix(tensor):
    """The rows of a tensor's last dimension as a matrix that is an operand in place; else a copy."""
    rows = _plain(tensor).reshape(math.prod(tensor.shape[:-1]), tensor.shape[-1])
    (count, width), (step, inner) = rows.shape, rows.stride()
    in_place = (inner == 1 and step >= width) or (step == 1 and inner >= count)
    return rows if in_place else rows.clone(memory_format=torch.contiguous_format)


def _heads(tensor):
    """(batch, heads, tokens, width), with the elements of a token in a row and no element twice."""
    heads = _plain(tensor)
    heads = heads.reshape(math.prod(heads.shape[:-3]), *(1,) * (3 - heads.dim()), *heads.shape[-3:])
    apart = all(stride > 0 for stride, extent in zip(heads.stride(), heads.shape) if extent > 1)
    return heads if heads.stride(3) == 1 and apart else heads.clone(memory_format=torch.contiguous_format)


def _form(tensor):
    """The memory format of images or filters: channels_last where they are in no other."""
    dense = [form for form in (torch.contiguous_format, _LAST) if tensor[:1].is_contiguous(memory_format=form)]
    return dense[0] if dense else torch.contiguous_format


def _images(tensor, form, gaps=True):
    """Images as an operand in the order of their memory format; a copy if they are not dense. gaps: between images, not of filters."""
    images = _plain(tensor)
    dense = (images[:1] if gaps else images).is_contiguous(memory_format=form)
    if not dense or (len(images) > 1 and images.stride(0) < images[:1].numel()):
        images = images.clone(memory_format=form)
    return _ordered(images, form)


def _ordered(images, form):
    return images.permute(0, 2, 3, 1) if form is _LAST and images is not None else images


def _or_false(tensor):
    return False if tensor is None else tensor


def _empty_like(tensor):
    """Makes the gradient of a tensor; keeps no element of it."""
    return functools.partial(torch.empty, tensor.shape, dtype=tensor.dtype, device=tensor.device)


def _save(ctx, call, x, w, bias):
    """Saves the factors of the gradients that are needed: x of the weight's, w of the input's."""
    ctx.call = call
    ctx.save_for_backward(x if ctx.needs_input_grad[2] else None, w if ctx.needs_input_grad[1] else None)
    ctx.empty = [_empty_like(tensor) if needed else None for tensor, needed in zip((x, w, bias), ctx.needs_input_grad[1:])]


class _Call:
    """A context, and the arguments that both passes of a call have."""

    def __init__(self, context, **arguments):
        self.context = default_context() if context is None else context
        self.arguments = arguments

    def __call__(self, name, *operands, **others):
        on_device = next((x for x in operands if x is not None and x.is_cuda), torch.empty(0))
        with torch.cuda.device_of(on_device):  # DLPack waits for the current stream of the current device
            return getattr(self.context, name)(*operands, **others, **self.arguments)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, x, w, bias):
        _save(ctx, call, x, w, bias)
        bias = None if bias is None else _plain(bias).contiguous()
        return call("linear", _matrix(x), _matrix(w), bias, op_w="T").view(*x.shape[:-1], w.shape[0])

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x, w = (None if tensor is None else _matrix(tensor) for tensor in ctx.saved_tensors)
        dx, dw, dbias = (None if empty is None else empty() for empty in ctx.empty)
        dy = _matrix(dy)
        rows = None if dx is None else dx.view(dy.shape[0], dx.shape[-1])
        ctx.call("linear_backward", dy, x, w, dx=rows, dw=dw, dbias=_or_false(dbias), op_w="T")
        return None, dx, dw, dbias


def _by_parts(call, name, *operands, **results):
    """An attention, in halves of the batch, or else of the heads, where its operands do not fit into the memory of the device."""
    try:
        call(name, *operands, **results)
    except OutOfMemory:
        axis = 0 if len(operands[0]) > 1 else 1
        count = operands[1].shape[axis]  # of keys: some heads of the queries belong to each
        if count < 2:
            raise

        def part(tensor, first, end):
            return tensor if tensor is False else tensor[(slice(None),) * axis + (slice(*(i * tensor.shape[axis] // count for i in (first, end))),)]

        for half in ((0, count // 2), (count // 2, count)):
            _by_parts(call, name, *(part(x, *half) for x in operands), **{key: part(x, *half) for key, x in results.items()})


def _masks(mask):
    """A mask of (..., heads, queries, keys) as an argument of Context.attention."""
    if mask is None:
        return {}
    mask = _plain(mask)
    mask = mask.reshape(math.prod(mask.shape[:-3]), *(1,) * (3 - mask.dim()), *mask.shape[-3:])
    mask = mask if mask.stride(3) == 1 else mask.contiguous()
    return {"visible" if mask.dtype == torch.bool else "bias": mask}


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, q, k, v, mask):
        ctx.call = call
        ctx.save_for_backward(q, k, v, mask)
        heads, out = [_heads(tensor) for tensor in (q, k, v)], torch.empty(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
        _by_parts(call, "attention", *heads, out=_heads(out), **_masks(mask))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out):
        *saved, mask = ctx.saved_tensors
        given = [_heads(tensor) for tensor in saved]
        made = [_empty_like(tensor)() if needed else False for tensor, needed in zip(given, ctx.needs_input_grad[1:])]
        _by_parts(ctx.call, "attention_backward", *given, _heads(d_out), dq=made[0], dk=made[1], dv=made[2], **_masks(mask))
        return None, *(None if new is False else new.view(tensor.shape) for new, tensor in zip(made, saved)), None


class _Conv2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, x, w, bias):
        _save(ctx, call, x, w, bias)
        ctx.forms = form, of_filters = _form(x), _form(w)
        ctx.names = {"layout": "nhwc" if form is _LAST else "nchw", "filter_layout": "ohwi" if of_filters is _LAST else "oihw"}
        bias = None if bias is None else _plain(bias).contiguous()
        y = call("conv2d", _images(x, form), _images(w, of_filters, gaps=False), bias, **ctx.names)
        return y.permute(0, 3, 1, 2) if form is _LAST else y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        forms = form, of_filters = ctx.forms
        saved = zip(ctx.saved_tensors, forms, (True, False))
        x, w = (None if tensor is None else _images(tensor, own, gaps) for tensor, own, gaps in saved)
        dx, dw = (None if empty is None else empty(memory_format=own) for empty, own in zip(ctx.empty, forms))
        dbias = None if ctx.empty[2] is None else ctx.empty[2]()
        into = {"dx": _ordered(dx, form), "dw": _ordered(dw, of_filters), "dbias": _or_false(dbias)}
        ctx.call("conv2d_backward", _images(dy, form), x, w, **into, **ctx.names)
        return None, dx, dw, dbias


def linear(input, weight, bias=None, *, context=None, compute="exact", label=None, options=None):
    """input @ weight.T + bias, like torch.nn.functional.linear.

    input: (..., inputs). weight: (outputs, inputs), or (inputs,) for one output without its dimension. bias: (outputs,).
    context: whose device computes; None: default_context().
    compute, label, options: as of Context.linear_async, for both passes; options are PlanOptions.
    """
    _check(input=input, weight=weight, bias=bias)
    _has_dimensions("weight", weight, 1, 2)
    if weight.dim() == 1:
        one = weight[None], None if bias is None else bias.reshape(1)
        return linear(input, *one, context=context, compute=compute, label=label, options=options).squeeze(-1)
    _has_shape("input", input, (*input.shape[:-1], weight.shape[1]))
    _has_shape("bias", bias, weight.shape[:1])
    return _Linear.apply(_Call(context, compute=compute, label=label, options=options), input, weight, bias)


def _check_mask(mask, query, is_causal):
    """Refuses what is no mask of the scores of query, or one that requires a gradient."""
    if is_causal:
        raise InvalidArgument("attn_mask is given and is_causal is True; one of them is possible")
    if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool:
        return
    _check(query=query, attn_mask=mask)
    if mask.requires_grad:
        raise Unsupported("attn_mask requires a gradient, which is not supported")


def attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False,
    *, context=None, compute="exact", label=None, workspace=0,
):  # fmt: skip
    """softmax(scale * query @ key.T + mask) @ value, like torch.nn.functional.scaled_dot_product_attention.

    query: (..., heads, tokens, width), or (tokens, width). key, value: the same with tokens of their own, and other dimensions
    that broadcast; the width of value is free.
    attn_mask: of bool, False hides a key, or of the type of query, which is added to the scores; it broadcasts to (..., heads, queries,
    keys) and has no gradient. A query without keys gets zeros. dropout_p: 0; others are refused.
    is_causal: query i has the keys j <= i; without attn_mask.
    scale: of the products; None: 1 / sqrt(width).
    enable_gqa: key and value may have fewer heads, each of which serves as many of query.
    context, compute, label, workspace: as of linear and of Context.attention_async, for both passes.
    """
    _check(query=query, key=key, value=value)
    if attn_mask is not None:
        _check_mask(attn_mask, query, is_causal)
    if dropout_p != 0:
        raise Unsupported(f"dropout_p is {dropout_p}; it must be 0, as dropout is not supported")
    kept = 3 if enable_gqa else 2  # dimensions that are not broadcast
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() < kept:
            raise InvalidArgument(f"{name} has shape {tuple(tensor.shape)}; it must have {kept} dimensions or more")
    try:
        batch = torch.broadcast_shapes(*(tensor.shape[:-kept] for tensor in (query, key, value)))
    except RuntimeError:
        q, k, v = (tuple(tensor.shape) for tensor in (query, key, value))
        raise InvalidArgument(f"key has shape {k} and value {v}; they must broadcast with query, {q} (fewer heads: enable_gqa)") from None
    query, key, value = (tensor.expand(*batch, *tensor.shape[-kept:]) for tensor in (query, key, value))
    if enable_gqa and (key.shape[-3] == 0 or query.shape[-3] % key.shape[-3]):
        raise InvalidArgument(f"key has {key.shape[-3]} heads; they must divide the {query.shape[-3]} of query")
    _has_shape("key", key, (*key.shape[:-1], query.shape[-1]))
    _has_shape("value", value, (*key.shape[:-1], value.shape[-1]))
    if attn_mask is not None:
        scores = (*query.shape[:-1], key.shape[-2])
        try:
            attn_mask = attn_mask.expand(scores)
        except RuntimeError:
            raise InvalidArgument(f"attn_mask has shape {tuple(attn_mask.shape)}; it must broadcast to {scores}") from None
    mask = "causal" if is_causal else None
    call = _Call(context, mask=mask, scale=scale, compute=compute, label=label, workspace=workspace)
    return _Attention.apply(call, query, key, value, attn_mask)


def conv2d(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1,
    *, context=None, compute="exact", label=None, workspace=0, options=None,
):  # fmt: skip
    """The convolution of images with filters, like torch.nn.functional.conv2d.

    input: (images, channels, rows, columns), or (channels, rows, columns), contiguous or in torch.channels_last.
    weight: (filters, channels / groups, rows, columns). bias: (filters,).
    stride, dilation: a number, or one for rows and one for columns. padding: the same, or "valid" or "same".
    groups: of channels; each has its own filters.
    context, compute, label, workspace, options: as of linear and of Context.conv2d_async, for both passes.
    """
    _check(input=input, weight=weight, bias=bias)
    _has_dimensions("input", input, 3, 4)
    _has_dimensions("weight", weight, 4)
    kh, kw, sh, sw, dh, dw, *edges = windows_of(tuple(weight.shape[2:]), stride, 0 if isinstance(padding, str) else padding, dilation)
    if isinstance(padding, str):
        if padding not in ("valid", "same") or (padding == "same" and (sh, sw) != (1, 1)):
            raise InvalidArgument(f"padding is {padding!r} and stride {stride}; 'valid', 'same' with a stride of 1 and numbers are possible")
        rows, columns = (dh * (kh - 1), dw * (kw - 1)) if padding == "same" else (0, 0)
        edges = [rows // 2, columns // 2, rows - rows // 2, columns - columns // 2]
    spans, padded = (dh * (kh - 1) + 1, dw * (kw - 1) + 1), (input.shape[-2] + edges[0] + edges[2], input.shape[-1] + edges[1] + edges[3])
    for span, padded, what in zip(spans, padded, ("rows", "columns")):
        if span > padded:
            raise InvalidArgument(f"weight has shape {tuple(weight.shape)}, which spans {span} {what}; the padded input has {padded}")
    images = input if input.dim() == 4 else input[None]
    if not isinstance(groups, int) or groups < 1 or images.shape[1] % groups or weight.shape[0] % groups:
        raise InvalidArgument(f"groups is {groups}; it must divide the {images.shape[1]} channels and the {weight.shape[0]} filters")
    _has_shape("weight", weight, (weight.shape[0], images.shape[1] // groups, *weight.shape[2:]))
    _has_shape("bias", bias, weight.shape[:1])
    windows = {"stride": (sh, sw), "padding": edges, "dilation": (dh, dw), "groups": groups}
    call = _Call(context, compute=compute, label=label, workspace=workspace, options=options, **windows)
    made = _Conv2d.apply(call, images, weight, bias)
    return made if input.dim() == 4 else made[0]
