#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each public header compiles alone, without a warning, as C99 and as C++17; so does each INIT macro in it. Targets of 32 bits,
big-endian ones, enums of another width, and backend.h without SG_BACKEND_UNSTABLE_API are refused.
check_headers.py INCLUDE C-COMPILER... -- C++-COMPILER..."""
import subprocess
import sys
import tempfile

import public_api

WARNINGS = ["-pedantic", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-Wundef", "-fsyntax-only"]
LANGUAGES = {"c": "-std=c99", "c++": "-std=c++17"}


def program(header, items):
    """Includes one header, twice, and makes a variable by each of its INIT macros."""
    lines = ["#define SG_BACKEND_UNSTABLE_API"] * (header == "backend.h") + [f"#include <streamgemm/{header}>"] * 2
    types = {item.name for item in items if item.kind == "struct"}
    for item in items:
        type_name = item.name.removesuffix("_INIT").lower()
        if item.kind == "macro" and item.name.endswith("_INIT"):
            if type_name not in types:
                lines.append(f"#error {item.name} belongs to no struct")
            lines.append(f"extern {type_name} sg_check_{type_name};\n{type_name} sg_check_{type_name} = {item.name};")
    lines.append("extern int sg_check;\nint sg_check;")
    return "\n".join(lines) + "\n"


def compile_alone(compiler, language, include, text):
    """"" or the compiler's message."""
    with tempfile.NamedTemporaryFile("w", suffix=".c" if language == "c" else ".cpp") as file:
        file.write(text)
        file.flush()
        command = [*compiler, "-x", language, LANGUAGES[language], *WARNINGS, "-I", include, file.name]
        result = subprocess.run(command, capture_output=True, text=True)
        return "" if result.returncode == 0 else result.stderr or "failed without a word"


def refusals(compiler, include):
    """Problems of how other targets are refused."""
    target, enums = "StreamGEMM needs a 64-bit little-endian target", "sg_enums_have_32_bits"
    targets = {
        "a big-endian target": (["-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__"], target),
        "an enum of 8 bits": (["-fshort-enums"], enums),
    }
    machine = subprocess.run([*compiler, "-dumpmachine"], capture_output=True, text=True, check=True).stdout
    if machine.startswith("x86_64"):
        targets["a 32-bit target"] = (["-m32", "-ffreestanding"], target)  # without the C library's headers for it
    targets["a program of a backend that does not say that it follows"] = ([], "defines SG_BACKEND_UNSTABLE_API")
    for name, (arguments, message) in targets.items():
        command = [*compiler, "-x", "c", "-fsyntax-only", "-I", include, *arguments, "-"]
        header = "streamgemm.h" if arguments else "backend.h"
        done = subprocess.run(command, input=f"#include <streamgemm/{header}>\n", capture_output=True, text=True, check=False)
        if done.returncode == 0 or message not in done.stderr:
            yield f"{name} is not refused: {done.stderr}"


def main():
    include, *compilers = sys.argv[1:]
    divide = compilers.index("--")
    found = list(refusals(compilers[:divide], include))
    for path in public_api.headers(include + "/streamgemm"):
        text = program(path.name, public_api.parse(path.read_text()))
        for language, compiler in (("c", compilers[:divide]), ("c++", compilers[divide + 1 :])):
            complaint = compile_alone(compiler, language, include, text)
            if complaint:
                found.append(f"{path.name} alone in {LANGUAGES[language]}:\n{complaint}")
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
