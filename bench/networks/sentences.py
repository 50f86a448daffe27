#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sentences a second through all-MiniLM-L6-v2 on the cpu, in batches of 32: by the example sentences.py, and by ONNX Runtime, if it is
installed, on the same weights as an ONNX model of the same graph, made here.

ONNX Runtime pads each batch to its longest sentence and masks the padding; the library joins the rows of all sentences instead. Both
compute f32 on all cores of the process.

usage: sentences.py FOLDER [--json FILE [--commit COMMIT]] [--rounds N]    FOLDER: as for the example
"""
import argparse
import datetime
import json
import pathlib
import platform
import statistics
import sys
import time

import numpy as np
import streamgemm as sg

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python" / "examples"))
import sentences as example  # noqa: E402

BATCH = 32
WORDS = ("the matrix of weights meets a stream of small batches while every core computes its own part and nobody waits for "
         "data that is already there because copies run beside the arithmetic and results return in order").split()
LENGTHS = {"12 to 16 words": (12, 16), "4 to 60 words": (4, 60)}


def batch_of(lengths, seed):
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(*lengths, endpoint=True))) for _ in range(BATCH)]


def onnx_session(network):
    """The network as an ONNX model of ids (batch x tokens) and of a mask that is added to scores."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    nodes, constants = [], []

    def constant(name, array):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(kind, inputs, **options):
        nodes.append(helper.make_node(kind, inputs, [f"v{len(nodes)}"], **options))
        return nodes[-1].output[0]

    def linear(x, w, b, name):
        product = node("MatMul", [x, constant(f"{name}.w", w.T)])
        return node("Add", [product, constant(f"{name}.b", b)])

    def norm(x, gamma, beta, name):
        vectors = [constant(f"{name}.{kind}", value) for kind, value in (("gamma", gamma), ("beta", beta))]
        return node("LayerNormalization", [x, *vectors], axis=-1, epsilon=network.epsilon)

    heads, width = network.heads, network.words.shape[1]
    shape = constant("heads", np.array([0, 0, heads, width // heads], np.int64))
    joined = constant("joined", np.array([0, 0, width], np.int64))
    scale = constant("scale", np.float32((width // heads) ** -0.5))
    half, one, root = (constant(name, np.float32(value)) for name, value in (("half", 0.5), ("one", 1), ("root", 0.5**0.5)))
    x = node("Gather", [constant("words", network.words), "ids"])
    x = node("Add", [x, node("Gather", [constant("positions", network.positions), "numbers"])])
    x = norm(node("Add", [x, constant("type", network.types[0])]), *network.first_norm, "first")
    for i, ((w_qkv, b_qkv), out, norm_1, up, down, norm_2) in enumerate(network.layers):
        split = []
        for name, w, b in zip("qkv", np.split(w_qkv, 3), np.split(b_qkv, 3)):
            rows = node("Reshape", [linear(x, w, b, f"{i}.{name}"), shape])
            split.append(node("Transpose", [rows], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]))
        q, k, v = split
        scores = node("Add", [node("Mul", [node("MatMul", [q, k]), scale]), "mask"])
        attended = node("Transpose", [node("MatMul", [node("Softmax", [scores], axis=-1), v])], perm=[0, 2, 1, 3])
        y = norm(node("Add", [linear(node("Reshape", [attended, joined]), *out, f"{i}.out"), x]), *norm_1, f"{i}.norm_1")
        inner = linear(y, *up, f"{i}.up")
        error = node("Add", [node("Erf", [node("Mul", [inner, root])]), one])
        inner = node("Mul", [node("Mul", [inner, error]), half])
        x = norm(node("Add", [linear(inner, *down, f"{i}.down"), y]), *norm_2, f"{i}.norm_2")
    nodes.append(helper.make_node("Identity", [x], ["rows"]))
    given = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["b", "t"]),
             helper.make_tensor_value_info("numbers", TensorProto.INT64, ["t"]),
             helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["b", 1, 1, "t"])]
    result = [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["b", "t", width])]
    graph = helper.make_graph(nodes, "sentences", given, result, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def run_onnx(session, tokens):
    longest = max(map(len, tokens))
    ids, there = np.zeros((len(tokens), longest), np.int64), np.zeros((len(tokens), longest), np.float32)
    for row, each in enumerate(tokens):
        ids[row, : len(each)], there[row, : len(each)] = each, 1
    mask = ((there - 1) * 1e9)[:, None, None, :]
    (rows,) = session.run(None, {"ids": ids, "numbers": np.arange(longest), "mask": mask})
    return example.normalised((rows * there[:, :, None]).sum(axis=1) / there.sum(axis=1, keepdims=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    folder = options.folder / "model" if (options.folder / "model").is_dir() else options.folder
    network, pieces = example.Network(folder), example.WordPieces(folder / "vocab.txt")
    device, rows = {"device": "cpu", "machine": platform.platform(), "numpy": np.__version__}, []
    with sg.Context("cpu") as context:
        ways = {"streamgemm": lambda tokens: example.run(context, network, tokens)}
        try:
            session = onnx_session(network)
            import onnxruntime

            device["onnxruntime"] = onnxruntime.__version__
            ways["onnxruntime"] = lambda tokens: run_onnx(session, tokens)
        except ImportError as missing:
            print(f"without ONNX Runtime: {missing}")
        for case, lengths in LENGTHS.items():
            batches = [[pieces(text) for text in batch_of(lengths, seed)] for seed in range(options.rounds + 1)]
            samples = {name: [] for name in ways}
            for i, tokens in enumerate(batches):
                found = {}
                for name, run in ways.items():
                    began = time.perf_counter()
                    found[name] = run(tokens)
                    if i > 0:  # the first one loads what loads at the first call
                        samples[name].append(time.perf_counter() - began)
                for name, embeddings in found.items():
                    np.testing.assert_allclose(embeddings, found["streamgemm"], atol=1e-5, err_msg=name)
            for name, seconds in samples.items():
                median = statistics.median(seconds)
                print(f"{case:16} {name:12} {BATCH / median:7.0f} sentences a second", flush=True)
                rows.append({"case": case, "variant": name, "seconds": median, "samples": len(seconds), "all_seconds": seconds,
                             "baseline": "onnxruntime" if name == "streamgemm" and "onnxruntime" in ways else None})
    if options.json:
        record = {"schema": "streamgemm-bench/1", "suite": f"sentences, batches of {BATCH}", "version": sg.__version__,
                  "commit": options.commit, "device": device, "rows": rows,
                  "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
        pathlib.Path(options.json).write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
