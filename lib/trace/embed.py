#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py OUTPUT INPUT: a text file as the initializer of a char array, null-terminated."""
import pathlib
import sys

output, source = sys.argv[1:]
data = pathlib.Path(source).read_bytes() + b"\0"
lines = (", ".join(str(byte) for byte in data[at:at + 24]) for at in range(0, len(data), 24))
pathlib.Path(output).write_text(",\n".join(lines) + "\n")
