#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the public headers of a later release: each struct that may grow has one more member, and SG_GROWN is defined.
grow.py FOLDER HEADER..."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bindings/api"))
import model


def grown(text):
    for item in model.parse(text):
        if item.kind == "struct" and (item.sized or item.name == "sg_completion"):
            text, count = re.subn(rf"\n}} {item.name};", f"\n  uint64_t grown; /**< A new member. Since 99.0. */\n}} {item.name};", text)
            assert count == 1, item.name
    return text


def main():
    folder, *headers = map(pathlib.Path, sys.argv[1:])
    for header in headers:
        text = header.read_text()
        if header.name == "export.h":
            text = "#define SG_GROWN\n" + text
        elif header.name != "backend.h":  # of plugins
            text = grown(text)
        (folder / header.name).write_text(text)


if __name__ == "__main__":
    main()
