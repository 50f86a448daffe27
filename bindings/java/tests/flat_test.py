#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""flat.h and flat_layers.h pass every field of the structs that they stand for. usage: flat_test.py FLAT.h FLAT_LAYERS.h HEADER..."""
import pathlib
import re
import sys

NOT_PASSED = ("struct_size", "reserved")
CORE = {"sg_gemm_desc": "d", "sg_submit": "s(?:ubmit)?"}  # structs of flat.h, and their variables there
LISTED = ("sg_heads", "sg_sequence", "sg_images", "sg_windows")  # of flat_layers.h: initialised by lists


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def body_of(headers, struct):
    return re.search(r"typedef struct " + struct + r" \{(.*?)\} " + struct + ";", headers, flags=re.S)[1]


def fields_of(headers, struct):
    names = [name for name in re.findall(r"(\w+)(?:\[\d+\])?;", body_of(headers, struct)) if name not in NOT_PASSED]
    if len(names) < 2:
        sys.exit(f"{struct} was not understood: {names}")
    return names


def layers_of(text):
    """Each struct that a function of flat_layers.h fills in, and that function with its macros replaced."""
    macros = dict(re.findall(r"#define (SG_FLAT_SET_\w+)\(desc\)((?:.*\\\n)*.*)", text))
    for body in re.findall(r"^static inline sg_status .*?^\}", text, flags=re.M | re.S):
        struct = re.search(r"(sg_\w+_desc) desc = ", body)
        if struct and f"{struct[1].removesuffix('_desc')}_async(" in body:
            yield struct[1], re.sub(r"(SG_FLAT_SET_\w+)\(desc\)", lambda m: macros[m[1]].replace("(desc)", "desc"), body)


def main():
    flat, layers, *headers = (without_comments(pathlib.Path(name).read_text()) for name in sys.argv[1:])
    text = "\n".join(headers)
    missing = [f"{struct}.{name}" for struct, variable in CORE.items() for name in fields_of(text, struct)
               if not re.search(rf"\b{variable}\.{name}\b", flat)]
    found = dict(layers_of(layers))
    missing += [f"{struct}.{name}" for struct, body in found.items() for name in fields_of(text, struct)
                if not re.search(rf"\bdesc\.{name}(?:\.re)? = ", body)]
    missing += [f"sg_flat_{struct.removeprefix('sg_').removesuffix('_desc')}_async"
                for struct in set(re.findall(r"sg_status sg_\w+_async\(sg_context \*context, const (sg_\w+_desc) \*desc", text))
                if struct not in (*found, *CORE)]
    for struct in LISTED:
        passed = re.search(r"#define SG_FLAT_" + struct.removeprefix("sg_").upper() + r"(?:\(x\))?\s((?:.*\\\n)*.*)", layers)[1]
        if passed.count("int64_t") != len(fields_of(text, struct)):
            missing.append(f"a field of {struct}")
    if missing:
        sys.exit(f"the flat functions do not pass {', '.join(missing)}; add it there, and to the calls of each language")


if __name__ == "__main__":
    main()
