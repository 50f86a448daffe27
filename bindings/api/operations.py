#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes operations.h: the list of operations for calls.h, and checks that the C compiler lays the descriptors out as the model
does, after which Java and C# fill them in.

usage: operations.py OUT.h HEADER...
"""
import pathlib
import sys

from model import Model


def lines(model):
    yield "/* Written from the public headers by bindings/api/operations.py. */"
    yield "#define SG_OPERATIONS(X) " + " ".join(f"X({o.name})" for o in model.operations)
    for name in (o.name for o in model.operations):  # a linear layer is a GEMM (calls.h)
        yield f"#define SG_OPERATION_OF_{name} {'SG_OPERATION_GEMM' if name == 'linear' else f'SG_OPERATION_{name.upper()}'}"
    for struct in model.structs.values():
        offsets = [f"offsetof({struct.name}, {f.name}) == {f.offset}" for f in struct.fields]
        yield f"_Static_assert(sizeof({struct.name}) == {struct.size} && " + " && ".join(offsets) + f', "{struct.name}");'


def main():
    output, *headers = map(pathlib.Path, sys.argv[1:])
    output.write_text("\n".join(lines(Model(headers))) + "\n")


if __name__ == "__main__":
    main()
