# SPDX-License-Identifier: Apache-2.0
"""Forms of layers, drawn from the tables of layers of some networks. A form is plain data: a dict that a record keeps.

Every form has the keys kind, model, dtype and batch; the others are its sizes, as its kind names them.
"""

import math

BATCHES = (1, 1, 2, 3, 4, 5, 8, 16, 24, 32, 64)
DTYPES = ("bf16", "bf16", "bf16", "f16", "f16", "f32", "f32")
ITEM = {"bf16": 2, "f16": 2, "f32": 4}

# model: numbers of tokens, then (inputs, outputs, bias, activation) of its linear layers.
LINEAR = {
    "BERT base": ((16, 128, 384, 512), ((768, 768, True, None), (768, 2304, True, None), (768, 3072, True, "gelu"),
                  (3072, 768, True, None), (768, 30522, True, None))),
    "BERT large": ((16, 128, 384, 512), ((1024, 1024, True, None), (1024, 3072, True, None), (1024, 4096, True, "gelu"),
                   (4096, 1024, True, None))),
    "ViT B": ((197,), ((768, 768, True, None), (768, 2304, True, None), (768, 3072, True, "gelu"), (3072, 768, True, None))),
    "ViT L": ((197, 577), ((1024, 1024, True, None), (1024, 3072, True, None), (1024, 4096, True, "gelu"), (4096, 1024, True, None))),
    "ConvNeXt T 1": ((3136,), ((96, 384, True, "gelu"), (384, 96, True, None))),
    "ConvNeXt T 2": ((784,), ((192, 768, True, "gelu"), (768, 192, True, None))),
    "ConvNeXt T 3": ((196,), ((384, 1536, True, "gelu"), (1536, 384, True, None))),
    "ConvNeXt B 1": ((3136,), ((128, 512, True, "gelu"), (512, 128, True, None))),
    "ConvNeXt B 4": ((49,), ((1024, 4096, True, "gelu"), (4096, 1024, True, None), (1024, 1000, True, None))),
    "Llama 7B": ((1, 1, 128, 512, 2048), ((4096, 4096, False, None), (4096, 12288, False, None), (4096, 11008, False, "silu"),
                 (11008, 4096, False, None), (4096, 32000, False, None))),
    "Llama 70B": ((1, 1, 128, 512, 2048), ((8192, 8192, False, None), (8192, 1024, False, None), (8192, 28672, False, "silu"),
                  (28672, 8192, False, None), (8192, 32000, False, None))),
    "Whisper small": ((1, 448, 1500), ((768, 768, True, None), (768, 3072, True, "gelu"), (3072, 768, True, None))),
    "Whisper large": ((1, 448, 1500), ((1280, 1280, True, None), (1280, 5120, True, "gelu"), (5120, 1280, True, None),
                      (1280, 51865, False, None))),
    "SD U-Net 64": ((4096,), ((320, 320, True, None), (320, 2560, True, "gelu"), (1280, 320, True, None))),
    "SD U-Net 32": ((1024,), ((640, 640, True, None), (640, 5120, True, "gelu"), (2560, 640, True, None))),
    "SD U-Net text": ((77,), ((768, 320, False, None), (768, 640, False, None), (768, 1280, False, None))),
    "ResNet-50": ((1,), ((2048, 1000, True, None), (2048, 512, True, "relu"))),
    "MobileNet-v2": ((1,), ((1280, 1000, True, None), (1280, 320, True, "relu"))),
}  # fmt: skip

# model: query heads, key heads, width of a head, (queries, keys, causal); keys (first, last) are a cache of drawn length.
ATTENTION = {
    "BERT base": (12, 12, 64, ((128, 128, False), (384, 384, False), (512, 512, False))),
    "BERT large": (16, 16, 64, ((128, 128, False), (384, 384, False), (512, 512, False))),
    "ViT B": (12, 12, 64, ((197, 197, False),)),
    "ViT L": (16, 16, 64, ((197, 197, False), (577, 577, False))),
    "Llama 7B": (32, 32, 128, ((512, 512, True), (1024, 1024, True), (2048, 2048, True), (4096, 4096, True), (1, (17, 8192), False))),
    "Llama 70B": (64, 8, 128, ((512, 512, True), (2048, 2048, True), (4096, 4096, True), (1, (17, 8192), False), (1, (17, 8192), False))),
    "Whisper small": (12, 12, 64, ((1500, 1500, False), (448, 448, True), (448, 1500, False), (1, 1500, False))),
    "Whisper large": (20, 20, 64, ((1500, 1500, False), (448, 448, True), (448, 1500, False), (1, (4, 448), False))),
    "SD U-Net 64": (8, 8, 40, ((4096, 4096, False), (4096, 77, False))),
    "SD U-Net 32": (8, 8, 80, ((1024, 1024, False), (1024, 77, False))),
    "SD U-Net 16": (8, 8, 160, ((256, 256, False), (256, 77, False))),
}  # fmt: skip

