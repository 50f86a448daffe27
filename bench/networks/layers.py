#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers on a CUDA device beside PyTorch, which runs them eagerly and as a CUDA graph, interleaved in one process.

On the device every variant repeats the layer, recorded as a graph where it says so; from the host, operands start and results end
in pinned memory. Before it is timed, each result is compared with PyTorch's in f32.

usage: layers.py [--json FILE] [--commit COMMIT] [--rounds N] [--seed N] [--cases linear,attention,...]
"""

import math
import random
import statistics

import record as records
import streamgemm as sg
import torch
from record import REPEATS, cuda_graph, near, operands, recorded, repeated


def values(*shape, dtype=torch.bfloat16, scale=1.0, place="cuda"):
    made = (torch.randn(shape, device="cuda") * scale).to(dtype)
    return made if place == "cuda" else made.cpu().pin_memory()


def gemm_rate(context):
    """Floating-point operations a second of PyTorch's 8192^3 in bf16."""
    a, b = values(8192, 8192), values(8192, 8192)
    c = torch.empty_like(a)
    return 2 * 8192**3 / min(records.timed(repeated(lambda: torch.matmul(a, b, out=c), 5)) / 5 for _ in range(3))


def linear_forward(context, record, options, link, rate):
    for rows, inner, out in ((8192, 4096, 4096), (64, 4096, 4096)):
        x, w, bias = values(rows, inner), values(out, inner, scale=inner**-0.5), values(out)
        y = torch.empty(rows, out, device="cuda", dtype=x.dtype)
        context.linear(x, w, bias, y, op_w="T", activation="relu")
        known = torch.relu(torch.nn.functional.linear(x, w, bias))
        near(y, known, "linear")

        given = operands(x, w, bias, y)

        def by_torch():
            torch.nn.functional.relu(torch.nn.functional.linear(x, w, bias), inplace=True)

        record.measure(f"linear {rows}x{inner}x{out} relu bf16", {
            "streamgemm": recorded(context, lambda g, s: g.linear(x, w, bias, y, op_w="T", activation="relu")),
            "streamgemm, calls": repeated(lambda: context.linear_async(*given, op_w="T", activation="relu")),
            "PyTorch": repeated(by_torch),
            "PyTorch, CUDA graph": cuda_graph(by_torch, REPEATS),
        }, options.rounds, REPEATS, bound_seconds=2 * rows * inner * out / rate)  # fmt: skip
    x, w, bias = values(16384, 4096, place="host"), values(4096, 4096, scale=1 / 64, place="host"), values(4096, place="host")
    y = torch.empty(16384, 4096, dtype=x.dtype).pin_memory()

    def host_by_torch():
        moved = [each.to("cuda", non_blocking=True) for each in (x, w, bias)]
        y.copy_(torch.nn.functional.relu(torch.nn.functional.linear(*moved), inplace=True), non_blocking=True)

    bound = max((x.nbytes + w.nbytes) / link[0], y.nbytes / link[1], 2 * 16384 * 4096**2 / rate)
    record.measure("linear 16384x4096x4096 relu bf16, pinned", {
        "streamgemm": lambda: context.linear_async(x, w, bias, y, op_w="T", activation="relu"),
        "PyTorch": host_by_torch,
    }, options.rounds, bound_seconds=bound)  # fmt: skip
    near(y, torch.relu(torch.nn.functional.linear(x.cuda(), w.cuda(), bias.cuda())), "linear, pinned")


