#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers and writes what SWIG must know of them before it parses them.

usage: headers.py OUT.i HEADER...

The headers keep a few habits (tests/abi asserts them), and each habit is a rule here, so that a new function, struct,
enum or handle comes to every language by itself:

- `typedef struct sg_x sg_x;` without a body is a handle             SG_HANDLE(sg_x)
- a struct that begins with struct_size has an SG_X_INIT             SG_STRUCT(sg_x, SG_X_INIT, release its strings)
- an array of structs in one is called SOMETHINGs, and its entries
  are counted by SOMETHING_count                                     SG_STRUCT_ARRAY(sg_x, struct, somethings, something)
- a parameter called out_... that points to a number is an output    %apply T *OUTPUT { T *out_... }
- and so is an enum called out_kind or out_class                      %apply int32_t *OUTPUT { T *out_... }
- a function that takes an sg_..._callback is for C alone,
  and so is the former name of a function (@deprecated)              %ignore
- a struct with a member of type sg_..._function is for C alone, and
  so are the functions that take it and the members that point to it  %ignore
- so is a member `char *`, a text to be filled                        %ignore
- an array of addresses in a struct, `void *const *somethings`, is
  read one by one                                                    SG_ADDRESS_ARRAY(sg_x, somethings, something)
- a comment that says "Never blocks." means it                       SG_QUICK(f), else SG_BLOCKS(f)
"""

import pathlib
import re
import sys

NOT_FOR_SWIG = ("streamgemm.h", "backend.h")  # the umbrella; the plugin interface


def code_of(text):
    """The header without its comments."""
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def in_order(texts):
    """Names of the headers, each after those that it includes."""
    done = []

    def visit(name):
        for included in re.findall(r"#include <streamgemm/([\w.]+)>", texts[name]):
            if included in texts and included not in done:
                visit(included)
        if name not in done:
            done.append(name)

    for name in sorted(texts):
        visit(name)
    return done


STRUCTS = r"typedef struct \w+ \{\s*size_t struct_size;(.*?)\} (\w+);"


def for_c_alone(text):
    """Its structs with a function."""
    found = re.findall(STRUCTS, code_of(text), flags=re.S)
    return {name for body, name in found if re.search(r"\bsg_\w+_function\b", body)}


def rules_of(text, for_c):
    code = code_of(text)
    for handle in re.findall(r"typedef struct (\w+) \1;", code):
        yield f"SG_HANDLE({handle})"
    for body, name in re.findall(STRUCTS, code, flags=re.S):
        if name in for_c:
            yield f"%ignore {name};"
            continue
        for struct, member in re.findall(r"\bconst (sg_\w+) \*(\w+);", body):
            if struct in for_c:
                yield f"%ignore {name}::{member};"
        for text_to_fill in re.findall(r"^\s*char \*(\w+);", body, flags=re.M):
            yield f"%ignore {name}::{text_to_fill};"
        for array in re.findall(r"\bvoid \*const \*(\w+s);", body):
            yield f"SG_ADDRESS_ARRAY({name}, {array}, {array.removesuffix('s')})"
        for entry, array in re.findall(r"\b(sg_\w+) (\w+)\[\w+\];", body):
            yield f"SG_STRUCT_ARRAY({name}, {entry}, {array}, {array.removesuffix('s')})"
        strings = re.findall(r"const char \*(\w+);", body)
        yield f"SG_STRUCT({name}, {name.upper()}_INIT, {' '.join(f'free((void *)self->{s});' for s in strings)})"
    for kind, name in sorted(set(re.findall(r"\b((?:u?int\d+_t|double)) \*(out_\w+)", code))):
        yield f"%apply {kind} *OUTPUT {{ {kind} *{name} }};"
    for enum, name in sorted(set(re.findall(r"\b(sg_\w+) \*(out_(?:kind|class))\b", code))):
        yield f"%apply int32_t *OUTPUT {{ {enum} *{name} }};"
    for comment, name, parameters in re.findall(
        r"/\*\*((?:(?!\*/).)*)\*/\s*SG_API [\w ]*?\*?(sg_\w+)\(([^;]*)\);", text, flags=re.S
    ):
        if "_callback" in parameters or "@deprecated" in comment or for_c & set(re.findall(r"\w+", parameters)):
            yield f"%ignore {name};"
        else:
            yield f"SG_QUICK({name})" if "Never blocks." in comment else f"SG_BLOCKS({name})"


def main():
    output, *headers = map(pathlib.Path, sys.argv[1:])
    texts = {h.name: h.read_text() for h in headers if h.name not in NOT_FOR_SWIG}
    order = in_order(texts)
    for_c = set().union(*map(for_c_alone, texts.values()))
    lines = [rule for name in order for rule in rules_of(texts[name], for_c)]
    lines += [f'%include "streamgemm/{name}"' for name in order]
    output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
