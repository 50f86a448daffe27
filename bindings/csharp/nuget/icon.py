#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the packages' icon: the tiles of a matrix, lit along their diagonals as a stream of work crosses them. 128 x 128 pixels, as NuGet asks.

usage: icon.py OUT.png
"""
import pathlib
import struct
import sys
import zlib

SIZE, TILES, TILE, GAP, ROUND = 128, 4, 22, 5, 22
MARGIN = (SIZE - TILES * TILE - (TILES - 1) * GAP) // 2
# Nothing, the ground, and one colour for each diagonal: red, green, blue.
PALETTE = [(0, 0, 0), (22, 28, 45), *((34 + 22 * i, 84 + 20 * i, 148 + 15 * i) for i in range(2 * TILES - 1))]


def color(x, y):
    """The index of a pixel's colour."""
    beyond = [max(ROUND - at, at - (SIZE - 1 - ROUND), 0) for at in (x, y)]
    if beyond[0] ** 2 + beyond[1] ** 2 > ROUND**2:
        return 0
    (column, right), (row, down) = (divmod(at - MARGIN, TILE + GAP) for at in (x, y))
    return 2 + row + column if 0 <= column < TILES and 0 <= row < TILES and right < TILE and down < TILE else 1


def png():
    """The icon as a file's bytes."""
    rows = b"".join(b"\0" + bytes(color(x, y) for x in range(SIZE)) for y in range(SIZE))
    colors = b"".join(bytes(each) for each in PALETTE)
    chunks = {b"IHDR": struct.pack(">IIBBBBB", SIZE, SIZE, 8, 3, 0, 0, 0), b"PLTE": colors, b"tRNS": b"\0", b"IDAT": zlib.compress(rows, 9), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks.items())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    pathlib.Path(sys.argv[1]).write_bytes(png())
