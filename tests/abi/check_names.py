#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public function is in the table of verbs, once; deprecated functions are listed below it instead. The functions of an operation,
sg_NAME_async and sg_NAME with an sg_NAME_desc, are in it by rule.
check_names.py NAMES.md INCLUDE"""
import collections
import pathlib
import re
import sys

import public_api


def problems(page, items):
    """`page`: the record of the names; `items`: what the headers declare."""
    rows = re.findall(r"^\|[^|]*\|[^|]*\|([^|]*)\|$", page, re.M)
    listed = collections.Counter(name for row in rows for name in re.findall(r"`(sg_\w+)`", row))
    outside = set(re.findall(r"`(sg_\w+)`", re.sub(r"^\|.*$", "", page, flags=re.M)))
    exported = {item.name: item for item in items if item.kind == "function" and item.exported}
    deprecated = {name for name, item in exported.items() if "@deprecated" in item.doc}
    descriptors = {item.name.removesuffix("_desc") for item in items if item.kind == "struct" and item.name.endswith("_desc")}
    operations = {name for each in descriptors if f"{each}_async" in exported for name in (each, f"{each}_async")} - listed.keys()
    for name in sorted(exported.keys() - deprecated - operations):
        if listed[name] != 1:
            yield f"{name} is in the table {listed[name]} times"
    for name in sorted(deprecated & listed.keys()):
        yield f"{name} is deprecated, and in the table"
    for name in sorted(deprecated - outside):
        yield f"{name} is deprecated, which the page does not say"
    for name in sorted(listed.keys() - exported.keys()):
        yield f"{name} is in the table, and no public function"


def main():
    page, include = sys.argv[1:]
    found = list(problems(pathlib.Path(page).read_text(), public_api.parse_folder(include)))
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
