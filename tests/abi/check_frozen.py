#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Declarations of a frozen release are unchanged: functions, values of enumerators, and the fields of
structs in their order, as a prefix of today's. check_frozen.py FROZEN TODAY"""
import sys

import public_api


def fields(items):
    table = {}
    for item in items:
        if item.kind == "field":
            struct, _, declaration = item.text.partition(": ")
            if declaration not in table.setdefault(struct, []):
                table[struct].append(declaration)
    return table


def problems(frozen, today):
    functions = {item.name: item.text for item in today if item.kind == "function"}
    values = {item.name: item.value for item in today if item.kind == "enumerator"}
    for item in frozen:
        if item.kind == "function" and functions.get(item.name) != item.text:
            yield f"{item.text}\n  has become {functions.get(item.name, 'nothing')}"
        if item.kind == "enumerator" and values.get(item.name) != item.value:
            yield f"{item.name} = {item.value} has become {values.get(item.name, 'nothing')}"
    now = fields(today)
    for struct, before in fields(frozen).items():
        if now.get(struct, [])[: len(before)] != before:
            yield f"{struct} no longer begins with the fields it had"


def main():
    found = list(problems(*(public_api.parse_folder(folder) for folder in sys.argv[1:3])))
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
