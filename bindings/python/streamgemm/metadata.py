#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the METADATA of the installed Python package, as pyproject.toml describes it, but for what wheels depend on: the installed
package uses the system's library with the system's BLAS. metadata.py VERSION PYPROJECT"""
import pathlib
import re
import sys

FIELDS = {"name": "Name", "description": "Summary", "license": "License", "requires-python": "Requires-Python"}

version, project = sys.argv[1], pathlib.Path(sys.argv[2]).read_text()
table = re.search(r"^\[project\]\n(.*?)^\[", project, re.MULTILINE | re.DOTALL)[1]
values = dict(re.findall(r'^([\w-]+) = "(.*)"$', table, re.MULTILINE))
print("Metadata-Version: 2.1", *(f"{field}: {values[key]}" for key, field in FIELDS.items()), f"Version: {version}", sep="\n")
