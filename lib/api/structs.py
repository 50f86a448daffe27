#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the library knows of the structs of the public headers: initial values, where members begin, reserved fields.
structs.py OUTPUT HEADER..."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings/api"))
import model

HEAD = """// SPDX-License-Identifier: Apache-2.0
// Made by structs.py from the public headers.
#include <streamgemm/streamgemm.h>

namespace sg {

"""


def reserved(public, struct, before=""):
    """The reserved fields of a struct and of the structs in it, by path; of an array each element."""
    for field in struct.fields:
        paths = [f"{before}{field.name}[{i}]" for i in range(public.constant(field.array))] if field.array else [before + field.name]
        if field.name == "reserved":
            yield from paths
        elif field.type in public.structs and not field.pointer:
            for path in paths:
                yield from reserved(public, public.structs[field.type], path + ".")


def described(public, struct):
    name, macro = struct.name, struct.name.upper() + "_INIT"
    fields = [f'{{offsetof({name}, {path}), sizeof({name}{{}}.{path}), "{path}"}}' for path in reserved(public, struct)]
    starts = [f"offsetof({name}, {f.name})" for f in struct.fields]
    yield f"template <>\nstruct public_struct<{name}> {{"
    if macro in public.macros:
        yield f"  static constexpr {name} initial = {macro};"
    yield f"  static constexpr std::array<reserved_field, {len(fields)}> reserved{{{{{', '.join(fields)}}}}};"
    yield f"  static constexpr std::size_t starts[] = {{{', '.join(starts)}}};"
    yield f"  static constexpr bool is_sized = {str(struct.sized).lower()};\n}};"


def main():
    output, *headers = sys.argv[1:]
    public = model.Model([h for h in headers if pathlib.Path(h).name != "blas.h"])
    lines = [line for struct in public.structs.values() for line in described(public, struct)]
    initial = [s.name for s in public.structs.values() if s.name.upper() + "_INIT" in public.macros]
    lines.append("#define SG_EACH_INITIAL_STRUCT(X) " + " ".join(f"X({name})" for name in sorted(initial)))
    pathlib.Path(output).write_text(HEAD + "\n".join(lines) + "\n\n}  // namespace sg\n")


if __name__ == "__main__":
    main()
