# SPDX-License-Identifier: Apache-2.0
"""The layers of drawn forms: their operands as tensors, the calls of the library, and the same by PyTorch.

PyTorch's function takes the tensors by name, in any type, so that it gives the reference in f64, too.
"""

import contextlib
import math

import torch
from torch.nn import functional

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
HAS_ATTENTION = hasattr(functional, "scaled_dot_product_attention")  # since PyTorch 2.0
ACTIVATIONS = {
    None: lambda x: x,
    "relu": functional.relu,
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
}


class Layer:
    """inputs, outputs: tensors by name. ours(call, operands): calls the library's operations, call(name, ...). by_torch(tensors):
    the outputs by PyTorch. prepare(tensors): what PyTorch has from an earlier pass. nhwc: images and filters have channels last."""

    def __init__(self, ours, by_torch, inputs, outputs, prepare=None, nhwc=False):
        self.ours, self.by_torch, self.inputs, self.outputs, self.nhwc = ours, by_torch, inputs, outputs, nhwc
        self.prepare = prepare or (lambda x: x)

    def in_memory_order(self, tensor):
        return tensor.permute(0, 2, 3, 1) if self.nhwc and tensor.dim() == 4 else tensor


class Maker:
    """Makes operands of one form on PyTorch's device."""

    def __init__(self, form, device):
        self.dtype, self.device = TYPES[form["dtype"]], device

    def values(self, *shape, scale=1.0):
        return (torch.randn(shape, device=self.device) * scale).to(self.dtype)

    def empty(self, *shape):
        """NaN everywhere, so that elements that are not written are found."""
        return torch.full(shape, math.nan, device=self.device, dtype=self.dtype)


