#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the linker's version script: every public function, by the release in its "Since" note.
symbol_map.py OUTPUT HEADER..."""
import pathlib
import re
import sys

# A function with its comment. Functions of 0.1 are exported by a pattern.
FUNCTION = re.compile(r"/\*\*(?P<comment>(?:(?!\*/).)*)\*/\s*SG_API\b[^;(]*?\b(?P<name>sg_\w+)\s*\(", re.S)
SINCE = re.compile(r"Since\s+(?:\*\s+)?(\d+\.\d+)\.")


def main():
    output, *headers = sys.argv[1:]
    later = {}
    for header in headers:
        for found in FUNCTION.finditer(pathlib.Path(header).read_text()):
            since = SINCE.search(found["comment"])
            if not since:
                sys.exit(f"{header}: {found['name']} has no Since version")
            if since[1] != "0.1":
                later.setdefault(since[1], []).append(found["name"])
    text = "STREAMGEMM_0 {\n  global: sg_*;\n  local: *;\n};\n"
    before = "STREAMGEMM_0"
    for version in sorted(later, key=lambda v: [int(part) for part in v.split(".")]):
        names = "".join(f"    {name};\n" for name in later[version])
        text += f"\nSTREAMGEMM_{version} {{\n  global:\n{names}}} {before};\n"
        before = f"STREAMGEMM_{version}"
    pathlib.Path(output).write_text(text)


if __name__ == "__main__":
    main()
