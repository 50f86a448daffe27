#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies a source with one line replaced by a wrong one. plant.py SOURCE RESULT RIGHT WRONG"""
import pathlib
import sys


def main():
    source, result, right, wrong = sys.argv[1:]
    text = pathlib.Path(source).read_text()
    if text.count(right) != 1:
        sys.exit(f"{source} has {text.count(right)} times, not once: {right}")
    pathlib.Path(result).write_text(text.replace(right, wrong))


if __name__ == "__main__":
    main()
