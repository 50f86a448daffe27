#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One plugin for two majors of cuBLAS: the types of the functions that it calls and the values of the enumerators that it passes, as the
headers at hand have them, are those of cublas_interface.txt. Its lines were written with the headers of cuBLAS 12.9 and are those of 13.0, too.

usage: cublas_interface_test.py FOLDER-OF-THE-PLUGIN INTERFACE.TXT COMPILER... [-isystem FOLDER]...     with --print it prints them
"""
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = """
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cstddef>
#include <cstdio>
#include <typeinfo>
int main() {
%s
}
"""


def names(folder):
    """Of the functions and of the enumerators."""
    header = (folder / "libraries/blas.hpp").read_text()
    functions = re.findall(r"decltype\(&(cublas\w+)\) \w+;", header) + [f"cublas{name}_v2_64" for name in re.findall(r"^  X\((\w+)\)", header, re.MULTILINE)]
    sources = " ".join(path.read_text() for path in sorted(folder.rglob("*")) if path.suffix in (".cpp", ".hpp"))
    return functions, sorted(set(re.findall(r"\b(?:CUBLAS(?!_EMULAT|_VER)(?:LT)?|CUDA_[RC])_\w+", sources)))


def interface(folder, compiler):
    functions, enumerators = names(folder)
    assert len(functions) > 40 and len(enumerators) > 40, (functions, enumerators)
    lines = [f'std::printf("{name} %s\\n", typeid(decltype(&{name})).name());' for name in functions]
    lines += [f'std::printf("{name} %d\\n", static_cast<int>({name}));' for name in enumerators]
    lines += [f'std::printf("sizeof({name}) %zu\\n", sizeof({name}));' for name in ("cublasLtMatmulAlgo_t", "cublasLtMatmulHeuristicResult_t")]
    fields = ("algo", "workspaceSize", "state", "wavesCount")
    lines += [f'std::printf("{name} %zu\\n", offsetof(cublasLtMatmulHeuristicResult_t, {name}));' for name in fields]
    with tempfile.TemporaryDirectory() as temporary:
        source, program = pathlib.Path(temporary, "interface.cpp"), pathlib.Path(temporary, "interface")
        source.write_text(PROGRAM % "\n".join(lines))
        subprocess.run([*compiler, "-std=c++17", "-w", "-O0", source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def main(folder, record, *compiler):
    found = interface(pathlib.Path(folder), [each for each in compiler if each != "--print"])
    if "--print" in compiler:
        print("\n".join(found))
        return 0
    recorded = pathlib.Path(record).read_text().splitlines()
    for line in sorted(set(found) ^ set(recorded)):
        print(f"{'of these headers only' if line in found else 'of cublas_interface.txt only'}: {line}")
    return 0 if found == recorded else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