def linear_backward(context, record, options, link, rate):
    n = 8192
    dy, x, w = (values(n, n, scale=1 / 64, place="host") for _ in range(3))
    dx, dw = (torch.empty(n, n, dtype=torch.bfloat16).pin_memory() for _ in range(2))
    dbias = torch.empty(n, dtype=torch.float32).pin_memory()

    def host_by_torch():
        g, a, b = (each.to("cuda", non_blocking=True) for each in (dy, x, w))
        dx.copy_(g @ b.T, non_blocking=True)
        dw.copy_(a.T @ g, non_blocking=True)
        dbias.copy_(g.sum(0, dtype=torch.float32), non_blocking=True)

    bound = max(3 * dy.nbytes / link[0], 2 * dx.nbytes / link[1], 4 * n**3 / rate)
    record.measure("linear backward 8192^3 bf16, pinned", {
        "streamgemm": lambda: context.linear_backward_async(dy, x, w, dx=dx, dw=dw, dbias=dbias),
        "PyTorch": host_by_torch,
    }, options.rounds, bound_seconds=bound)  # fmt: skip
    context.linear_backward(dy, x, w, dx=dx, dw=dw, dbias=dbias)
    g, a, b = (each.cuda() for each in (dy, x, w))
    near(dx, g @ b.T, "dX")
    near(dw, a.T @ g, "dW")
    near(dbias, g.sum(0, dtype=torch.float32), "dbias")
    for rows, inner, out in ((8192, 8192, 8192), (2048, 2048, 2048), (1024, 1024, 1024), (512, 1024, 1024), (512, 512, 512),
                             (128, 4096, 512), (128, 512, 4096), (4096, 512, 256)):  # fmt: skip
        repeats = 4 if rows == 8192 else REPEATS
        dy, x, w = values(rows, out, scale=1 / 64), values(rows, inner, scale=1 / 64), values(inner, out, scale=1 / 64)
        dx, dw = torch.empty_like(x), torch.empty_like(w)
        stream = context.stream()

        def after_each_other(g, s):
            g.linear_backward(dy, None, w, dx=dx, dbias=False, stream=s)
            g.linear_backward(dy, x, None, dw=dw, dbias=False, stream=s)

        def by_torch():
            torch.matmul(dy, w.T, out=dx)
            torch.matmul(x.T, dy, out=dw)

        dx.fill_(math.nan), dw.fill_(math.nan)
        torch.cuda.synchronize()
        context.linear_backward(dy, x, w, dx=dx, dw=dw, dbias=False)
        near(dx, dy @ w.T, "dX")
        near(dw, x.T @ dy, "dW")
        record.measure(f"linear backward {rows}x{inner}x{out} bf16", {
            "streamgemm": recorded(context, lambda g, s: g.linear_backward(dy, x, w, dx=dx, dw=dw, dbias=False), repeats),
            "streamgemm, dX then dW": recorded(context, after_each_other, repeats, stream),
            "PyTorch": repeated(by_torch, repeats),
            "PyTorch, CUDA graph": cuda_graph(by_torch, repeats),
        }, options.rounds, repeats, bound_seconds=4 * rows * inner * out / rate)  # fmt: skip


