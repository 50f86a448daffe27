#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the linker's version script: the name of every public function, in the node of the release that it came with. Those of the
first release are in the soname's node; "Since 0.10." in the comment of a later one names the node STREAMGEMM_0.10.
symbol_map.py OUTPUT SOVERSION HEADER..."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings/api"))
import model


def text_of(nodes, soversion):
    """The script of {release, or "" for the first one: names}."""
    script, before = "", ""
    for release in sorted(nodes, key=lambda r: [int(part) for part in r.split(".") if part]):
        node = f"STREAMGEMM_{release or soversion}"
        names = "".join(f"    {name};\n" for name in sorted(nodes[release]))
        rest = "" if before else "  local: *;\n"
        script += f"{node} {{\n  global:\n{names}{rest}}}{before};\n"
        before = f" {node}"
    return script


def nodes_of(headers):
    """{release, or "" for the first one: names} of the headers' functions."""
    nodes = {"": []}
    for header in headers:
        for item in model.parse(pathlib.Path(header).read_text()):
            if item.kind == "function" and item.exported:
                nodes.setdefault(item.since or "", []).append(item.name)
    return nodes


def main():
    output, soversion, *headers = sys.argv[1:]
    pathlib.Path(output).write_text(text_of(nodes_of(headers), soversion))


if __name__ == "__main__":
    main()
