#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the handwritten digits as C++, for `streamgemm demo`: of each the 64 pixels, then the digit.

usage: digits.py DIGITS.csv OUT.cpp
"""
import pathlib
import sys

rows = [line.split(",") for line in pathlib.Path(sys.argv[1]).read_text().split()]
data = "".join(f'"{"".join(chr(ord("a") + int(float(value))) for value in row)}"\n' for row in rows)
pathlib.Path(sys.argv[2]).write_text(
    f'#include "digits.hpp"\n\nnamespace sg::cli {{\n\nstatic_assert(digits == {len(rows)});\nconst char digit_rows[] =\n{data};\n\n}}  // namespace sg::cli\n')
