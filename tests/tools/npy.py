# SPDX-License-Identifier: Apache-2.0
"""Matrices as lists of rows, and .npy files of them, without NumPy: the reference of the program's tests."""
import itertools
import pathlib
import re
import struct

CODES = {"<f8": "d", "<f4": "f", "<f2": "e", "|i1": "b", "<i4": "i", "<c8": "ff", "<c16": "dd"}


def header(descr="<f4", order=False, shape="(2, 2)", version=1, text=None):
    """The bytes before the elements; `text` replaces the dictionary."""
    text = text if text is not None else f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    before = 10 if version == 1 else 12
    text += " " * (63 - (before + len(text)) % 64) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text.encode()


def encode(matrix, descr="<f4", order=False, version=1):
    """The file of a matrix; `order` is NumPy's fortran_order."""
    rows, cols = len(matrix), len(matrix[0]) if matrix else 0
    elements = zip(*matrix) if order else matrix
    code, flat = CODES[descr], itertools.chain.from_iterable(elements)
    if len(code) == 2:
        flat = itertools.chain.from_iterable((x.real, x.imag) for x in map(complex, flat))
    flat = list(flat)
    data = struct.pack(f"<{len(flat)}{code[0]}", *flat)
    return header(descr, order, f"({rows}, {cols})", version) + data


def decode(path):
    """(descr, matrix) of a file that the program wrote."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    assert data[:8] == b"\x93NUMPY\x01\x00" and (10 + length) % 64 == 0, "a version 1.0 header, aligned"
    text = data[10:10 + length].decode()
    descr, order, rows, cols = re.fullmatch(
        r"{'descr': '(.*)', 'fortran_order': (True|False), 'shape': \((\d+), (\d+)\), } *\n", text).groups()
    rows, cols, code = int(rows), int(cols), CODES[descr]
    flat = struct.unpack(f"<{rows * cols * len(code)}{code[0]}", data[10 + length:])
    if len(code) == 2:
        flat = [complex(*pair) for pair in zip(flat[::2], flat[1::2])]
    if order == "True":
        return descr, [list(flat[i::rows]) for i in range(rows)]
    return descr, [list(flat[i * cols:(i + 1) * cols]) for i in range(rows)]


def apply(op, matrix):
    if op == "N":
        return matrix
    return [[complex(x).conjugate() if op == "C" and isinstance(x, complex) else x for x in row] for row in zip(*matrix)]


def matmul(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]
