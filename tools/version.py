#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the version that include/streamgemm/version.h states, or with --soversion its soname's number."""
import pathlib
import re
import sys

text = (pathlib.Path(__file__).resolve().parent.parent / "include/streamgemm/version.h").read_text()
value = {name: number for name, number in re.findall(r"#define SG_(\w+) (\d+)", text)}
if "--soversion" in sys.argv:
    print(value["SOVERSION"])
else:
    print(f"{value['VERSION_MAJOR']}.{value['VERSION_MINOR']}.{value['VERSION_PATCH']}")
