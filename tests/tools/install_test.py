#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs into an empty folder and builds programs against it: by pkg-config, and by CMake's find_package.

usage: install_test.py BUILD-DIRECTORY PREFIX C-EXAMPLE C-COMPILER...
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, PREFIX, EXAMPLE, *COMPILER = sys.argv[1:]
COMPILER = [word for word in COMPILER if word != "ccache"]
WANTED = "58 64\n139 154\n"  # what 01_hello prints

CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(StreamGEMM 0.1 REQUIRED)
add_executable(consumer hello.c)
target_link_libraries(consumer StreamGEMM::streamgemm)
"""


def run(*command, **kwargs):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class Installation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name, "root")
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", cls.root)
        cls.prefix = cls.root / PREFIX.lstrip("/")
        [cls.library] = cls.prefix.glob("lib*/**/libstreamgemm.so")
        cls.env = dict(os.environ, LD_LIBRARY_PATH=str(cls.library.parent))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_names_of_the_library(self):
        self.assertTrue(self.library.is_symlink())
        self.assertTrue((self.library.parent / "libstreamgemm.so.0").is_symlink())

    def test_program(self):
        self.assertRegex(run(self.prefix / "bin/streamgemm", "--version", env=self.env), r"^\d+\.\d+\.\d+\n$")

    def test_pkg_config(self):
        env = dict(self.env, PKG_CONFIG_SYSROOT_DIR=str(self.root), PKG_CONFIG_PATH=str(self.library.parent / "pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "streamgemm", env=env).split()
        program = pathlib.Path(self.folder.name, "hello")
        run(*COMPILER, "-std=c99", EXAMPLE, "-o", program, *flags, env=env)
        self.assertEqual(run(program, env=env), WANTED)

    def test_cmake(self):
        if not shutil.which("cmake"):
            self.skipTest("no cmake")
        source = pathlib.Path(self.folder.name, "source")
        source.mkdir()
        (source / "CMakeLists.txt").write_text(CMAKE_PROJECT)
        shutil.copy(EXAMPLE, source / "hello.c")
        build = pathlib.Path(self.folder.name, "build")
        flags = [flag for flag in COMPILER[1:] if flag.startswith("-")]
        run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_C_COMPILER={COMPILER[0]}",
            f"-DCMAKE_C_FLAGS={' '.join(flags)}")
        run("cmake", "--build", build)
        self.assertEqual(run(build / "consumer", env=self.env), WANTED)

    def test_cmake_refuses_a_newer_version(self):
        if not shutil.which("cmake"):
            self.skipTest("no cmake")
        source = pathlib.Path(self.folder.name, "newer")
        source.mkdir()
        (source / "CMakeLists.txt").write_text(CMAKE_PROJECT.replace("StreamGEMM 0.1", "StreamGEMM 99.0"))
        shutil.copy(EXAMPLE, source / "hello.c")
        with self.assertRaisesRegex(AssertionError, "99.0"):
            run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
