#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the linker's version script: every public function, by the release in its "Since" note.
symbol_map.py OUTPUT HEADER..."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings/api"))
import model


def main():
    output, *headers = sys.argv[1:]
    later = {}
    for header in headers:
        for item in model.parse(pathlib.Path(header).read_text()):
            if item.kind != "function" or not item.exported:
                continue
            if not item.since:
                sys.exit(f"{header}: {item.name} has no Since version")
            if item.since != "0.1":  # those are exported by a pattern
                later.setdefault(item.since, []).append(item.name)
    text = "STREAMGEMM_0 {\n  global: sg_*;\n  local: *;\n};\n"
    before = "STREAMGEMM_0"
    for version in sorted(later, key=lambda v: [int(part) for part in v.split(".")]):
        names = "".join(f"    {name};\n" for name in later[version])
        text += f"\nSTREAMGEMM_{version} {{\n  global:\n{names}}} {before};\n"
        before = f"STREAMGEMM_{version}"
    pathlib.Path(output).write_text(text)


if __name__ == "__main__":
    main()
