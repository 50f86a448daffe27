#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints nvcc's options for the chips that device code is made for, of those that this nvcc knows: machine code for
each, and PTX of the newest for chips to come."""
import subprocess
import sys

WANTED = ["75", "80", "86", "89", "90", "100"]

known = subprocess.run([sys.argv[1], "--list-gpu-code"], check=True, capture_output=True, text=True).stdout.split()
chips = [chip for chip in WANTED if f"sm_{chip}" in known]
for chip in chips:
    print(f"-gencode=arch=compute_{chip},code=sm_{chip}")
print(f"-gencode=arch=compute_{chips[-1]},code=compute_{chips[-1]}")
