#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder larger than the device's memory: 48 layers of the shape of OPT-30B (width 7168, 56 heads, without biases), 59 GB of weights in
bf16 in host memory, streamed for each pass by a pipeline; also as i8 and i4 with a scale for each 64 values. The weights are random.

Beside it PyTorch: each layer's weights moved by .to, and prefetched by hand on a second stream into two buffers. A pass is one batch,
from its tokens in pinned memory to its result there. The ideal is the longer of the run's transfers and its arithmetic by its trace.

usage: decoder.py [--json FILE] [--commit COMMIT] [--rounds N] [--layers N] [--width N] [--device NAME]
"""

import statistics
import time

import record as records
import streamgemm as sg
import torch

HEAD, BLOCK = 128, 64
BITS = {"bf16": 16, "i8": 8, "i4": 4}


def layer_bytes(width, kind):
    """Of the four matrices and two vectors of a layer in bf16; or of quantised matrices."""
    values = 12 * width * width
    return values * BITS[kind] // 8 + (4 * width if kind == "bf16" else 0)


def record_layer(stage, width, sequences, tokens, kind):
    """x + attention(norm(x)), then y + W gelu(W norm(y)), all matrices inputs x outputs."""
    rows = sequences * tokens
    used = 0

    def space(*shape):
        nonlocal used
        matrix = stage.workspace(shape, "bf16", offset=used)
        used += -(-2 * matrix.shape[0] * matrix.shape[1] // 256) * 256
        return matrix

    if kind == "bf16":
        flat, norms = stage.weights[0], stage.weights[0]
        start = 12 * width * width
    else:
        quantised, scales, norms = stage.weights
        flat, start = space(12 * width, width), 0
        stage.dequantize(quantised, scales, out=flat, quantization=kind)

    def part(of, shape, first):
        strides = (2 * shape[-1], 2) if len(shape) == 2 else (2,)
        return of.part(shape, strides, offset=2 * first)

    square = width * width
    w_qkv, w_out = part(flat, (width, 3 * width), 0), part(flat, (width, width), 3 * square)
    w_up, w_down = part(flat, (width, 4 * width), 4 * square), part(flat, (4 * width, width), 8 * square)
    gamma_1, gamma_2 = part(norms, (width,), start), part(norms, (width,), start + width)
    h, qkv, attended, y, inner = (space(rows, columns * width) for columns in (1, 3, 1, 1, 4))

    def heads(of, first, row):
        return of.part((sequences, width // HEAD, tokens, HEAD), (2 * row * tokens, 2 * HEAD, 2 * row, 2), offset=2 * first)

    stage.rms_norm(stage.input, gamma_1, h)
    stage.linear(h, w_qkv, out=qkv)
    q, k, v = (heads(qkv, i * width, 3 * width) for i in range(3))
    stage.attention(q, k, v, heads(attended, 0, width), mask="causal")
    stage.linear(attended, w_out, out=y)
    stage.elementwise("add", y, stage.input, y)
    stage.rms_norm(y, gamma_2, h)
    stage.linear(h, w_up, out=inner, activation="gelu")
    stage.linear(inner, w_down, out=stage.output)
    stage.elementwise("add", stage.output, y, stage.output)


def pipeline_of(context, layers, width, sequences, tokens, kind, place):
    """layers: for each layer its weights: one flat bf16 array, or (values, scales, the norms' vectors)."""
    rows = sequences * tokens
    workspace = 10 * (2 * rows * width + 256) + (24 * width * width + 256 if kind != "bf16" else 0)
    made = context.pipeline((rows, width), "bf16")
    for weights in layers:
        record_layer(made.stage((rows, width), weights=weights, workspace=workspace, place=place), width, sequences, tokens, kind)
    return made


def layer_by_torch(x, flat, width, sequences, tokens):
    square = width * width
    w_qkv, w_out = flat[: 3 * square].view(width, -1), flat[3 * square : 4 * square].view(width, -1)
    w_up, w_down = flat[4 * square : 8 * square].view(width, -1), flat[8 * square : 12 * square].view(-1, width)
    gamma_1, gamma_2 = flat[12 * square :].view(2, width)
    norm = torch.nn.functional.rms_norm
    qkv = (norm(x, (width,), gamma_1, 1e-5) @ w_qkv).view(sequences, tokens, 3, -1, HEAD).permute(2, 0, 3, 1, 4)
    attended = torch.nn.functional.scaled_dot_product_attention(*qkv, is_causal=True).transpose(1, 2).reshape(x.shape)
    y = x + attended @ w_out
    return y + torch.nn.functional.gelu(norm(y, (width,), gamma_2, 1e-5) @ w_up, approximate="tanh") @ w_down


def passes_by_torch(flats, x, out, width, sequences, tokens):
    """The ways in which PyTorch streams layers: .to, and a prefetch on a second stream."""
    buffers = [torch.empty(len(flats[0]), dtype=torch.bfloat16, device="cuda") for _ in range(2)]
    side = torch.cuda.Stream()

    def moved():
        y = x.to("cuda", non_blocking=True)
        for flat in flats:
            y = layer_by_torch(y, flat.to("cuda", non_blocking=True), width, sequences, tokens)
        out.copy_(y)

    def prefetched():
        came, used = ([torch.cuda.Event() for _ in flats] for _ in range(2))
        y, main = x.to("cuda", non_blocking=True), torch.cuda.current_stream()
        for i, flat in enumerate(flats):
            with torch.cuda.stream(side):
                if i > 1:
                    side.wait_event(used[i - 2])
                buffers[i % 2].copy_(flat, non_blocking=True)
                came[i].record()
            main.wait_event(came[i])
            y = layer_by_torch(y, buffers[i % 2], width, sequences, tokens)
            used[i].record(main)
        out.copy_(y)

    return {"PyTorch, .to": moved, "PyTorch, prefetch by hand": prefetched}


def measure(record, context, name, pipeline, x, out, rounds, peers, link):
    info = pipeline.info
    pipeline.push(x, out)
    medians = record.measure(name, {"streamgemm": lambda: pipeline.push_async(x, out)}, rounds)
    trace = context.trace()
    pipeline.push(x, out)
    context.synchronize()
    trace.stop()
    metrics = trace.metrics(context)
    trace.close()
    ideal = max(info.streamed_bytes / link[0], metrics.compute_seconds)
    seconds = medians["streamgemm"]
    samples = {peer: [records.timed(work) for _ in range(1 + min(rounds, 2))][1:] for peer, work in peers.items()}
    record.add(name, "ideal", [ideal], streamed_bytes=info.streamed_bytes, compute_seconds=metrics.compute_seconds,
               copy_in_seconds=metrics.copy_in_seconds, traced_seconds=metrics.span_seconds,
               predicted_seconds=info.seconds_per_batch, depth=info.depth, weight_buffers=info.weight_buffers)  # fmt: skip
    print(
        f"  {seconds / ideal:.3f} x max(link {info.streamed_bytes / link[0]:.3f}, arithmetic {metrics.compute_seconds:.3f} s); copies in "
        f"{metrics.copy_in_seconds:.3f} s; {seconds / info.seconds_per_batch:.3f} x predicted; {info.weight_buffers} weight buffers"
    )
    for peer, of in samples.items():
        record.add(name, peer, of)
        print(f"  {peer:28} {statistics.median(of):7.3f} s, {statistics.median(of) / seconds:.2f} x streamgemm", flush=True)
    pipeline.close()
    return seconds


def main():
    parser = records.arguments(__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--width", type=int, default=7168)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    width, size = options.width, layer_bytes(options.width, "bf16")
    torch.manual_seed(1)
    began = time.perf_counter()
    memory = torch.empty(options.layers, size // 2, dtype=torch.bfloat16)
    for flat in memory:
        made = torch.randn(size // 2, device="cuda", dtype=torch.bfloat16) * width**-0.5
        made[-2 * width :] = 1
        flat.copy_(made)
    del made
    print(f"{memory.nbytes / 1e9:.1f} GB of weights in {time.perf_counter() - began:.0f} s", flush=True)
    scales = torch.full((12 * width, width // BLOCK), 1 / 4096, dtype=torch.bfloat16)
    ones = torch.ones(2 * width, dtype=torch.bfloat16)
    bytes_of = memory.view(torch.int8)

    def weights_of(kind, layer, pinned):
        if kind == "bf16":
            return [memory[layer]]
        columns = width * BITS[kind] // 8
        return [bytes_of[layer][: 12 * width * columns].view(12 * width, columns), *small[pinned]]

    small = {False: (scales, ones), True: (scales.pin_memory(), ones.pin_memory())}
    with torch.no_grad(), sg.Context(options.device) as context:
        record = records.Record("decoder", context, options.commit)
        link = records.best_link()
        print(f"link {link[0] / 1e9:.1f} GB/s in")
        record.note(link_in=link[0], link_out=link[1], weights=memory.nbytes)
        seconds, pins = {}, []
        for pinned in (False, True):
            if pinned:
                began = time.perf_counter()
                pins = [context.pin(flat) for flat in memory]
                record.note(pin_seconds=time.perf_counter() - began)
                print(f"pinned in {time.perf_counter() - began:.0f} s", flush=True)
            for sequences, tokens in ((1, 144), (14, 1000)):
                x = torch.randn(sequences * tokens, width).bfloat16().pin_memory()
                out, known = torch.empty_like(x).pin_memory(), torch.empty_like(x).pin_memory()
                for kind in BITS:
                    layers = [weights_of(kind, i, pinned) for i in range(options.layers)]
                    pipeline = pipeline_of(context, layers, width, sequences, tokens, kind, "streamed")
                    ways = passes_by_torch(memory, x, known, width, sequences, tokens) if kind == "bf16" else {}
                    if not pinned:
                        ways.pop("PyTorch, prefetch by hand", None)  # copies of pageable memory wait for the host
                        ways = ways if tokens == 144 else {}
                    case = f"{sequences * tokens} tokens, {kind}, {'pinned' if pinned else 'pageable'}"
                    seconds[case] = measure(record, context, case, pipeline, x, out, options.rounds, ways, link)
                    if kind != "bf16":
                        print(f"  {seconds[case.replace(kind, 'bf16')] / seconds[case]:.2f} x as fast as bf16", flush=True)
                    elif ways:
                        error = (out.float() - known.float()).abs().max() / known.float().abs().max()
                        assert error < 5e-2, error
                    record.write(options.json)
        for pin in pins:
            pin.close()


if __name__ == "__main__":
    main()