# model: (channels, height and width, filters, kernel, stride, padding, groups); groups 0: one for each channel.
CONV = {
    "ResNet-50": ((3, 224, 64, 7, 2, 3, 1), (64, 56, 64, 1, 1, 0, 1), (64, 56, 64, 3, 1, 1, 1), (64, 56, 256, 1, 1, 0, 1),
                  (256, 56, 128, 1, 1, 0, 1), (128, 56, 128, 3, 2, 1, 1), (256, 56, 512, 1, 2, 0, 1), (128, 28, 128, 3, 1, 1, 1),
                  (128, 28, 512, 1, 1, 0, 1), (256, 28, 256, 3, 2, 1, 1), (256, 14, 256, 3, 1, 1, 1), (1024, 14, 256, 1, 1, 0, 1),
                  (1024, 14, 2048, 1, 2, 0, 1), (512, 7, 512, 3, 1, 1, 1), (2048, 7, 512, 1, 1, 0, 1)),
    "ResNeXt-50": ((128, 56, 128, 3, 1, 1, 32), (256, 28, 256, 3, 1, 1, 32), (512, 14, 512, 3, 1, 1, 32), (512, 28, 512, 3, 2, 1, 32)),
    "MobileNet-v2": ((3, 224, 32, 3, 2, 1, 1), (32, 112, 32, 3, 1, 1, 0), (16, 112, 96, 1, 1, 0, 1), (96, 112, 96, 3, 2, 1, 0),
                     (24, 56, 144, 1, 1, 0, 1), (144, 56, 144, 3, 1, 1, 0), (144, 56, 144, 3, 2, 1, 0), (192, 28, 192, 3, 1, 1, 0),
                     (192, 28, 32, 1, 1, 0, 1), (384, 14, 384, 3, 1, 1, 0), (384, 14, 96, 1, 1, 0, 1), (576, 14, 576, 3, 2, 1, 0),
                     (960, 7, 960, 3, 1, 1, 0), (320, 7, 1280, 1, 1, 0, 1)),
    "ConvNeXt T": ((3, 224, 96, 4, 4, 0, 1), (96, 56, 96, 7, 1, 3, 0), (96, 56, 192, 2, 2, 0, 1), (192, 28, 192, 7, 1, 3, 0),
                   (384, 14, 384, 7, 1, 3, 0), (768, 7, 768, 7, 1, 3, 0)),
    "ConvNeXt B": ((3, 224, 128, 4, 4, 0, 1), (128, 56, 128, 7, 1, 3, 0), (256, 28, 512, 2, 2, 0, 1), (512, 14, 512, 7, 1, 3, 0)),
    "ViT B": ((3, 224, 768, 16, 16, 0, 1),),
    "SD U-Net": ((4, 64, 320, 3, 1, 1, 1), (320, 64, 320, 3, 1, 1, 1), (320, 64, 320, 3, 2, 1, 1), (640, 32, 640, 3, 1, 1, 1),
                 (1280, 16, 1280, 3, 1, 1, 1), (1280, 8, 1280, 3, 1, 1, 1), (2560, 16, 1280, 3, 1, 1, 1), (960, 64, 320, 1, 1, 0, 1),
                 (320, 64, 4, 3, 1, 1, 1)),
}  # fmt: skip

