#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies a source with an expression that is a wrong one if SG_PLANTED has the defect's name.
plant.py DEFECT SOURCE RESULT RIGHT WRONG"""
import pathlib
import sys


def main():
    defect, source, result, right, wrong = sys.argv[1:]
    text = pathlib.Path(source).read_text()
    if text.count(right) != 1:
        sys.exit(f"{source} has {text.count(right)} times, not once: {right}")
    is_c = source.endswith(".c")
    text = text.replace(right, f'({"" if is_c else "sg::"}is_planted("{defect}") ? ({wrong}) : ({right}))')
    pathlib.Path(result).write_text(f'#include "planted.{"h" if is_c else "hpp"}"\n' + text)


if __name__ == "__main__":
    main()
