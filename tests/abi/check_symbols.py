#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library exports the functions that its headers declare, each in the node of its release, and nothing else; it has its
soname, and needs no GPU library. check_symbols.py LIBRARY INCLUDE"""
import pathlib
import re
import subprocess
import sys

import abi_dump
import public_api

GPU = re.compile(r"cuda|cublas|cudnn|nvrtc|nvidia|nvml|hip|rocm|rocblas|opencl|level.?zero|sycl", re.I)
LOADED_LATER = re.compile(r"dnnl|blas|gomp|OpenCL")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(nm_output):
    """Names with versions, as in "sg_gemm@@STREAMGEMM_1"."""
    return {line.split()[-1] for line in nm_output.splitlines() if line.strip()}


def symbol_problems(seen, declared):
    """`seen`: what nm prints; `declared`: the node of each name of the headers."""
    expected = {f"{name}@@{version}" for name, version in declared.items()}
    versions = {name for name in seen if name in declared.values()}
    for name in sorted(seen - expected - versions):
        yield f"exported, but not a public function of that node: {name}"
    for name in sorted(expected - seen):
        yield f"declared, but not exported: {name}"


def dynamic_problems(readelf_output, soname, relocations=""):
    """Problems of the dynamic section: the soname and the needed libraries, and relocations by the library's own names."""
    found = re.findall(r"SONAME.*\[(.*)\]", readelf_output)
    if found != [f"libstreamgemm.so.{soname}"]:
        yield f"the soname is {found}, not libstreamgemm.so.{soname}"
    for name in re.findall(r"^\w+ +\w+ +R_\w+ +\w+ (sg_\w+)", relocations, re.MULTILINE):
        yield f"{name} is called by its name, and so may be a program's function"
    for needed in re.findall(r"NEEDED.*\[(.*)\]", readelf_output):
        if GPU.search(needed):
            yield f"needs a GPU's library: {needed}"
        if LOADED_LATER.search(needed):
            yield f"needs a library that the first cpu device loads: {needed}"


def main():
    library, include = sys.argv[1:]
    seen = exported(output("nm", "-D", "--defined-only", "--with-symbol-versions", library))
    soname = abi_dump.soname_of(pathlib.Path(include).parent)
    declared = {item.name: abi_dump.node_of(item, soname) for item in public_api.library_functions(include) if item.exported}
    found = list(symbol_problems(seen, declared))
    found += dynamic_problems(output("readelf", "-d", library), soname, output("readelf", "-rW", library))
    undeclared = [item.name for item in public_api.library_functions(include) if not item.exported]
    found += [f"declared in a public header without SG_API: {name}" for name in undeclared]
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
