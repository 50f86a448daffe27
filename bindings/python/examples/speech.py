# SPDX-License-Identifier: Apache-2.0
"""Finds speech in sound with the network Silero VAD: a Fourier transform as a convolution, four convolutions, an LSTM, one output.
A second network by NumPy in f64 says how far off each probability is.

Windows of all streams pass through the convolutions as one batch of images; the LSTM computes the steps of all streams in one call,
and keeps its states in device memory from block to block. Nothing waits between copies of a block's windows and results.

usage: speech.py FOLDER [DEVICE [FILE]]    FOLDER: the package silero_vad (PyPI silero-vad). FILE: a WAV file of one channel,
16 bits and 16 kHz; without it the program makes three streams of sounds like vowels, with pauses, in noise."""

import pathlib
import sys
import time
import wave

import numpy as np
import streamgemm as sg

RATE, WINDOW, BEFORE, BEHIND = 16000, 512, 64, 64  # samples: of a window, of the one before, and mirrored ones
HOP, FRAMES, BLOCK = 128, 4, 32  # samples between frames of the transform; frames of a window; windows of a block


class Detector:
    """The network for blocks of windows of several streams. Images are NHWC with one row, so that a pixel is a frame."""

    def __init__(self, context, tensors, streams, windows):
        self.context, count = context, streams * windows
        self.weights = {name: self._placed(value) for name, value in filters_of(tensors)}
        self.x = self._new(count, 1, WINDOW + BEFORE + BEHIND, 1)
        self.spectrum, self.normed = (self._new(count, 1, FRAMES, 258) for _ in range(2))
        self.images = [self._new(count, 1, *shape) for shape in ((FRAMES, 128), (2, 64), (1, 64), (1, 128))]
        self.outputs, self.speech = self._new(streams, windows, 128), self._new(streams, windows, 1)
        self.state = [self._placed(np.zeros((streams, 128), np.float32)) for _ in range(2)]

    def _new(self, *shape):
        return self.context.buffer(4 * int(np.prod(shape))).matrix(shape)

    def _placed(self, array):
        return self.context.copy(self._new(*array.shape), np.ascontiguousarray(array))

    def push(self, windows):
        """The Job of the probability of speech in each of (streams, windows) windows, which follow those of the last call."""
        context, of = self.context, self.weights
        context.copy_async(self.x, windows.reshape(self.x.shape))
        layout = {"layout": "nhwc", "filter_layout": "ohwi"}
        context.conv2d_async(self.x, of["stft_conv.weight"], None, self.spectrum, stride=(1, HOP), **layout)
        # A magnitude: x / rms(x) times x, summed over the two parts of a complex value, is sqrt(2) |x|. conv1 sums.
        parts, normed = (each.part((each.shape[0] * FRAMES * 129, 2)) for each in (self.spectrum, self.normed))
        context.rms_norm_async(parts, None, normed, epsilon=1e-30)
        context.elementwise_async("multiply", parts, normed, parts)
        given = self.spectrum
        for i, (image, stride) in enumerate(zip(self.images, (1, 2, 2, 1)), 1):
            weight, bias = (of[f"conv{i}.{kind}"] for kind in ("weight", "bias"))
            context.conv2d_async(given, weight, bias, image, stride=stride, padding=(0, 1), activation="relu", **layout)
            given = image
        gates = (of[f"lstm_cell.{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        h, c = self.state
        context.lstm_async(given.part(self.outputs.shape), *gates, h, c, self.outputs, hn=h, cn=c, batch_first=True)
        context.elementwise_async("relu", self.outputs, None, self.outputs)
        context.linear_async(self.outputs, of["final_conv.weight"], of["final_conv.bias"], self.speech, op_w="T")
        context.elementwise_async("sigmoid", self.speech, None, self.speech)
        return context.copy_async(np.empty(self.speech.shape, np.float32), self.speech)


def filters_of(tensors):
    """The weights as Detector has them: filters OHWI, with the real and the imaginary part of a frequency side by side."""
    for name, value in tensors.items():
        if name == "stft_conv.weight":
            value = value.reshape(2, 129, 256).transpose(1, 0, 2).reshape(258, 1, 256, 1)
        elif name == "conv1.weight":
            value = np.repeat(value, 2, axis=1) / np.sqrt(np.float32(2))
        if name.startswith("conv") and value.ndim == 3:
            value = value.transpose(0, 2, 1)[:, None]
        yield name, value.reshape(1, 128) if name == "final_conv.weight" else value


def detect(context, tensors, windows):
    """The probabilities of (streams, windows), block by block."""
    streams, count = windows.shape[:2]
    padded = np.pad(windows, ((0, 0), (0, -count % BLOCK), (0, 0)))
    detector = Detector(context, tensors, streams, BLOCK)
    jobs = [detector.push(padded[:, first : first + BLOCK]) for first in range(0, count, BLOCK)]
    return np.concatenate([job.result() for job in jobs], axis=1)[:, :count, 0]


def detect_by_numpy(tensors, windows):
    """The same in f64, window by window."""
    of = {name: value.astype(np.float64) for name, value in tensors.items()}

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def conv(x, name, stride, padding):
        x = np.pad(x, ((0, 0), (0, 0), (padding, padding)))
        w = of[name + ".weight"]
        seen = np.lib.stride_tricks.sliding_window_view(x, w.shape[2], axis=2)[:, :, ::stride]
        return np.einsum("bcpk,ock->bop", seen, w) + of.get(name + ".bias", np.zeros(len(w)))[:, None]

    h = c = np.zeros((len(windows), 128))
    speech = np.empty(windows.shape[:2])
    for step in range(windows.shape[1]):
        spectrum = conv(windows[:, step, None].astype(np.float64), "stft_conv", HOP, 0)
        x = np.hypot(spectrum[:, :129], spectrum[:, 129:])
        for i, stride in enumerate((1, 2, 2, 1), 1):
            x = np.maximum(conv(x, f"conv{i}", stride, 1), 0)
        gates = x[:, :, 0] @ of["lstm_cell.weight_ih"].T + of["lstm_cell.bias_ih"]
        i, f, g, o = np.split(gates + h @ of["lstm_cell.weight_hh"].T + of["lstm_cell.bias_hh"], 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        speech[:, step] = sigmoid(np.maximum(h, 0) @ of["final_conv.weight"].reshape(128) + of["final_conv.bias"])
    return speech


def windows_of(signals):
    """The windows of each row of samples. Before a window are the last samples of the one before, behind it its own last ones, mirrored."""
    given = np.pad(signals, ((0, 0), (BEFORE, -signals.shape[1] % WINDOW)))
    seen = np.lib.stride_tricks.sliding_window_view(given, WINDOW + BEFORE, axis=1)[:, ::WINDOW]
    return np.pad(seen, ((0, 0), (0, 0), (0, BEHIND)), mode="reflect")


def synthesised(seconds=6):
    """Three streams, and whether each window is of a word: syllables of harmonics, whose pitch falls, with the formants of vowels;
    pauses between words, and noise."""
    draw = np.random.default_rng(3)
    formants = ((730, 1090, 2440), (270, 2290, 3010), (570, 840, 2410), (530, 1840, 2480))  # of a, i, o, e
    samples = seconds * RATE // WINDOW * WINDOW
    signals, spoken = 0.002 * draw.standard_normal((3, samples)), np.zeros((3, samples), bool)
    for stream, base in enumerate((110, 150, 210)):
        at = RATE // 2 * (stream + 1)
        while at + RATE < samples:
            start = at
            for _ in range(draw.integers(3, 6)):
                length = int(RATE * draw.uniform(0.12, 0.22))
                t = np.arange(length) / RATE
                phase = 2 * np.pi * np.cumsum(base * (1.1 - 0.5 * t + 0.02 * np.sin(2 * np.pi * 5 * t))) / RATE
                n = np.arange(1, 4000 // base)
                f = n * base
                gain = sum(1 / (1 + ((f - each) / 90) ** 2) / 2**i for i, each in enumerate(formants[draw.integers(4)]))
                voice = (gain / n**0.3) @ np.sin(n[:, None] * phase) * np.sin(np.pi * t * RATE / length) ** 0.5
                signals[stream, at : at + length] += 0.15 * voice[: samples - at]
                at += length + int(RATE * 0.03)
            spoken[stream, start:at] = True
            at += int(RATE * draw.uniform(0.6, 1.1))
    return signals.astype(np.float32), spoken.reshape(3, -1, WINDOW).mean(axis=2) > 0.5


def read_wave(path):
    with wave.open(path) as file:
        form = file.getnchannels(), 8 * file.getsampwidth(), file.getframerate()
        if form != (1, 16, RATE):
            raise ValueError(f"{path} has {form[0]} channels, {form[1]} bits and {form[2]} Hz; it must have 1, 16 and {RATE}")
        if file.getnframes() == 0:
            raise ValueError(f"{path} has no samples")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")[None] / np.float32(1 << 15)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, device = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "auto"
    tensors = sg.load_safetensors(folder / "data" / "silero_vad_16k.safetensors")
    signals, spoken = (read_wave(sys.argv[3]), None) if len(sys.argv) > 3 else synthesised()
    windows = windows_of(signals)
    with sg.Context(device) as context:
        detect(context, tensors, windows[:, :BLOCK])  # loads what loads at the first call
        began = time.perf_counter()
        found = detect(context, tensors, windows)
        seconds = time.perf_counter() - began
    known = detect_by_numpy(tensors, windows)
    for stream, speech in enumerate(found):
        print(f"stream {stream}  {''.join(' .:#'[min(int(4 * p), 3)] for p in speech[::2])}")
        if spoken is not None:
            print(f"   words  {''.join('-' if each else ' ' for each in spoken[stream, ::2])}")
    off, length = np.abs(found - known).max(), signals.size / RATE
    print(f"{length:.0f} s of sound in {seconds:.3f} s; probabilities at most {off:.1e} off those by NumPy in f64")
    assert off < 1e-4
    if spoken is not None:
        agree = ((found > 0.5) == spoken).mean()
        print(f"{agree:.3f} of the windows are found to be what they were made as, speech or not")
        assert agree > 0.85


if __name__ == "__main__":
    main()
