#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The option gpu_architectures: its words become nvcc's options, and a word that this nvcc does not know is refused.

usage: architectures_test.py ARCHITECTURES.PY
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]


class Architectures(unittest.TestCase):
    def options(self, *words, help="--threads"):
        with tempfile.TemporaryDirectory() as temporary:
            nvcc = pathlib.Path(temporary, "nvcc")
            nvcc.write_text(f"#!/bin/sh\n[ $1 = --help ] && echo '{help}' || echo sm_75 sm_86 sm_90\n")
            nvcc.chmod(0o755)
            done = subprocess.run([sys.executable, PROGRAM, nvcc, *words], capture_output=True, text=True)
        return done.stderr if done.returncode else [option.removeprefix("-gencode=arch=") for option in done.stdout.split()]

    def test_words(self):
        self.assertEqual(self.options("90-real", "75-virtual"), ["compute_90,code=sm_90", "compute_75,code=compute_75"])
        self.assertEqual(self.options("86"), ["compute_86,code=sm_86", "compute_86,code=compute_86"])
        self.assertEqual(self.options("native"), ["-arch=native"])
        every = [f"compute_{chip},code=sm_{chip}" for chip in (75, 86, 90)]
        self.assertEqual(self.options("all"), [*every, "compute_90,code=compute_90"])

    def test_compressed_code(self):
        self.assertEqual(self.options("90-real", help="--compress-mode [size]"), ["--compress-mode=size", "compute_90,code=sm_90"])

    def test_unknown_words(self):
        for word in ("80", "90-ptx", "some", "sm_90", ""):
            self.assertIn(f'"{word}" is none of all, native, N, N-real and N-virtual with N of 75, 86, 90', self.options(word))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
