#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the static library: one object of all layers, of which only the public functions are global, so that no name of the inside
clashes with a program's.

usage: archive.py ARCHIVE LD OBJCOPY AR OBJECTS-AND-ARCHIVES...
"""
import pathlib
import subprocess
import sys

archive, ld, objcopy, ar, *inputs = sys.argv[1:]
whole = pathlib.Path(archive).with_suffix(".o")
# Without groups: one of the same name in the program would replace ours.
subprocess.run([ld, "-r", "--force-group-allocation", "-o", whole, "--start-group", *inputs, "--end-group"], check=True)
subprocess.run([objcopy, "--localize-hidden", whole], check=True)
pathlib.Path(archive).unlink(missing_ok=True)  # `ar` adds to one that exists
subprocess.run([ar, "rcsD", archive, whole], check=True)
whole.unlink()
