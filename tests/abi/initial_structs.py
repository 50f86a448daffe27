#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases of struct_init_test.c: STRUCT(name, INIT, sized) for each struct with an initial value, and MEMBER(name, member)
behind it for each of its members. Each struct that begins with its size must have one.
initial_structs.py OUTPUT HEADER..."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings/api"))
import model


def cases(public):
    for struct in public.structs.values():
        macro = struct.name.upper() + "_INIT"
        if macro in public.macros:
            yield f"STRUCT({struct.name}, {macro}, {int(struct.sized)})"
            yield from (f"MEMBER({struct.name}, {field.name})" for field in struct.fields)
        elif struct.sized:
            sys.exit(f"{struct.name} has no {macro}")


def main():
    output, *headers = sys.argv[1:]
    public = model.Model([h for h in headers if pathlib.Path(h).name != "blas.h"])
    pathlib.Path(output).write_text("\n".join(cases(public)) + "\n")


if __name__ == "__main__":
    main()
