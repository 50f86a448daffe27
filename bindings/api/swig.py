#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what SWIG must know of the public headers before it parses them, so that a new function, struct, enum or handle comes
to every language by itself.

usage: swig.py OUT.i HEADER...

- a handle                                                            SG_HANDLE(sg_x)
- a struct with an initial value                                      SG_STRUCT(sg_x, SG_X_INIT, release its strings)
- an array of structs in one is called SOMETHINGs, and its entries
  are counted by SOMETHING_count                                      SG_STRUCT_ARRAY(sg_x, struct, somethings, something)
- an array of addresses in a struct, `void *const *somethings`        SG_ADDRESS_ARRAY(sg_x, somethings, something)
- a parameter called out_... that points to a number, and an enum
  called out_kind or out_class, is an output                          %apply T *OUTPUT { T *out_... }
- for C alone: a function that takes a callback, the former name of
  one (@deprecated), a struct with a function and what takes or has
  it, a text to be filled                                             %ignore
- a descriptor, submit options, what such a struct has, and what
  takes it: the languages lay these out themselves                    %ignore
- a comment that says "Never blocks." means it                        SG_QUICK(f), else SG_BLOCKS(f)
"""
import pathlib
import re
import sys

from model import Model


def rules(model):
    for_c = {s.name for s in model.structs.values() if any(f.type in model.callbacks for f in s.fields)}
    laid_out = [s for s in model.structs.values() if s.name.endswith("_desc") or s.name in ("sg_submit", "sg_completion")]
    for_c |= {s.name for s in laid_out} | {f.type for s in laid_out for f in s.fields if f.type in model.structs and not f.pointer}
    for_c |= {f.type for s in laid_out for f in s.fields if f.pointer and f.type in ("sg_weight", "sg_custom_operand")}
    for name, items in model.items.items():
        for item in items:
            if item.name in model.handles:
                yield f"SG_HANDLE({item.name})"
        for struct in (i for i in items if i.kind == "struct" and (i.sized or i.name in for_c)):
            yield from struct_rules(struct, for_c)
        declared = [f for i in items for f in (i.parameters if i.kind == "function" else [])]
        outputs = sorted({tuple(p.split(" *")) for p in declared if re.fullmatch(r"((u?int\d+_t|double)) \*out_\w+", p)})
        outputs += sorted({tuple(p.split(" *")) for p in declared if re.fullmatch(r"sg_\w+ \*out_(kind|class)", p)})
        for kind, output in outputs:
            plain = "int32_t" if kind.startswith("sg_") else kind
            yield f"%apply {plain} *OUTPUT {{ {kind} *{output} }};"
        for function in (i for i in items if i.kind == "function" and i.exported):
            words = set(re.findall(r"\w+", function.text))
            if any(w.endswith("_callback") for w in words) or "@deprecated" in function.doc or for_c & words:
                yield f"%ignore {function.name};"
            else:
                yield f"SG_{'QUICK' if 'Never blocks.' in function.doc else 'BLOCKS'}({function.name})"


def struct_rules(struct, for_c):
    if struct.name in for_c:
        yield f"%ignore {struct.name};"
        return
    strings = []
    for field in struct.fields:
        one = field.name.removesuffix("s")
        if field.type in for_c or (field.type == "char" and field.pointer and not field.const):
            yield f"%ignore {struct.name}::{field.name};"
        elif field.type == "char" and field.pointer:
            strings.append(f"free((void *)self->{field.name});")
        elif field.pointer == "*const *" and field.type == "void" and field.name.endswith("s"):
            yield f"SG_ADDRESS_ARRAY({struct.name}, {field.name}, {one})"
        elif field.array and field.type.startswith("sg_"):
            yield f"SG_STRUCT_ARRAY({struct.name}, {field.type}, {field.name}, {one})"
    yield f"SG_STRUCT({struct.name}, {struct.name.upper()}_INIT, {' '.join(strings)})"


def main():
    output, *headers = map(pathlib.Path, sys.argv[1:])
    model = Model(headers)
    lines = [*rules(model), *(f'%include "streamgemm/{name}"' for name in model.items)]
    output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