def best_attention():
    """PyTorch's backends of attention, cuDNN's first where this version has it."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        return contextlib.nullcontext()
    names = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH")
    backends = [getattr(SDPBackend, name) for name in names if hasattr(SDPBackend, name)]
    try:
        return sdpa_kernel(backends, set_priority=True)
    except TypeError:
        return sdpa_kernel(backends)


def attend(q, k, v, causal):
    """Attention by PyTorch; by its formula in f64, whose results are the reference, and where PyTorch has no function."""
    grouped = q.shape[1] != k.shape[1]
    if HAS_ATTENTION and q.dtype != torch.float64:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal, **({"enable_gqa": True} if grouped else {}))
    if grouped:
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1), -math.inf)
    return scores.softmax(-1) @ v


def linear(form, make):
    rows, inputs, outputs, activation = form["batch"] * form["tokens"], form["inputs"], form["outputs"], form["activation"]
    x = {"x": make.values(rows, inputs), "w": make.values(outputs, inputs, scale=inputs**-0.5)}
    x |= {"bias": make.values(outputs)} if form["bias"] else {}

    def ours(call, t):
        fused = activation if activation != "silu" else None
        job = call("linear", t["x"], t["w"], t.get("bias"), t["y"], op_w="T", activation=fused)
        return job if fused == activation else call("elementwise", activation, t["y"], out=t["y"])

    def by_torch(t):
        return (ACTIVATIONS[activation](functional.linear(t["x"], t["w"], t.get("bias"))),)

    return Layer(ours, by_torch, x, {"y": make.empty(rows, outputs)})


def linear_backward(form, make):
    rows, inputs, outputs, bias = form["batch"] * form["tokens"], form["inputs"], form["outputs"], form["bias"]
    x = {"dy": make.values(rows, outputs), "x": make.values(rows, inputs), "w": make.values(outputs, inputs, scale=outputs**-0.5)}
    y = {"dx": make.empty(rows, inputs), "dw": make.empty(outputs, inputs)} | ({"dbias": make.empty(outputs)} if bias else {})

    def ours(call, t):
        return call("linear_backward", t["dy"], t["x"], t["w"], dx=t["dx"], dw=t["dw"], dbias=t["dbias"] if bias else False, op_w="T")

    def by_torch(t):
        made = torch.mm(t["dy"], t["w"]), torch.mm(t["dy"].t(), t["x"])
        return (*made, t["dy"].sum(0)) if bias else made

    return Layer(ours, by_torch, x, y)


def heads_of(form, make, name):
    """q, k or v; in packed forms the heads of a token follow each other in memory."""
    heads, tokens = (form["heads"], form["queries"]) if name == "q" else (form["kv_heads"], form["keys"])
    if form["packed"]:
        return lambda of: of(form["batch"], tokens, heads, form["width"]).transpose(1, 2)
    return lambda of: of(form["batch"], heads, tokens, form["width"])


def attention(form, make):
    x = {name: heads_of(form, make, name)(make.values) for name in "qkv"}
    mask = "causal" if form["causal"] else None
    return Layer(lambda call, t: call("attention", t["q"], t["k"], t["v"], t["out"], mask=mask),
                 lambda t: (attend(t["q"], t["k"], t["v"], form["causal"]),),
                 x, {"out": heads_of(form, make, "q")(make.empty)})  # fmt: skip


def attention_backward(form, make):
    x = {name: heads_of(form, make, name)(make.values) for name in "qkv"} | {"d_out": heads_of(form, make, "q")(make.values)}
    y = {f"d{name}": heads_of(form, make, name)(make.empty) for name in "qkv"}
    mask = "causal" if form["causal"] else None

    def ours(call, t):
        given = (t[name] for name in ("q", "k", "v", "d_out"))
        return call("attention_backward", *given, dq=t["dq"], dk=t["dk"], dv=t["dv"], mask=mask)

    def by_torch(t):  # with the forward pass, which the library's gradient needs no result of
        with torch.enable_grad():
            leaves = [t[name].detach().requires_grad_() for name in "qkv"]
            return torch.autograd.grad(attend(*leaves, form["causal"]), leaves, t["d_out"])

    return Layer(ours, by_torch, x, y)


def conv_operands(form, make):
    memory = torch.channels_last if form["layout"] == "nhwc" else torch.contiguous_format
    made = (form["size"] + 2 * form["padding"] - form["kernel"]) // form["stride"] + 1
    window = form["channels"] // form["groups"], form["kernel"], form["kernel"]
    shapes = {"x": (form["batch"], form["channels"], form["size"], form["size"]), "w": (form["filters"], *window),
              "y": (form["batch"], form["filters"], made, made)}  # fmt: skip
    how = {name: form[name] for name in ("stride", "padding", "groups", "layout")}
    how["filter_layout"] = "ohwi" if form["layout"] == "nhwc" else "oihw"
    return shapes, lambda of, name, **scale: of(*shapes[name], **scale).contiguous(memory_format=memory), how, math.prod(window) ** -0.5


def conv(form, make):
    _, tensor, how, scale = conv_operands(form, make)
    x = {"x": tensor(make.values, "x"), "w": tensor(make.values, "w", scale=scale)}
    x |= {"bias": make.values(form["filters"])} if form["bias"] else {}
    activation, step, padding, groups = form["activation"], form["stride"], form["padding"], form["groups"]
    return Layer(lambda call, t: call("conv2d", t["x"], t["w"], t.get("bias"), t["y"], activation=activation, **how),
                 lambda t: (ACTIVATIONS[activation](functional.conv2d(t["x"], t["w"], t.get("bias"), step, padding, 1, groups)),),
                 x, {"y": tensor(make.empty, "y")}, nhwc=form["layout"] == "nhwc")  # fmt: skip


def conv_backward(form, make):
    _, tensor, how, scale = conv_operands(form, make)
    x = {"dy": tensor(make.values, "y"), "x": tensor(make.values, "x"), "w": tensor(make.values, "w", scale=scale)}
    y = {"dx": tensor(make.empty, "x"), "dw": tensor(make.empty, "w")} | ({"dbias": make.empty(form["filters"])} if form["bias"] else {})
    step, padding, wanted = [form["stride"]] * 2, [form["padding"]] * 2, [True, True, form["bias"]]

    def ours(call, t):
        return call("conv2d_backward", t["dy"], t["x"], t["w"], dx=t["dx"], dw=t["dw"], dbias=t.get("dbias", False), **how)

    def by_torch(t):
        made = torch.ops.aten.convolution_backward(t["dy"], t["x"], t["w"], [form["filters"]], step, padding, [1, 1], False, [0, 0],
                                                   form["groups"], wanted)  # fmt: skip
        return tuple(made[: len(y)])

    return Layer(ours, by_torch, x, y, nhwc=form["layout"] == "nhwc")


def rms_norm(x, gamma):
    if hasattr(functional, "rms_norm"):  # since PyTorch 2.4
        return functional.rms_norm(x, (x.shape[-1],), gamma, 1e-5)
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * gamma


def norm(form, make):
    rows, cols = form["batch"] * form["tokens"], form["width"]
    x, y = {"x": make.values(rows, cols), "gamma": make.values(cols)}, {"y": make.empty(rows, cols)}
    if form["function"] == "rms_norm":
        return Layer(lambda call, t: call("rms_norm", t["x"], t["gamma"], t["y"]), lambda t: (rms_norm(t["x"], t["gamma"]),), x, y)
    x["beta"] = make.values(cols)
    return Layer(lambda call, t: call("layer_norm", t["x"], t["gamma"], t["beta"], t["y"]),
                 lambda t: (functional.layer_norm(t["x"], (cols,), t["gamma"], t["beta"]),), x, y)  # fmt: skip


def norm_backward(form, make):
    rows, cols = form["batch"] * form["tokens"], form["width"]
    x = {"dy": make.values(rows, cols), "x": make.values(rows, cols), "gamma": make.values(cols)}
    y = {"dx": make.empty(rows, cols), "dgamma": make.empty(cols), "dbeta": make.empty(cols)}

    def prepare(t):  # mean and deviation are of PyTorch's forward pass; the library computes them again
        _, mean, rstd = torch.native_layer_norm(t["x"], [cols], t["gamma"], None, 1e-5)
        return t | {"mean": mean, "rstd": rstd}

    def by_torch(t):
        return torch.ops.aten.native_layer_norm_backward(t["dy"], t["x"], [cols], t["mean"], t["rstd"], t["gamma"], t["gamma"], [True] * 3)

    return Layer(lambda call, t: call("layer_norm_backward", t["dy"], t["x"], t["gamma"], **{name: t[name] for name in y}), by_torch,
                 x, y, prepare)  # fmt: skip


def softmax(form, make):
    shape = form["batch"] * form["heads"] * form["tokens"], form["width"]
    return Layer(lambda call, t: call("softmax", t["x"], t["y"]), lambda t: (functional.softmax(t["x"], -1),),
                 {"x": make.values(*shape, scale=2.0)}, {"y": make.empty(*shape)})  # fmt: skip


def softmax_backward(form, make):
    shape = form["batch"] * form["heads"] * form["tokens"], form["width"]
    x = {"y": make.values(*shape, scale=2.0).float().softmax(-1).to(make.dtype), "dy": make.values(*shape)}
    return Layer(lambda call, t: call("softmax_backward", t["y"], t["dy"], t["dx"]),
                 lambda t: (torch._softmax_backward_data(t["dy"], t["y"], -1, t["y"].dtype),), x, {"dx": make.empty(*shape)})  # fmt: skip


def elementwise(form, make):
    shape, name = (form["batch"] * form["tokens"], form["width"]), form["function"]
    x = {"a": make.values(*shape)} | ({} if name in ("gelu", "silu") else {"b": make.values(*shape)})
    by_torch = {
        "gelu": lambda t: (functional.gelu(t["a"], approximate="tanh"),),
        "silu": lambda t: (functional.silu(t["a"]),),
        "multiply": lambda t: (torch.mul(t["a"], t["b"]),),
        "add": lambda t: (torch.add(t["a"], t["b"]),),
        "gelu_gradient": lambda t: (torch.ops.aten.gelu_backward(t["a"], t["b"], approximate="tanh"),),
        "silu_gradient": lambda t: (torch.ops.aten.silu_backward(t["a"], t["b"]),),
    }[name]
    return Layer(lambda call, t: call("elementwise", name, t["a"], t.get("b"), t["out"]), by_torch, x, {"out": make.empty(*shape)})


def embedding(form, make):
    indices = torch.randint(form["vocabulary"], (form["batch"] * form["tokens"],), device=make.device).int()
    x = {"table": make.values(form["vocabulary"], form["width"]), "indices": indices}
    return Layer(lambda call, t: call("gather", t["table"], t["indices"], t["out"]),
                 lambda t: (functional.embedding(t["indices"], t["table"]),), x, {"out": make.empty(len(indices), form["width"])})  # fmt: skip


def rotary(form, make):
    batch, tokens, heads, width = (form[name] for name in ("batch", "tokens", "heads", "width"))
    angles = torch.arange(tokens, device=make.device)[:, None] * 10000.0 ** (-torch.arange(width // 2, device=make.device) * 2 / width)
    x = {"x": make.values(batch, tokens, heads * width), "cos": angles.cos().to(make.dtype), "sin": angles.sin().to(make.dtype)}

    def by_torch(t):
        whole = t["x"].view(batch, tokens, heads, width)
        first, second = whole.chunk(2, -1)
        turned = whole * t["cos_twice"] + torch.cat((-second, first), -1) * t["sin_twice"]
        return (turned.view(batch, tokens, heads * width),)

    def prepare(t):
        return t | {f"{name}_twice": torch.cat((t[name], t[name]), -1)[:, None] for name in ("cos", "sin")}

    return Layer(lambda call, t: call("rotary", t["x"], t["cos"], t["sin"], t["out"], head_size=width), by_torch, x,
                 {"out": make.empty(batch, tokens, heads * width)}, prepare)  # fmt: skip


LAYERS = {"linear": linear, "linear backward": linear_backward, "attention": attention, "attention backward": attention_backward,
          "conv": conv, "conv backward": conv_backward, "norm": norm, "norm backward": norm_backward, "softmax": softmax,
          "softmax backward": softmax_backward, "elementwise": elementwise, "embedding": embedding, "rotary": rotary}  # fmt: skip


def layer(form, device):
    return LAYERS[form["kind"]](form, Maker(form, device))
