#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the version that include/streamgemm/version.h states; with --soversion its soname's number, with --backend that of the
plugins' interface."""
import pathlib
import re
import sys

headers = pathlib.Path(__file__).resolve().parent.parent / "include/streamgemm"
text = (headers / "version.h").read_text() + (headers / "backend.h").read_text()
value = {name: number for name, number in re.findall(r"#define SG_(\w+) (\d+)", text)}
if "--soversion" in sys.argv:
    print(value["SOVERSION"])
elif "--backend" in sys.argv:
    print(value["BACKEND_ABI_VERSION"])
else:
    print(f"{value['VERSION_MAJOR']}.{value['VERSION_MINOR']}.{value['VERSION_PATCH']}")
