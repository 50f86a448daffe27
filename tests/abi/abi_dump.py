#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the binary interface of a set of headers as text: sizes, offsets, values of enumerators and constants as a C compiler
evaluates them; prototypes, each with its symbol version, as the headers declare them. abi_dump.py INCLUDE C-COMPILER...

docs/design/abi.md says why this, and not a dump of debug information."""
import pathlib
import re
import subprocess
import sys
import tempfile

import public_api

# Macros for versions and linkage, and macros that only sources use.
NO_CONSTANT = re.compile(r"SG_(\w*VERSION\w*|API|ENUM_INT|ENUM_CHECK|BEGIN_DECLS|END_DECLS|\w+_INIT)$")
ABI_VERSION = "SG_BACKEND_ABI_VERSION"  # also a constant: plugins are built with it


def version_of(include):
    """(major, minor) of a set of headers."""
    text = (pathlib.Path(include) / "streamgemm/version.h").read_text()
    return tuple(int(re.search(rf"#define SG_VERSION_{part} (\d+)", text)[1]) for part in ("MAJOR", "MINOR"))


def soname_of(include):
    """The number of a set of headers' soname."""
    return re.search(r"#define SG_SOVERSION (\d+)", (pathlib.Path(include) / "streamgemm/version.h").read_text())[1]


def node_of(function, soname):
    """The node of the symbol map with a function: that of its release, or the soname's for the first one."""
    return f"STREAMGEMM_{function.since or soname}"


def name_in(declaration):
    """The member that a field declares."""
    pointer = re.search(r"\(\*(\w+)\)", declaration)
    return pointer[1] if pointer else re.search(r"(\w+)\s*(\[\w+\])?$", declaration)[1]


def program(headers, soname):
    """A C program that prints values that only a compiler can evaluate."""
    lines = ["#include <stddef.h>", "#include <stdio.h>"]
    lines += [f"#include <streamgemm/{path.name}>" for path in headers]
    lines.append("int main(void) {")
    for path in headers:
        members = {}  # of each type
        items = public_api.parse(path.read_text())
        for item in items:
            if item.kind in ("field", "enumerator"):
                owner, _, declaration = item.text.partition(": ")
                members.setdefault(owner, []).append((item.name, declaration))
        for item in items:
            if item.kind == "struct":
                fields = members[item.name]
                # A struct with a size field is read up to that size only; of a completion the size is an argument.
                grows = " grows" if item.name == "sg_completion" or any(name == "struct_size" for name, _ in fields) else ""
                lines.append(
                    f'  printf("struct {item.name} size=%zu{grows}\\n", sizeof({item.name}));'
                )
                for name, declaration in fields:
                    # A declaration of several members gives each the same text.
                    shown = declaration if name_in(declaration) == name else f"{declaration} [{name}]"
                    lines.append(
                        f'  printf("  field {name} offset=%zu size=%zu: {shown}\\n", offsetof({item.name}, {name}),'
                        f" sizeof((({item.name} *)0)->{name}));"
                    )
            if item.kind == "enum":
                lines.append(f'  printf("enum {item.name} size=%zu\\n", sizeof({item.name}));')
                for name, _ in members[item.name]:
                    lines.append(f'  printf("  {name} = %lld\\n", (long long){name});')
            constant = item.kind == "macro" and "(" not in item.text.split('"')[0].replace("INT64_C(", "")
            if constant and (item.name == ABI_VERSION or not NO_CONSTANT.match(item.name)):
                form, cast = ("%s", "") if item.text.startswith('"') else ("%lld", "(long long)")
                lines.append(f'  printf("constant {item.name} = {form}\\n", {cast}{item.name});')
            if item.kind == "type":
                lines.append(f'  puts("type {item.text}");')
            if item.kind == "function":
                lines.append(f'  puts("function {item.name} {node_of(item, soname)}: {item.text}");')
    return "\n".join([*lines, "  return 0;", "}"]) + "\n"


def dump(include, compiler):
    """The lines of the interface."""
    headers = [path for path in public_api.headers(pathlib.Path(include) / "streamgemm") if path.name not in ("streamgemm.h", "backend.h")]
    with tempfile.TemporaryDirectory() as folder:
        source, binary = f"{folder}/dump.c", f"{folder}/dump"
        pathlib.Path(source).write_text(program(headers, soname_of(include)))
        subprocess.run([*compiler, "-std=c99", "-w", "-I", str(include), source, "-o", binary], check=True)
        return subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()


if __name__ == "__main__":
    print("\n".join(dump(sys.argv[1], sys.argv[2:])))