# model: numbers of tokens, width, width of the network between two linear layers, rows of the embedding.
ROWS = {
    "BERT base": ((128, 384, 512), 768, 3072, 30522),
    "BERT large": ((128, 384, 512), 1024, 4096, 30522),
    "ViT L": ((197, 577), 1024, 4096, 197),
    "ConvNeXt T": ((3136,), 96, 384, 196),
    "Llama 7B": ((1, 512, 2048), 4096, 11008, 32000),
    "Llama 70B": ((1, 512, 2048), 8192, 28672, 32000),
    "Whisper large": ((1, 448, 1500), 1280, 5120, 51865),
    "SD U-Net 64": ((4096, 77), 320, 1280, 49408),
}

# How often each kind comes; the forms of a cycle through them are in a drawn order.
KINDS = {"linear": 9, "linear backward": 6, "attention": 7, "attention backward": 4, "conv": 7, "conv backward": 4, "norm": 3,
         "norm backward": 2, "softmax": 2, "softmax backward": 1, "elementwise": 4, "embedding": 2, "rotary": 2}  # fmt: skip


def tokens_of(draw, table):
    """One of the table, or in one of five cases any number up to the largest."""
    return draw.randint(1, max(table)) if draw.random() < 0.2 and max(table) > 1 else draw.choice(table)


def linear(draw, model, kind):
    tokens, layers = LINEAR[model]
    inputs, outputs, bias, activation = draw.choice(layers)
    form = {"tokens": tokens_of(draw, tokens), "inputs": inputs, "outputs": outputs, "bias": bias}
    return form if "backward" in kind else form | {"activation": draw.choice((activation, activation, "relu"))}


def attention(draw, model, kind):
    heads, kv_heads, width, layers = ATTENTION[model]
    queries, keys, causal = draw.choice([each for each in layers if each[0] > 1 or "backward" not in kind])
    keys = draw.randint(*keys) if isinstance(keys, tuple) else keys
    if queries == keys and draw.random() < 0.2:
        queries = keys = draw.randint(2, keys)
    return {"heads": heads, "kv_heads": kv_heads, "width": width, "queries": queries, "keys": keys, "causal": causal,
            "packed": draw.random() < 0.5}  # fmt: skip


def conv(draw, model, kind):
    channels, size, filters, kernel, stride, padding, groups = draw.choice(CONV[model])
    form = {"channels": channels, "size": size, "filters": filters, "kernel": kernel, "stride": stride, "padding": padding,
            "groups": groups or channels, "layout": draw.choice(("nchw", "nhwc")), "bias": draw.random() < 0.5}  # fmt: skip
    return form if "backward" in kind else form | {"activation": draw.choice((None, "relu"))}


