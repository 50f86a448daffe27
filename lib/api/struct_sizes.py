#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes struct_sizes.hpp: the sizes that the public structs had in earlier releases, which end where a member with a later "Since"
begins. struct_sizes.py OUTPUT HEADER..."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings/api"))
import model

FRAME = """// Written by lib/api/struct_sizes.py from the public headers.
#pragma once

{includes}#include <array>
#include <cstddef>

namespace sg {{

// The sizes that a struct had in earlier releases.
template <class Struct>
inline constexpr std::array<std::size_t, 0> earlier_sizes{{}};
{sizes}
}}  // namespace sg
"""
SIZES = """template <>
inline constexpr std::array<std::size_t, {count}> earlier_sizes<{struct}>{{{offsets}}};
"""


def ends(struct):
    """The first member of each release but the struct's own."""
    before = [None, *(field.since for field in struct.fields)]
    return [field.name for field, last in zip(struct.fields, before) if field.since != last]


def main():
    output, *headers = sys.argv[1:]
    includes = sizes = ""
    for header, items in model.Model(headers).items.items():
        grown = {item.name: ends(item) for item in items if item.kind == "struct" and ends(item)}
        includes += f"#include <streamgemm/{header}>\n" if grown else ""
        for struct, members in grown.items():
            offsets = ", ".join(f"offsetof({struct}, {member})" for member in members)
            sizes += SIZES.format(count=len(members), struct=struct, offsets=offsets)
    pathlib.Path(output).write_text(FRAME.format(includes=f"{includes}\n" if includes else "", sizes=sizes))


if __name__ == "__main__":
    main()
