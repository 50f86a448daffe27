# SPDX-License-Identifier: Apache-2.0
"""Weights in files of safetensors and GGUF, as views of the mapped file.

Formats: https://github.com/huggingface/safetensors (README, "Format") and https://github.com/ggml-org/ggml (docs/gguf.md).
"""

import ctypes
import json
import mmap
import os
import struct
from collections.abc import Mapping

from ._errors import InvalidArgument
from ._matrix import Matrix

_MOST_HEADER = 100_000_000  # bytes, as safetensors has it

# Types of arrays by name: NumPy's letters, or a type of this library, with its bytes.
_ARRAYS = {
    "F64": ("f8", 8), "F32": ("f4", 4), "F16": ("f2", 2), "C64": ("c8", 8), "I64": ("i8", 8), "I32": ("i4", 4), "I16": ("i2", 2), "I8": ("i1", 1),
    "U64": ("u8", 8), "U32": ("u4", 4), "U16": ("u2", 2), "U8": ("u1", 1), "BOOL": ("?", 1),
}  # fmt: skip
_MATRICES = {"BF16": ("bf16", 2), "F8_E4M3": ("f8_e4m3", 1), "F8_E5M2": ("f8_e5m2", 1)}
_BLOCKS = {"Q4_0": 18, "Q4_1": 20, "Q8_0": 34}  # bytes of 32 values
_GGUF_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K",
    15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16",
    26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip
