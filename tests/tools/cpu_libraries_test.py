#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the cpu backend without CBLAS, without oneDNN and without both, where their headers do not exist.

usage: cpu_libraries_test.py SOURCE-DIRECTORY
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1])
HEADERS = {"cpu_blas": ["cblas.h"], "onednn": ["oneapi/dnnl/dnnl.h", "oneapi/dnnl/dnnl.hpp"]}
OTHERS = ["bindings", "cuda", "docs", "tests", "tools"]


def run(*command, **kwargs):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
    if done.returncode:
        raise AssertionError(f"{shlex.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")


class CpuLibraries(unittest.TestCase):
    def compile_without(self, *disabled):
        with tempfile.TemporaryDirectory() as folder:
            build, absent = pathlib.Path(folder, "build"), pathlib.Path(folder, "absent")
            run("meson", "setup", build, SOURCE, *(f"-D{name}=disabled" for name in [*disabled, *OTHERS]))
            for name in disabled:
                for header in HEADERS[name]:
                    path = absent / header
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(f'#error "{header} does not exist here"\n')
            commands = json.loads((build / "compile_commands.json").read_text())
            own = [each for each in commands if "libsg_cpu.a.p" in each["output"]]
            self.assertTrue(own)
            for each in own:
                words = shlex.split(each["command"])
                words[words.index("-c")] = "-fsyntax-only"
                del words[words.index("-o"):words.index("-o") + 2]
                run(*words, "-Werror", cwd=each["directory"], env=dict(os.environ, CPATH=str(absent)))

    def test_without_cblas(self):
        self.compile_without("cpu_blas")

    def test_without_onednn(self):
        self.compile_without("onednn")

    def test_without_both(self):
        self.compile_without("cpu_blas", "onednn")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
