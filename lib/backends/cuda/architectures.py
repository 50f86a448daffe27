#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints nvcc's options for the architectures of the option gpu_architectures. Its words are those of CMake: `80-real` is machine code,
`80-virtual` PTX, which the driver compiles for its GPU and any newer one, `80` both; `native` is this machine's GPUs; `all` is machine
code for each architecture below that nvcc knows, and PTX of the newest. Meson keeps option names that begin with cuda_ for itself. Code is
compressed for size where nvcc can (CUDA 12.8): to an eighth of the default.

usage: architectures.py NVCC ARCHITECTURE...
"""
import re
import subprocess
import sys

RELEASED = ["75", "80", "86", "89", "90", "100"]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def known(nvcc):
    return {code.removeprefix("sm_") for code in output(nvcc, "--list-gpu-code").split()}


def options(word, chips):
    if word == "native":
        return ["-arch=native"]
    if word == "all":
        released = [chip for chip in RELEASED if chip in chips]
        return [option for chip in released for option in options(f"{chip}-real", chips)] + options(f"{released[-1]}-virtual", chips)
    chip, _, kind = word.partition("-")
    if not re.fullmatch(r"\d+[af]?(-real|-virtual)?", word) or chip not in chips:
        listed = ", ".join(sorted(chips, key=lambda chip: (len(chip), chip)))
        sys.exit(f'gpu_architectures: "{word}" is none of all, native, N, N-real and N-virtual with N of {listed}')
    made = {"real": ["sm"], "virtual": ["compute"], "": ["sm", "compute"]}[kind]
    return [f"-gencode=arch=compute_{chip},code={each}_{chip}" for each in made]


def main():
    nvcc, *words = sys.argv[1:]
    chips = known(nvcc)
    compressed = ["--compress-mode=size"] if "--compress-mode" in output(nvcc, "--help") else []
    print("\n".join(compressed + [option for word in words for option in options(word, chips)]))


main()