_GGUF_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def _count(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


class QuantizedTensor:
    """A tensor of blocks of 32 values along its last dimension, each with a scale: Q4_0, Q4_1 or Q8_0 of GGUF."""

    def __init__(self, kind, shape, blocks):
        """A ModelFile makes one. kind: "Q4_0", "Q4_1" or "Q8_0". shape: of the values. blocks: the bytes."""
        self.kind = kind
        self.shape = shape
        self.blocks = blocks
        """The blocks as they are in the file: a view of bytes, with the dimensions of the tensor, the last one in blocks, and a block's bytes."""

    def _nibbles(self):
        bits = self.blocks[..., -16:]
        return bits & 15, bits >> 4  # the first and the second half of a block

    def unpacked(self):
        """The arguments of Context.dequantize: (x, scales, quantization), new arrays. Q4_1 has least values, which it does not take."""
        import numpy

        if self.kind == "Q4_1":
            raise InvalidArgument("a tensor of Q4_1 has a least value in each block, which Context.dequantize does not take: dequantized()")
        scales = numpy.ascontiguousarray(self.blocks[..., :2]).view(numpy.float16)[..., 0]
        rows = self.shape[:-1]
        if self.kind == "Q8_0":
            return numpy.ascontiguousarray(self.blocks[..., 2:]).view(numpy.int8).reshape(self.shape), scales, "i8"
        values = numpy.concatenate(self._nibbles(), axis=-1) ^ 8  # less 8, in four bits
        return (values[..., ::2] | values[..., 1::2] << 4).view(numpy.int8).reshape(*rows, -1), scales, "i4"

    def dequantized(self):
        """The values, a new array of f32."""
        import numpy

        def number(at):
            return numpy.ascontiguousarray(self.blocks[..., at : at + 2]).view(numpy.float16).astype(numpy.float32)

        if self.kind == "Q8_0":
            return (self.blocks[..., 2:].view(numpy.int8) * number(0)).reshape(self.shape)
        values = numpy.concatenate(self._nibbles(), axis=-1).astype(numpy.float32)
        made = values * number(0) + number(2) if self.kind == "Q4_1" else (values - 8) * number(0)
        return made.reshape(self.shape)

    def __repr__(self):
        return f"<streamgemm.QuantizedTensor {self.shape} {self.kind}>"


class ModelFile(Mapping):
    """The tensors of a file by name: read-only views of the mapped file, made when they are asked for.

    A value is a NumPy array; a Matrix where NumPy has no such type (bf16, f8), and without NumPy; or a QuantizedTensor. Pages are
    read when their values are, and the file stays mapped as long as a view lives. It must not become shorter meanwhile.
    """

    def __init__(self, path, read):
        """load_safetensors and load_gguf make one. path: of the file. read: reads its header, and gives the metadata and the tensors."""
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        try:
            self.metadata, self._tensors = read(self, self._map)
        except (struct.error, UnicodeDecodeError, ValueError, OverflowError, KeyError, TypeError, RecursionError) as failure:
            raise self._error(f"its header cannot be read: {failure}") from failure
        self._made = {}

    def _error(self, why):
        return InvalidArgument(f"path is {self.path!r}: {why}")

    def _check(self, name, kind, shape, first, end):
        """Notes a tensor, whose bytes must be in the file and as many as its elements have."""
        size = {**_ARRAYS, **_MATRICES}.get(kind, (None, None))[1]
        if any(not isinstance(extent, int) or extent < 0 for extent in shape):
            raise self._error(f"tensor {name!r} has shape {shape}")
        if kind in _BLOCKS and (not shape or shape[-1] % 32):
            raise self._error(f"tensor {name!r} of {kind} has shape {shape}; its rows must be of blocks of 32")
        bytes_ = _count(shape) // 32 * _BLOCKS[kind] if kind in _BLOCKS else None if size is None else _count(shape) * size
        if end is None:
            end = first + (bytes_ or 0)
        if not 0 <= first <= end <= len(self._map):
            raise self._error(f"tensor {name!r} is at bytes {first} to {end}; the file has {len(self._map)}")
        if bytes_ is not None and end - first != bytes_:
            raise self._error(f"tensor {name!r} of {kind} and shape {shape} has {end - first} bytes, not {bytes_}")
        return kind, tuple(shape), first, end

    def dtype_of(self, name):
        """The type of the tensor `name`, as the file has it: "F32", "BF16", "Q8_0", ..."""
        return self._tensors[name][0]

    def shape_of(self, name):
        """The shape of the tensor `name`."""
        return self._tensors[name][1]

    def __getitem__(self, name):
        if name not in self._made:
            self._made[name] = self._view(name, *self._tensors[name])
        return self._made[name]

    def _view(self, name, kind, shape, first, end):
        try:
            import numpy
        except ImportError:
            numpy = None
        if numpy and kind in _ARRAYS:
            made = numpy.frombuffer(self._map, _ARRAYS[kind][0], _count(shape), first).reshape(shape)
            return made if made.flags.aligned else made.copy()
        if numpy and kind in _BLOCKS:
            bytes_ = numpy.frombuffer(self._map, numpy.uint8, end - first, first)
            return QuantizedTensor(kind, shape, bytes_.reshape(*shape[:-1], shape[-1] // 32, _BLOCKS[kind]))
        own = {"F64": "f64", "F32": "f32", "F16": "f16", "C64": "c64", "I32": "i32", "I8": "i8"}.get(kind)
        own = _MATRICES[kind][0] if kind in _MATRICES else own
        if own is None:
            known = ", ".join(sorted({*_ARRAYS, *_MATRICES, *_BLOCKS}))
            raise self._error(f"tensor {name!r} has elements of {kind}, which are not read; known are {known}")
        view = memoryview(self._map)[first:end]
        size = {**_ARRAYS, **_MATRICES}[kind][1]
        address = _address_of(view) if end > first else 0
        if address % size:
            view = bytearray(view)
            address = _address_of(view)
        return Matrix.at(address, shape, own, readonly=True, owner=view)

    def __iter__(self):
        return iter(self._tensors)

    def __len__(self):
        return len(self._tensors)

    def __repr__(self):
        return f"<streamgemm.ModelFile {self.path!r} with {len(self)} tensors>"


def _address_of(view):
    """The address of a buffer, which may be read-only."""
    held = ctypes.py_object(view)
    buffer = (ctypes.c_ssize_t * 20)()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    if get(held, ctypes.byref(buffer), 0) != 0:
        raise BufferError("its memory has no address")
    address = buffer[0]
    release(ctypes.byref(buffer))
    return address


def _read_safetensors(file, data):
    if len(data) < 8:
        raise file._error("it is no safetensors file: it has less than 8 bytes")
    (length,) = struct.unpack_from("<Q", data)
    if length > min(_MOST_HEADER, len(data) - 8):
        raise file._error(f"its header has {length} bytes, and the file {len(data)}")
    header = json.loads(bytes(data[8 : 8 + length]))
    if not isinstance(header, dict):
        raise file._error("its header is no object of JSON")
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, about in header.items():
        first, end = about["data_offsets"]
        tensors[name] = file._check(name, about["dtype"], about["shape"], 8 + length + first, 8 + length + end)
    return metadata, tensors


class _Reader:
    def __init__(self, data):
        self._data = data
        self.at = 0

    def take(self, code):
        (value,) = struct.unpack_from("<" + code, self._data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def text(self):
        size = self.take("Q")
        if size > len(self._data) - self.at:
            raise ValueError(f"a text of {size} bytes at byte {self.at}")
        self.at += size
        return bytes(self._data[self.at - size : self.at]).decode("utf-8", "replace")

    def value(self, kind, depth=0):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, count = self.take("I"), self.take("Q")
            if count > len(self._data) - self.at or depth > 8:
                raise ValueError(f"an array of {count} values at byte {self.at}")
            if kind in _GGUF_NUMBERS:
                code = f"<{count}{_GGUF_NUMBERS[kind]}"
                values = struct.unpack_from(code, self._data, self.at)
                self.at += struct.calcsize(code)
                return list(values)
            return [self.value(kind, depth + 1) for _ in range(count)]
        if kind not in _GGUF_NUMBERS:
            raise ValueError(f"a value of type {kind} at byte {self.at}")
        return self.take(_GGUF_NUMBERS[kind])


def _read_gguf(file, data):
    if bytes(data[:4]) != b"GGUF":
        raise file._error("it is no GGUF file: it does not begin so")
    reader = _Reader(data)
    reader.take("I")
    version = reader.take("I")
    if version not in (2, 3):
        raise file._error(f"it is GGUF of version {version}; 2 and 3 are read, little-endian")
    tensor_count, value_count = reader.take("Q"), reader.take("Q")
    if tensor_count > len(data) or value_count > len(data):
        raise file._error(f"it has {tensor_count} tensors and {value_count} values in {len(data)} bytes")
    metadata = {}
    for _ in range(value_count):
        name = reader.text()
        metadata[name] = reader.value(reader.take("I"))
    described = []
    for _ in range(tensor_count):
        name = reader.text()
        shape = [reader.take("Q") for _ in range(min(reader.take("I"), 9))][::-1]  # the first is the fastest there
        described.append((name, shape, reader.take("I"), reader.take("Q")))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0:
        raise file._error(f"its alignment is {alignment!r}")
    start = -(-reader.at // alignment) * alignment
    tensors = {}
    for name, shape, number, offset in described:
        tensors[name] = file._check(name, _GGUF_TYPES.get(number, f"type {number}"), shape, start + offset, None)
    return metadata, tensors


def load_safetensors(path):
    """Maps a file of safetensors at `path`: a ModelFile. `metadata` has its texts. Raises InvalidArgument if the file is none."""
    return ModelFile(path, _read_safetensors)


def load_gguf(path):
    """Maps a GGUF file at `path`, of version 2 or 3: a ModelFile. `metadata` has its values. Raises InvalidArgument if the file is none."""
    return ModelFile(path, _read_gguf)