def attention(context, record, options, link, rate):
    for batch, heads, tokens, width, causal in ((64, 12, 512, 64, False), (1, 12, 512, 64, False), (1, 8, 8192, 64, True)):
        q, k, v = (values(batch, heads, tokens, width) for _ in range(3))
        out = torch.empty_like(q)
        mask = "causal" if causal else None
        context.attention(q, k, v, out, mask=mask)
        near(out, torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal), "attention")

        given = operands(q, k, v, out)

        def by_torch():
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        case = f"attention {batch}x{heads}x{tokens}x{width}{' causal' if causal else ''} bf16"
        flops = 4 * batch * heads * tokens**2 * width / (2 if causal else 1)
        record.measure(case, {
            "streamgemm": recorded(context, lambda g, s: g.attention(q, k, v, out, mask=mask)),
            "streamgemm, calls": repeated(lambda: context.attention_async(*given, mask=mask)),
            "PyTorch": repeated(by_torch),
            "PyTorch, CUDA graph": cuda_graph(by_torch, REPEATS),
        }, options.rounds, REPEATS, bound_seconds=flops / rate)  # fmt: skip
        if batch * heads < 64:
            continue
        hosted = [each.cpu().pin_memory() for each in (q, k, v)]
        result = torch.empty_like(hosted[0]).pin_memory()

        def host_by_torch():
            moved = [each.to("cuda", non_blocking=True) for each in hosted]
            result.copy_(torch.nn.functional.scaled_dot_product_attention(*moved), non_blocking=True)

        # Batches of the pipeline: four sentences each, whose q, k and v follow each other.
        part = 4
        together = torch.stack([each.view(batch // part, part, heads, tokens, width) for each in hosted], 1).pin_memory()
        pipeline = context.pipeline((3, part, heads, tokens, width), "bf16")
        stage = pipeline.stage((part, heads, tokens, width))
        one = (part, heads, tokens, width)
        stage.attention(*(stage.input.part(one, offset=i * result.nbytes * part // batch) for i in range(3)), stage.output)

        def by_pipeline():
            for i in range(batch // part):
                job = pipeline.push_async(together[i], result[i * part : (i + 1) * part])
            return job

        bound = max(together.nbytes / link[0], result.nbytes / link[1], flops / rate)
        record.measure(case + ", pinned", {"streamgemm": by_pipeline, "PyTorch": host_by_torch}, options.rounds,
                       bound_seconds=bound)  # fmt: skip
        by_pipeline().result()
        near(result, torch.nn.functional.scaled_dot_product_attention(q, k, v), "attention, pinned")
        pipeline.close()


def convolution(context, record, options, link, rate):
    for images, channels, size, filters in ((64, 3, 224, 64), (32, 256, 56, 256)):
        x, w = values(images, channels, size, size), values(filters, channels, 3, 3, scale=(9 * channels) ** -0.5)
        for layout in ("nchw", "nhwc"):
            form = torch.contiguous_format if layout == "nchw" else torch.channels_last
            of_x, of_w = x.contiguous(memory_format=form), w.contiguous(memory_format=form)
            out = torch.empty(images, filters, size, size, device="cuda", dtype=x.dtype).contiguous(memory_format=form)
            inner = layout == "nhwc"  # the library's arrays have their dimensions in the order of memory
            given = [each.permute(0, 2, 3, 1) if inner else each for each in (of_x, of_w, out)]
            how = {"padding": 1, "layout": layout, "filter_layout": "ohwi" if inner else "oihw"}
            context.conv2d(given[0], given[1], None, given[2], **how)
            near(out, torch.nn.functional.conv2d(of_x, of_w, padding=1), "convolution")

            def by_torch():
                torch.nn.functional.conv2d(of_x, of_w, padding=1)

            case = f"conv {images}x{channels}x{size}x{size}, {filters} of 3x3, {layout} bf16"
            flops = 2 * images * size * size * filters * channels * 9
            record.measure(case, {
                "streamgemm": recorded(context, lambda g, s: g.conv2d(given[0], given[1], None, given[2], **how)),
                "PyTorch": repeated(by_torch),
                "PyTorch, CUDA graph": cuda_graph(by_torch, REPEATS),
            }, options.rounds, REPEATS, bound_seconds=max(flops / rate, (x.nbytes + out.nbytes) / 4.8e12))  # fmt: skip
            hosted = [each.cpu().pin_memory() for each in given[:2]]
            result = torch.empty(given[2].shape, dtype=x.dtype).pin_memory()
            by_torch_host = result.permute(0, 3, 1, 2) if inner else result

            def host_by_torch():
                moved = [each.to("cuda", non_blocking=True) for each in hosted]
                moved = [each.permute(0, 3, 1, 2) if inner else each for each in moved]
                by_torch_host.copy_(torch.nn.functional.conv2d(*moved, padding=1), non_blocking=True)

            bound = max(x.nbytes / link[0], out.nbytes / link[1], flops / rate)
            record.measure(case + ", pinned", {
                "streamgemm": lambda: context.conv2d_async(hosted[0], hosted[1], None, result, **how),
                "PyTorch": host_by_torch,
            }, options.rounds, bound_seconds=bound)  # fmt: skip
            near(by_torch_host, torch.nn.functional.conv2d(x, w, padding=1), "convolution, pinned")


def lstm(context, record, options, link, rate):
    layers, width, steps, batch = 3, 256, 160, 64
    net = torch.nn.LSTM(width, width, layers).cuda().bfloat16()
    x = values(steps, batch, width)
    outs = [torch.empty_like(x) for _ in range(layers)]
    weights = [[getattr(net, f"{name}_l{i}").detach() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")] for i in range(layers)]

    def submit(to, call):
        given = x
        for own, out in zip(weights, outs):
            call(given, *own, out=out, hn=False, cn=False)
            given = out
        return to

    submit(None, context.lstm)
    near(outs[-1], net(x)[0], "LSTM")

    def calls():
        given = operands(x, *outs)
        for i, own in enumerate(weights):
            job = context.lstm_async(given[i], *own, out=given[i + 1], hn=False, cn=False)
        return job

    def by_torch():
        net(x)

    flops = layers * steps * batch * 16 * width**2
    record.measure(f"LSTM {layers} x {width}, {steps} steps, batch {batch} bf16", {
        "streamgemm": recorded(context, lambda g, s: submit(g, g.lstm), 2),
        "streamgemm, calls": repeated(calls, 2),
        "PyTorch": repeated(by_torch, 2),
        "PyTorch, CUDA graph": cuda_graph(by_torch, 2),
    }, options.rounds, 2, bound_seconds=flops / rate)  # fmt: skip
    hosted, result = x.cpu().pin_memory(), torch.empty_like(x, device="cpu").pin_memory()

    def record_from_host(g, s):
        g.copy(x, hosted)
        submit(g, g.lstm)
        return g.copy(result, outs[-1])

    def host_by_torch():
        result.copy_(net(x.copy_(hosted, non_blocking=True))[0], non_blocking=True)

    record.measure(f"LSTM {layers} x {width}, {steps} steps, batch {batch} bf16, pinned", {
        "streamgemm": recorded(context, record_from_host, 1),
        "PyTorch": host_by_torch,
        "PyTorch, CUDA graph": cuda_graph(host_by_torch, 1),
    }, options.rounds, 1, bound_seconds=flops / rate)  # fmt: skip
    near(result, net(x)[0], "LSTM, pinned")


def memory_bound(context, record, options, link, rate):
    """Operations that the memory's rate limits, at drawn shapes; the bound is a copy of as many bytes on the device."""
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    record.note(seed=seed)
    draw, functions = random.Random(seed), torch.nn.functional
    widths = (512, 768, 1024, 1280, 2048, 3072, 4096, 5120, 8192, 11008, 14336, 32000, 50257)
    for name in ("GELU", "SiLU", "multiply", "layer norm", "RMS norm", "softmax") * 4:
        dtype = draw.choice((torch.bfloat16, torch.float16, torch.float32))
        cols = draw.choice(widths[:-2] if "norm" in name else widths)
        rows = min(2 ** draw.randrange(6, 15) + draw.choice((0, 0, 5)), (1 << 27) // cols)
        x, y, gamma = values(rows, cols, dtype=dtype), values(rows, cols, dtype=dtype), values(cols, dtype=dtype)
        out = torch.empty_like(x)
        ours, theirs = {
            "GELU": (lambda to: to.elementwise("gelu", x, out=out), lambda: functions.gelu(x, approximate="tanh")),
            "SiLU": (lambda to: to.elementwise("silu", x, out=out), lambda: functions.silu(x)),
            "multiply": (lambda to: to.elementwise("multiply", x, y, out=out), lambda: torch.mul(x, y)),
            "layer norm": (lambda to: to.layer_norm(x, gamma, gamma, out), lambda: functions.layer_norm(x, (cols,), gamma, gamma)),
            "RMS norm": (lambda to: to.rms_norm(x, gamma, out), lambda: functions.rms_norm(x, (cols,), gamma, 1e-5)),
            "softmax": (lambda to: to.softmax(x, out), lambda: functions.softmax(x, -1)),
        }[name]
        ours(context)
        near(out, theirs(), name)
        moved = x.nbytes * (3 if name == "multiply" else 2)
        source, target = (torch.empty(moved // 2, dtype=torch.uint8, device="cuda") for _ in range(2))
        copy = cuda_graph(lambda: target.copy_(source), REPEATS)
        bound = statistics.median(records.timed(copy) for _ in range(9)) / REPEATS
        record.measure(f"{name} {rows}x{cols} {str(dtype)[6:]}", {
            "streamgemm": recorded(context, lambda g, s: ours(g)),
            "PyTorch": repeated(theirs),
            "PyTorch, CUDA graph": cuda_graph(theirs, REPEATS),
        }, options.rounds, REPEATS, bound_seconds=bound)  # fmt: skip


def short_calls(context, record, options, link, rate):
    """Calls of operations that take the device a few microseconds: many in a row, and each waited for."""
    x = values(64, 1024, dtype=torch.float32)
    gamma, beta, out = values(1024, dtype=x.dtype), values(1024, dtype=x.dtype), torch.empty_like(x)
    given, result, others = sg.Matrix(x), sg.Matrix(out), operands(gamma, beta)
    functions = torch.nn.functional
    for name, ours, theirs in (
        ("layer norm", lambda: context.layer_norm_async(given, *others, result), lambda: functions.layer_norm(x, (1024,), gamma, beta)),
        ("softmax", lambda: context.softmax_async(given, result), lambda: functions.softmax(x, -1)),
        ("GELU", lambda: context.elementwise_async("gelu", given, out=result), lambda: functions.gelu(x, approximate="tanh")),
        ("axpby", lambda: context.axpby_async(given, result, alpha=2.0, beta=0.0), lambda: torch.mul(x, 2.0)),
    ):  # fmt: skip
        ours().result()
        near(out, theirs(), name)

        def waited(call=ours):
            for _ in range(200):
                call().result()

        def waited_by_torch(call=theirs):
            for _ in range(200):
                call()
                torch.cuda.synchronize()

        case = f"{name} 64x1024 f32, calls"
        record.measure(case, {"streamgemm": repeated(ours, 200), "PyTorch": repeated(theirs, 200)}, options.rounds, 200)
        record.measure(case + " waited for", {"streamgemm": waited, "PyTorch": waited_by_torch}, options.rounds, 200)


CASES = {"linear": linear_forward, "linear_backward": linear_backward, "attention": attention, "conv": convolution, "lstm": lstm,
         "calls": short_calls, "memory": memory_bound}  # fmt: skip


def main():
    parser = records.arguments(__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--seed", type=int, help="of the drawn shapes of the case memory; by default another each time")
    options = parser.parse_args()
    torch.manual_seed(1)
    with torch.no_grad(), sg.Context("cuda:0") as context:
        record = records.Record("layers", context, options.commit)
        link, rate = records.best_link(), gemm_rate(context)
        print(f"link {link[0] / 1e9:.1f} GB/s in, {link[1] / 1e9:.1f} out; bf16 {rate / 1e12:.0f} TFLOP/s")
        record.note(link_in=link[0], link_out=link[1], bf16_flops=rate)
        for name in options.cases.split(","):
            try:
                CASES[name](context, record, options, link, rate)
            finally:
                record.write(options.json)


if __name__ == "__main__":
    main()
