#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""flat.h passes every field of the descriptors that it stands for. usage: flat_test.py FLAT.h HEADER..."""
import pathlib
import re
import sys

NOT_PASSED = ("struct_size", "reserved")
STRUCTS = {"sg_gemm_desc": "d", "sg_submit": "s(?:ubmit)?"}  # and their variables in flat.h


def main():
    flat, *headers = (pathlib.Path(name).read_text() for name in sys.argv[1:])
    text = re.sub(r"/\*.*?\*/", "", "\n".join(headers), flags=re.S)
    missing = []
    for struct, variable in STRUCTS.items():
        body = re.search(r"typedef struct " + struct + r" \{(.*?)\} " + struct + ";", text, flags=re.S)[1]
        names = re.findall(r"(\w+)(?:\[\d+\])?;", body)
        if len(names) < 5:
            sys.exit(f"{struct} was not understood: {names}")
        missing += [f"{struct}.{name}" for name in names
                    if name not in NOT_PASSED and not re.search(rf"\b{variable}\.{name}\b", flat)]
    if missing:
        sys.exit(f"bindings/flat.h does not pass {', '.join(missing)}; add it to SG_FLAT_GEMM or SG_FLAT_SUBMIT, and to the"
                 " calls of each language")


if __name__ == "__main__":
    main()
