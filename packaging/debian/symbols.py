#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the symbols file of the library's package: each public function with the release that brought it, so that a program depends on
the oldest library that has its functions. dpkg-gensymbols compares the file with the library. usage: symbols.py SOURCE-ROOT"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(root / "lib/api"))
sys.dont_write_bytecode = True
import symbol_map

soversion = subprocess.run([root / "tools/version.py", "--soversion"], check=True, capture_output=True, text=True).stdout.strip()
first = re.search(r"'SONAME_SINCE': '([\d.]+)'", (root / "packaging/meson.build").read_text())[1]
print(f"libstreamgemm.so.{soversion} libstreamgemm{soversion} #MINVER#")
print("* Build-Depends-Package: libstreamgemm-dev")
headers = [header for header in sorted((root / "include/streamgemm").glob("*.h")) if header.name != "blas.h"]  # of another library
for release, names in symbol_map.nodes_of(headers).items():
    node = f"STREAMGEMM_{release or soversion}"
    for name in sorted([*names, node]):
        print(f" {name}@{node} {release or first}")
