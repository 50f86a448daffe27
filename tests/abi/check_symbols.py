#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library exports the functions that its headers declare, each under its "Since" version, and nothing else; it
has its soname, and needs no GPU library. Before the first frozen release the comments name the versions.
check_symbols.py LIBRARY INCLUDE FROZEN-FOLDER..., the first release first"""
import pathlib
import re
import subprocess
import sys

import abi_dump
import public_api

FIRST = "STREAMGEMM_0"
SONAME = "libstreamgemm.so.0"
GPU = re.compile(r"cuda|cublas|cudnn|nvrtc|nvidia|nvml|hip|rocm|rocblas|opencl|level.?zero|sycl", re.I)
LOADED_LATER = re.compile(r"dnnl|blas|gomp|OpenCL")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(nm_output):
    """Names with versions, as in "sg_gemm@@STREAMGEMM_0"."""
    return {line.split()[-1] for line in nm_output.splitlines() if line.strip()}


def symbol_problems(seen, declared):
    """`seen`: what nm prints; `declared`: the version of each name of the headers."""
    expected = {f"{name}@@{version}" for name, version in declared.items()}
    versions = {name for name in seen if name.split("@")[0] in {FIRST, *declared.values()}}
    for name in sorted(seen - expected - versions):
        yield f"exported, but not a public function of that version: {name}"
    for name in sorted(expected - seen):
        yield f"declared, but not exported: {name}"


def version_of(name, releases, coming):
    """The symbol version of a function: that of the first of the releases, pairs of a version and its functions, that has it."""
    return next((version for version, names in releases if name in names), coming)


def dynamic_problems(readelf_output, relocations=""):
    """Problems of the dynamic section: the soname and the needed libraries, and relocations by the library's own names."""
    soname = re.findall(r"SONAME.*\[(.*)\]", readelf_output)
    if soname != [SONAME]:
        yield f"the soname is {soname}, not {SONAME}"
    for name in re.findall(r"^\w+ +\w+ +R_\w+ +\w+ (sg_\w+)", relocations, re.MULTILINE):
        yield f"{name} is called by its name, and so may be a program's function"
    for needed in re.findall(r"NEEDED.*\[(.*)\]", readelf_output):
        if GPU.search(needed):
            yield f"needs a GPU's library: {needed}"
        if LOADED_LATER.search(needed):
            yield f"needs a library that the first cpu device loads: {needed}"


def main():
    library, include, *frozen = sys.argv[1:]
    seen = exported(output("nm", "-D", "--defined-only", "--with-symbol-versions", library))
    releases = []
    for folder in map(pathlib.Path, frozen):
        version = "STREAMGEMM_" + folder.name.removeprefix("frozen-") if releases else FIRST
        releases.append((version, public_api.exported_functions(folder / "streamgemm")))
    coming = "STREAMGEMM_" + ".".join(map(str, abi_dump.version_of(pathlib.Path(include).parent)))
    functions = {item.name: item.doc for item in public_api.library_functions(include) if item.exported}
    declared = {name: version_of(name, releases, coming) if releases else abi_dump.symbol_version(doc) for name, doc in functions.items()}
    found = list(symbol_problems(seen, declared))
    found += dynamic_problems(output("readelf", "-d", library), output("readelf", "-rW", library))
    undeclared = [item.name for item in public_api.library_functions(include) if not item.exported]
    found += [f"declared in a public header without SG_API: {name}" for name in undeclared]
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
