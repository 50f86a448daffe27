#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches from pinned memory through an MLP and through three stages, by a pipeline and by PyTorch, whose hand-written twin
has a stream for each direction of the link, one for arithmetic, and two buffers.

The ideal is the longest of a run's transfers in, transfers out and arithmetic, as a trace of that run has them. The pipeline's rows
have the measured time without a trace, and as `of_ideal` the traced run's time over its ideal.

usage: batches.py [--json FILE] [--commit COMMIT] [--rounds N]
"""

import record as records
import streamgemm as sg
import torch

BATCHES = 200


def twin(stages, inputs, outputs):
    """What PyTorch runs: copies in, `stages` and copies out on three streams, ordered by events, two buffers for each."""
    streams = [torch.cuda.Stream() for _ in range(3)]
    given = [torch.empty(inputs[0].shape, dtype=inputs[0].dtype, device="cuda") for _ in range(2)]
    found = [torch.empty(outputs[0].shape, dtype=outputs[0].dtype, device="cuda") for _ in range(2)]

    def run():
        came, done, left = ([torch.cuda.Event() for _ in inputs] for _ in range(3))
        for i, (x, y) in enumerate(zip(inputs, outputs)):
            with torch.cuda.stream(streams[0]):
                if i > 1:
                    streams[0].wait_event(done[i - 2])
                given[i % 2].copy_(x, non_blocking=True)
                came[i].record()
            with torch.cuda.stream(streams[1]):
                streams[1].wait_event(came[i])
                if i > 1:
                    streams[1].wait_event(left[i - 2])
                stages(given[i % 2], found[i % 2])
                done[i].record()
            with torch.cuda.stream(streams[2]):
                streams[2].wait_event(done[i])
                y.copy_(found[i % 2], non_blocking=True)
                left[i].record()

    return run


def simple(stages, inputs, outputs):
    found = torch.empty(outputs[0].shape, dtype=outputs[0].dtype, device="cuda")

    def run():
        for x, y in zip(inputs, outputs):
            stages(x.to("cuda", non_blocking=True), found)
            y.copy_(found, non_blocking=True)

    return run


def measure(context, record, options, case, pipeline, stages, inputs, outputs):
    pushed = [(sg.Matrix(x), sg.Matrix(y)) for x, y in zip(inputs, outputs)]

    def push():
        for x, y in pushed:
            job = pipeline.push_async(x, y)
        return job

    def traced():
        context.synchronize()
        trace = context.trace()
        push().result()
        context.synchronize()
        trace.stop()
        found = trace.metrics(context)
        trace.close()
        return found

    push().result()
    free = torch.cuda.mem_get_info()[0]
    before = context.metrics
    push().result()
    after = context.metrics
    assert (free, before.device_bytes, before.pinned_bytes) == (torch.cuda.mem_get_info()[0], after.device_bytes, after.pinned_bytes)
    metrics = sorted((traced() for _ in range(5)), key=lambda each: each.span_seconds)[2]
    ideal = max(metrics.copy_in_seconds, metrics.copy_out_seconds, metrics.compute_seconds)
    info = pipeline.info
    predicted = info.seconds_per_batch * len(inputs)
    medians = record.measure(case, {
        "streamgemm": push, "PyTorch": simple(stages, inputs, outputs), "PyTorch, three streams": twin(stages, inputs, outputs),
    }, options.rounds, bound_seconds=ideal, traced_seconds=metrics.span_seconds, of_ideal=metrics.span_seconds / ideal,
        copy_in_seconds=metrics.copy_in_seconds, copy_out_seconds=metrics.copy_out_seconds,
        compute_seconds=metrics.compute_seconds, predicted_seconds=predicted, depth=info.depth)  # fmt: skip
    print(
        f"  traced {metrics.span_seconds * 1e3:.2f} ms: in {metrics.copy_in_seconds * 1e3:.2f}, arithmetic "
        f"{metrics.compute_seconds * 1e3:.2f}, out {metrics.copy_out_seconds * 1e3:.2f}: {metrics.span_seconds / ideal:.3f} x ideal; "
        f"depth {info.depth}; {medians['streamgemm'] / predicted:.3f} x predicted; no allocation"
    )
    pipeline.close()


def pinned(count, *shape, dtype=torch.bfloat16):
    return [torch.randn(shape, device="cuda").to(dtype).cpu().pin_memory() for _ in range(count)]


def check(outputs, inputs, stages):
    for x, y in list(zip(inputs, outputs))[:: len(inputs) // 3]:
        known = torch.empty(y.shape, dtype=y.dtype, device="cuda")
        stages(x.cuda(), known)
        error = ((y.cuda().float() - known.float()).abs().max() / known.float().abs().max()).item()
        assert error < 2e-2, error


def mlp(context, record, options, rows, width, layers=12):
    weights = [(torch.randn(width, width, device="cuda") * (2 / width) ** 0.5).bfloat16() for _ in range(layers)]
    inputs, outputs = pinned(BATCHES, rows, width), pinned(BATCHES, rows, width)

    def stages(x, y):
        for w in weights[:-1]:
            x = torch.relu_(x @ w)
        torch.matmul(x, weights[-1], out=y)
        torch.relu_(y)

    pipeline = context.pipeline((rows, width), "bf16", batches_in_flight=BATCHES)
    for w in weights:
        stage = pipeline.stage((rows, width), weights=[w])
        stage.gemm(stage.input, stage.weights[0], stage.output, activation="relu")
    measure(context, record, options, f"MLP, {layers} layers of {width}, {BATCHES} x {rows} rows, bf16", pipeline, stages, inputs, outputs)
    check(outputs, inputs, stages)


def three_stages(context, record, options, images=512, side=24, channels=13, features=1024, classes=64):
    """Images of 13 channels: normalised, encoded by a hidden layer, decoded to a score for each pixel."""
    pixels = side * side
    gamma, beta = torch.rand(channels * pixels, device="cuda") + 0.5, torch.rand(channels * pixels, device="cuda")
    encode = torch.randn(channels * pixels, features, device="cuda") * (channels * pixels) ** -0.5
    decode = torch.randn(features, classes * pixels // 4, device="cuda") * features**-0.5
    gamma, beta, encode, decode = (each.bfloat16() for each in (gamma, beta, encode, decode))
    inputs, outputs = pinned(BATCHES, images, channels * pixels), pinned(BATCHES, images, decode.shape[1])

    def stages(x, y):
        x = torch.nn.functional.layer_norm(x, x.shape[1:], gamma, beta)
        torch.softmax(torch.relu_(x @ encode) @ decode, 1, out=y)

    pipeline = context.pipeline((images, channels * pixels), "bf16", batches_in_flight=BATCHES)
    first = pipeline.stage((images, channels * pixels), weights=[gamma, beta], name="preprocess")
    first.layer_norm(first.input, first.weights[0], first.weights[1], first.output)
    second = pipeline.stage((images, features), weights=[encode], name="encode")
    second.gemm(second.input, second.weights[0], second.output, activation="relu")
    third = pipeline.stage((images, decode.shape[1]), weights=[decode], name="decode")
    third.gemm(third.input, third.weights[0], third.output)
    third.softmax(third.output, third.output)
    measure(context, record, options, f"three stages, {BATCHES} x {images} images", pipeline, stages, inputs, outputs)
    check(outputs, inputs, stages)


def main():
    options = records.arguments(__doc__.splitlines()[0]).parse_args()
    torch.manual_seed(1)
    with torch.no_grad(), sg.Context("cuda:0") as context:
        record = records.Record("batches", context, options.commit)
        mlp(context, record, options, 1024, 4096)
        mlp(context, record, options, 2048, 2048)
        mlp(context, record, options, 256, 1024)
        three_stages(context, record, options)
        record.write(options.json)


if __name__ == "__main__":
    main()
