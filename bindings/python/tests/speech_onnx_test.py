# SPDX-License-Identifier: Apache-2.0
"""The network of the example speech.py beside ONNX Runtime, on the weights of an ONNX file of the package, which are other ones.
Skipped without ONNX Runtime, or without Python's classes of ONNX.

usage: speech_onnx_test.py FOLDER    FOLDER: the package silero_vad"""

import os
import pathlib
import sys

import numpy as np
import streamgemm as sg

sys.path += [str(pathlib.Path(__file__).parents[1] / "examples"), *filter(None, [os.environ.get("SG_TEST_PACKAGES")])]
import speech  # noqa: E402

try:
    import onnx.numpy_helper
    import onnxruntime
except ImportError as missing:
    print(missing)
    sys.exit(77)


def tensors_of(path):
    """The weights with the names that the example knows."""
    stored = {each.name: onnx.numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer}
    names = {"stft_conv.weight": "stft.forward_basis_buffer"}
    for kind in ("weight", "bias"):
        names |= {f"conv{i + 1}.{kind}": f"encoder.{i}.reparam_conv.{kind}" for i in range(4)}
        names |= {f"lstm_cell.{kind}_{of}": f"decoder.rnn.{kind}_{of}" for of in ("ih", "hh")}
        names[f"final_conv.{kind}"] = f"decoder.decoder.2.{kind}"
    return {name: stored["model." + other] for name, other in names.items()}


def detect_by_onnx(path, windows):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    state, speech_of = np.zeros((2, len(windows), 128), np.float32), []
    for step in range(windows.shape[1]):
        x = np.ascontiguousarray(windows[:, step, : speech.BEFORE + speech.WINDOW])  # it mirrors the end itself
        found, state = session.run(None, {"input": x, "state": state, "sr": np.array(speech.RATE)})
        speech_of.append(found[:, 0])
    return np.stack(speech_of, axis=1)


def main():
    path = str(pathlib.Path(sys.argv[1]) / "data" / "silero_vad_16k_op15.onnx")
    windows = speech.windows_of(speech.synthesised()[0])
    known = detect_by_onnx(path, windows)
    for device in ("cpu", "sim:h200"):
        with sg.Context(device) as context:
            off = np.abs(speech.detect(context, tensors_of(path), windows) - known).max()
        print(f"{device}: at most {off:.1e} off ONNX Runtime {onnxruntime.__version__}")
        assert off < 1e-4
    assert known.max() > 0.9 and known.min() < 0.1


if __name__ == "__main__":
    main()