def rows(draw, model, kind):
    tokens, width, inner, vocabulary = ROWS[model]
    form = {"tokens": tokens_of(draw, tokens), "width": width}
    if kind.startswith("norm"):
        rms = model.startswith("Llama") and kind == "norm"
        form["function"] = "rms_norm" if rms else "layer_norm"
    elif kind.startswith("softmax"):
        form["width"] = draw.choice((max(tokens), vocabulary, *tokens[1:], draw.randint(2, 4096)))
        form["heads"] = draw.choice((1, 12))
    elif kind == "elementwise":
        form["function"] = draw.choice(("gelu", "silu", "multiply", "add", "gelu_gradient", "silu_gradient"))
        form["width"] = draw.choice((width, inner))
    elif kind == "embedding":
        form["vocabulary"] = vocabulary
    else:  # rotary
        form["heads"], form["width"] = max(1, width // 128), 128
    return form


def flops(form):
    """Floating-point operations; of kinds that the memory's rate limits, as many as PyTorch would do in the time of one access."""
    kind, batch = form["kind"], form["batch"]
    if kind.startswith("linear"):
        return 2 * batch * form["tokens"] * form["inputs"] * form["outputs"] * (2 if "backward" in kind else 1)
    if kind.startswith("attention"):
        scores = batch * form["heads"] * form["queries"] * form["keys"] / (2 if form["causal"] else 1)
        return scores * form["width"] * (18 if "backward" in kind else 4)
    if kind.startswith("conv"):
        made = (form["size"] + 2 * form["padding"] - form["kernel"]) // form["stride"] + 1
        window = form["kernel"] ** 2 * form["channels"] // form["groups"]
        return 2 * batch * form["filters"] * made**2 * window * (2 if "backward" in kind else 1)
    return 20 * nbytes(form)


def nbytes(form):
    """Bytes of its operands, nearly; of attention with the scores in f32, which not every way stores."""
    kind, batch, item = form["kind"], form["batch"], ITEM[form["dtype"]]
    twice = 2 if "backward" in kind else 1
    if kind.startswith("linear"):
        rows_of = batch * form["tokens"]
        return twice * item * (rows_of * (form["inputs"] + form["outputs"]) + form["inputs"] * form["outputs"])
    if kind.startswith("attention"):
        heads = batch * form["heads"]
        return twice * heads * (item * form["width"] * (form["queries"] + form["keys"]) * 2 + 4 * form["queries"] * form["keys"])
    if kind.startswith("conv"):
        made = (form["size"] + 2 * form["padding"] - form["kernel"]) // form["stride"] + 1
        return twice * item * batch * (form["channels"] * form["size"] ** 2 + form["filters"] * made**2)
    table = form.get("vocabulary", 0) * form["width"]
    return item * (2 * twice * batch * form["tokens"] * form.get("heads", 1) * form["width"] + table)


# What becomes smaller in a form that is too large, in this order, and the smallest value of each.
SHRUNK = {"batch": 1, "vocabulary": 64, "tokens": 1, "queries": 2, "keys": 2, "size": 16, "outputs": 32, "inputs": 32, "heads": 1,
          "channels": 8, "filters": 8, "width": 16}  # fmt: skip


def shrink(form, most_flops, most_bytes):
    """Halves its sizes until it is small enough, or none can be halved."""
    for name, least in SHRUNK.items():
        while name in form and form[name] // 2 >= least and (flops(form) > most_flops or nbytes(form) > most_bytes):
            form[name] //= 2
            if name in ("queries", "keys") and form["causal"]:
                form["queries"] = form["keys"] = form[name]
            elif name == "heads" and "kv_heads" in form:
                form["kv_heads"] = max(1, form["kv_heads"] // 2)
            elif name in ("channels", "filters"):
                if form["groups"] == form["channels"] * 2:  # depthwise
                    form["filters"] = form["groups"] = form["channels"]
                form["groups"] = math.gcd(form["groups"], form["channels"], form["filters"])
    return form


def forms(draw, count, most_flops, most_bytes, may_shrink, kinds=None):
    """`count` drawn forms. Where may_shrink is false, a form that is too large is drawn again, else it is made smaller."""
    order = []
    for _ in range(count):
        if not order:
            order = [kind for kind, often in KINDS.items() for _ in range(often) if kinds is None or kind in kinds]
            draw.shuffle(order)
        kind = order.pop()
        while True:
            form = {"kind": kind, "dtype": draw.choice(DTYPES), "batch": draw.choice(BATCHES)}
            base = kind.split()[0]
            table, sizes = {"linear": (LINEAR, linear), "attention": (ATTENTION, attention), "conv": (CONV, conv)}.get(base, (ROWS, rows))
            form["model"] = draw.choice([name for name in table if base != "rotary" or name.startswith("Llama")])
            form |= sizes(draw, form["model"], kind)
            limit = most_flops / (8 if form["dtype"] == "f32" else 1)
            if may_shrink:
                form = shrink(form, limit, most_bytes)
            if flops(form) <= limit and nbytes(form) <= most_bytes:
                break
        yield form


def text(form):
    """A form on a line: kind, sizes, type, model."""
    of = form
    sizes = {
        "linear": lambda: f"{of['batch']}x{of['tokens']}x{of['inputs']}x{of['outputs']}{' bias' if of['bias'] else ''} {of.get('activation') or ''}",
        "attention": lambda: f"{of['batch']}x{of['heads']}/{of['kv_heads']}x{of['queries']}x{of['keys']}x{of['width']}"
        f"{' causal' if of['causal'] else ''}{' tokens first' if of['packed'] else ''}",
        "conv": lambda: f"{of['batch']}x{of['channels']}x{of['size']}, {of['filters']} of {of['kernel']}, stride {of['stride']}, "
        f"groups {of['groups']} {of['layout']}{' bias' if of['bias'] else ''} {of.get('activation') or ''}",
    }.get(of["kind"].split()[0], lambda: f"{of.get('function', '')} {of['batch']}x{of['tokens']}x{of.get('heads', 1)}x{of['width']}")()
    return " ".join(f"{of['kind']} {sizes} {of['dtype']} ({of['model']})".split())
