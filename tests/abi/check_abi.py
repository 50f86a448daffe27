#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The binary interface that a release's abi.txt records is still there: functions with their prototypes and symbol versions,
structs with the offset, size and type of each member, enumerators, constants, callback types. Structs that say their size may
have grown, behind their former end, and reserved bytes may have become members. With the headers of that very release the record is complete, too.
check_abi.py FROZEN-FOLDER INCLUDE C-COMPILER..."""
import pathlib
import re
import sys

import abi_dump

STRUCT = re.compile(r"struct (\w+) size=(\d+)( grows)?")
FIELD = re.compile(r"  field (\w+) offset=(\d+) size=(\d+): (.*)")


def read(lines):
    """{what: text} of all but structs, {struct: (size, grows, {field: (offset, end, text)})}."""
    plain, structs, fields, within = {}, {}, {}, ""
    for line in lines:
        struct, field = STRUCT.fullmatch(line), FIELD.fullmatch(line)
        if struct:
            fields = {}
            structs[struct[1]] = (int(struct[2]), bool(struct[3]), fields)
        elif field:
            fields[field[1]] = (int(field[2]), int(field[2]) + int(field[3]), f"offset {field[2]}, size {field[3]}: {field[4]}")
        elif line.startswith("  "):
            name, _, value = line.strip().partition(" = ")
            plain[f"{within} {name}"] = value
        else:
            what, _, value = re.sub(r" (size=\d+)$", r" = \1", line).partition(": " if line.startswith("function") else " = ")
            if line.startswith("type "):
                what, value = re.sub(r"^type .*\(\*(\w+)\).*|^type .* (\w+)$", r"type \1\2", line), line
            if line.startswith("function "):
                what, value = " ".join(what.split()[:2]), f"{what.split()[2]}: {value}"
            plain[what] = value
            within = what
    return plain, structs


def problems(before, now):
    """Incompatibilities of `now` for programs that were built with `before`."""
    old, old_structs = read(before)
    new, new_structs = read(now)
    for what, value in old.items():
        if new.get(what) != value:
            yield f"{what}: {value}\n  has become {new.get(what, 'nothing')}"
    for name, (size, grows, fields) in old_structs.items():
        if name not in new_structs:
            yield f"struct {name} is gone"
            continue
        new_size, new_grows, new_fields = new_structs[name]
        if grows != new_grows:
            yield f"struct {name} says its size {'no longer' if grows else 'now'}"
        if new_size < size or (new_size != size and not grows):
            yield f"struct {name}: {size} bytes have become {new_size}"
        for field, (_, _, text) in fields.items():
            if field != "reserved" and (field not in new_fields or new_fields[field][2] != text):
                yield f"struct {name}, {field}: {text}\n  has become {new_fields[field][2] if field in new_fields else 'nothing'}"
        first, last, _ = fields.get("reserved", (size, size, ""))  # those bytes are 0 in older programs
        for field, (offset, end, _) in new_fields.items():
            if (field == "reserved" or field not in fields) and offset < size and not first <= offset < end <= last:
                yield f"struct {name}, {field}: at {offset}, within the {size} bytes that older programs count and do not set"


def main():
    frozen, include, *compiler = sys.argv[1:]
    before = [line for line in (pathlib.Path(frozen) / "abi.txt").read_text().splitlines() if not line.startswith("#")]
    now = abi_dump.dump(include, compiler)
    found = list(problems(before, now))
    if not found and abi_dump.version_of(frozen) == abi_dump.version_of(include):
        found = [f"not in the record of this version: {line}" for line in now if line not in before]
    if found:
        found.append("If this version has not been released: tests/abi/freeze.py writes its record anew (docs/releasing.md).")
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
