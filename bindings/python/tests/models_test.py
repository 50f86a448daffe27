# SPDX-License-Identifier: Apache-2.0
"""Files of weights, as other libraries write them."""

import importlib
import os
import pathlib
import struct
import sys
import tempfile
import unittest

import numpy as np
import streamgemm as sg

DEVICE = os.environ.get("SG_TEST_DEVICE", "cpu")
PACKAGES = os.environ.get("SG_TEST_PACKAGES", "")


def package(name, module):
    """A module of PyPI that the tests have in a folder of their own; the test is skipped without."""
    if PACKAGES and PACKAGES not in sys.path:
        sys.path.append(PACKAGES)
    try:
        return importlib.import_module(module)
    except ImportError:
        raise unittest.SkipTest(f"{name} is not installed") from None


def resident_bytes():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


class Models(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "model"
        self.random = np.random.default_rng(7)

    def test_safetensors(self):
        writer = package("safetensors", "safetensors.numpy")
        wanted = {
            np.dtype(dtype).name: (self.random.standard_normal((3, 5)) * 50).astype(dtype)
            for dtype in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8")
        }
        wanted |= {"empty": np.zeros((0, 4), np.float32), "scalar": np.array(3.0, np.float32)}
        writer.save_file(wanted, self.path, metadata={"made": "by a test"})
        file = sg.load_safetensors(self.path)
        self.assertEqual((set(wanted), "by a test", len(wanted)), (set(file), file.metadata["made"], len(file)))
        for name, array in wanted.items():
            found = file[name]
            self.assertEqual((array.dtype, array.shape, array.shape), (found.dtype, found.shape, file.shape_of(name)))
            np.testing.assert_array_equal(array, found)
            self.assertFalse(found.flags.writeable)
        self.assertIs(file["float32"], file["float32"])
        with sg.Context(DEVICE) as context:
            np.testing.assert_allclose(context.gemm(file["float32"], wanted["float32"].T), wanted["float32"] @ wanted["float32"].T, rtol=1e-5)

    def test_types_without_an_array(self):
        safetensors = package("safetensors", "safetensors")
        values = np.array([1.0, -2.5, 0.15625, 3.0], np.float32)
        bf16 = (values.view(np.uint32) >> 16).astype(np.uint16)
        f8 = np.array([0x38, 0xB8, 0x40, 0x00], np.uint8)
        safetensors.serialize_file({
            name: safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=data.ctypes.data, data_len=data.nbytes)
            for name, dtype, shape, data in (("w", "bfloat16", [2, 2], bf16), ("f8", "float8_e4m3fn", [4], f8))
        }, str(self.path))  # fmt: skip
        file = sg.load_safetensors(self.path)
        self.assertEqual(("BF16", "bf16", (2, 2)), (file.dtype_of("w"), file["w"].dtype, file["w"].shape))
        self.assertEqual("f8_e4m3", file["f8"].dtype)
        with sg.Context(DEVICE) as context:
            np.testing.assert_array_equal(context.convert(context.array(file["w"]), dtype="f32").asnumpy(), values.reshape(2, 2))

    def test_a_large_file_is_not_read(self):
        rows, cols = 1024, 16384
        header = f'{{"w":{{"dtype":"F32","shape":[{rows},{cols}],"data_offsets":[0,{4 * rows * cols}]}}}}'.encode()
        header += b" " * (-len(header) % 8)
        with open(self.path, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + 4 * rows * cols)
        before = resident_bytes()
        w = sg.load_safetensors(self.path)["w"]
        self.assertEqual((rows, cols), w.shape)
        self.assertLess(resident_bytes() - before, 0.05 * 4 * rows * cols)

    def test_weights_of_a_pipeline(self):
        writer = package("safetensors", "safetensors.numpy")
        w = [self.random.standard_normal((16, 16)).astype(np.float32) / 4 for _ in range(3)]
        writer.save_file({f"layer.{i}": each for i, each in enumerate(w)}, self.path)
        file, x = sg.load_safetensors(self.path), self.random.standard_normal((4, 16)).astype(np.float32)
        with sg.Context(DEVICE) as context, context.pipeline((4, 16)) as pipeline:
            for name in sorted(file):
                stage = pipeline.stage((4, 16), weights=[file[name]])
                stage.gemm(stage.input, stage.weights[0], stage.output)
            np.testing.assert_allclose(pipeline.push(x), x @ w[0] @ w[1] @ w[2], rtol=1e-4, atol=1e-5)

    def test_gguf(self):
        gguf = package("gguf", "gguf")
        writer = gguf.GGUFWriter(self.path, "test")
        writer.add_uint32("test.layers", 3)
        writer.add_array("test.words", ["a", "bc"])
        writer.add_array("test.numbers", [1, 2, 3])
        values = (self.random.standard_normal((6, 96)) * 3).astype(np.float32)
        wanted = {"f32": values, "f16": values.astype(np.float16), "i8": values.astype(np.int8)}
        for name, array in wanted.items():
            writer.add_tensor(name, array)
        kinds = gguf.GGMLQuantizationType
        for kind in (kinds.Q8_0, kinds.Q4_0, kinds.Q4_1, kinds.BF16, kinds.Q5_0):
            writer.add_tensor(kind.name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        file = sg.load_gguf(self.path)
        self.assertEqual((3, ["a", "bc"], [1, 2, 3]), tuple(file.metadata[f"test.{x}"] for x in ("layers", "words", "numbers")))
        for name, array in wanted.items():
            np.testing.assert_array_equal(array, file[name])
        for kind in (kinds.Q8_0, kinds.Q4_0, kinds.Q4_1):
            tensor = file[kind.name]
            known = gguf.quants.dequantize(gguf.quants.quantize(values, kind), kind)
            self.assertEqual((values.shape, kind.name), (tensor.shape, file.dtype_of(kind.name)))
            np.testing.assert_allclose(tensor.dequantized(), known, rtol=1e-6, atol=1e-6)
            if kind == kinds.Q4_1:
                with self.assertRaisesRegex(sg.InvalidArgument, "Q4_1 has a least value"):
                    tensor.unpacked()
                continue
            x, scales, quantization = tensor.unpacked()
            with sg.Context(DEVICE) as context:
                found = context.dequantize(x, scales, quantization=quantization, dtype="f32")
            np.testing.assert_allclose(found, known, rtol=1e-6, atol=1e-6)
        self.assertEqual("bf16", file["BF16"].dtype)
        with self.assertRaisesRegex(sg.InvalidArgument, "tensor 'Q5_0' has elements of Q5_0, which are not read; known are BF16"):
            file["Q5_0"]

    def test_broken_files(self):
        header = b'{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}'
        good = struct.pack("<Q", len(header)) + header + bytes(16)
        for content, text in [
            (b"", "less than 8 bytes"),
            (b"\xff" * 20, "its header has"),
            (good[:-1], "tensor 'w' is at bytes"),
            (good.replace(b"[2,2]", b"[2,3]"), r"tensor 'w' of F32 and shape \(2, 3\) has 16 bytes, not 24|shape"),
            (good.replace(b"[0,16]", b"[-4,6]"), "tensor 'w' is at bytes|has"),
            (good.replace(b'"w":{', b'"w":['), "its header cannot be read"),
            (good.replace(b"[2,2]", b"[2,x]"), "its header cannot be read"),
        ]:
            self.path.write_bytes(content)
            with self.subTest(text=text), self.assertRaisesRegex(sg.InvalidArgument, text) as caught:
                sg.load_safetensors(self.path)
            self.assertIn(str(self.path), str(caught.exception))
        for content, text in [
            (b"GGML" + bytes(60), "is no GGUF file"),
            (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
            (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "tensors"),
            (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62), "its header cannot be read: a text of"),
            (b"GGUF" + struct.pack("<IQQ", 3, 0, 1), "its header cannot be read"),
        ]:
            self.path.write_bytes(content)
            with self.subTest(text=text), self.assertRaisesRegex(sg.InvalidArgument, text):
                sg.load_gguf(self.path)
        with self.assertRaises(FileNotFoundError):
            sg.load_gguf(self.path.with_suffix(".absent"))

    def test_any_damage_is_an_error_of_python(self):
        header = b'{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}'
        good = {sg.load_safetensors: struct.pack("<Q", len(header)) + header + bytes(16),
                sg.load_gguf: b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<II", 4, 7)
                + struct.pack("<Q", 1) + b"w" + struct.pack("<IQQIQ", 2, 2, 2, 0, 0) + bytes(64)}  # fmt: skip
        for load, content in good.items():
            for _ in range(400):
                damaged = bytearray(content[: self.random.integers(len(content)) + 1] if self.random.integers(4) == 0 else content)
                for _ in range(self.random.integers(1, 4)):
                    damaged[self.random.integers(len(damaged))] = self.random.integers(256)
                self.path.write_bytes(damaged)
                try:
                    for _, value in load(self.path).items():
                        np.array(value)
                except sg.InvalidArgument:
                    pass


if __name__ == "__main__":
    unittest.main()
