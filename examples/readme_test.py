#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C block of the README is the example that the tests compile, character for character.

usage: readme_test.py README.md 01_hello.c
"""
import pathlib
import re
import sys

readme, example = (pathlib.Path(path).read_text() for path in sys.argv[1:])
blocks = re.findall(r"^```c\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
wanted = example.split("\n", 1)[1]  # without the licence line
if blocks != [wanted]:
    sys.exit(f"README.md has {len(blocks)} C block(s); exactly one is wanted, equal to {sys.argv[2]} without its first line")
