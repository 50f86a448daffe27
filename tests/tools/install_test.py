#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs into an empty folder and builds programs against it: by pkg-config, and by CMake's find_package.

usage: install_test.py BUILD-DIRECTORY PREFIX C-EXAMPLE C-COMPILER...
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest

BUILD, PREFIX, EXAMPLE, *COMPILER = sys.argv[1:]
COMPILER = [word for word in COMPILER if word != "ccache"]
WANTED = "58 64\n139 154\n"  # output of 01_hello

CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(StreamGEMM 0.9 REQUIRED)
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
        pc = (cls.library.parent / "pkgconfig/streamgemm.pc").read_text()
        cls.plugins = cls.prefix / re.search(r"^plugindir=\$\{prefix\}/(\S+)$", pc, re.MULTILINE)[1]
        cls.env = dict(os.environ, LD_LIBRARY_PATH=str(cls.library.parent))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_names_of_the_library(self):
        self.assertTrue(self.library.is_symlink())
        self.assertTrue((self.library.parent / "libstreamgemm.so.1").is_symlink())

    def test_names_of_the_plugins(self):
        version = re.search(r"#define SG_BACKEND_ABI_VERSION (\d+)", (self.prefix / "include/streamgemm/backend.h").read_text())[1]
        self.assertEqual(self.library.parent / f"streamgemm/backend-{version}", self.plugins)
        for plugin in self.plugins.glob("*.so"):
            exported = [line.split()[-1] for line in run("nm", "-D", "--defined-only", plugin).splitlines()]
            self.assertEqual([f"sg_backend_entry_{version}"], exported)

    def test_licence(self):
        for name in ("LICENSE", "NOTICE", "CHANGELOG.md", "SECURITY.md"):
            self.assertTrue((self.prefix / "share/doc/streamgemm" / name).stat().st_size > 0)

    def test_installed_parts_find_the_library(self):
        """Under a prefix that the loader does not search, and without a variable that names it."""
        env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
        self.assertRegex(run(self.prefix / "bin/streamgemm", "--version", env=env), r"^\d+\.\d+\.\d+\n$")
        parts = [*self.root.glob("**/streamgemm/_native.*.so"), *self.prefix.glob("lib*/**/jni/libstreamgemm_java.so")]
        for part in [*parts, *self.prefix.glob("lib*/**/libstreamgemm_csharp.so")]:
            with self.subTest(part.name):
                self.assertIn(str(self.library.parent), os.path.realpath(self.loaded(part, env)))
        for raw in self.root.glob(f"**/streamgemm/_native{sysconfig.get_config_var('EXT_SUFFIX')}"):  # of this Python
            code = "import importlib.metadata as m, streamgemm as sg; print(len(sg.devices()) > 0 and m.version('streamgemm') == sg.__version__)"
            self.assertEqual("True\n", run(sys.executable, "-c", code, env={**env, "PYTHONPATH": str(raw.parent.parent)}))

    def test_the_drop_in_blas(self):
        """By the installed program, and as libblas.so.3: the device's library is found beside them."""
        code = ("import ctypes, sys; blas = ctypes.CDLL(sys.argv[1] or None); D = ctypes.c_double; c = (D * 1)(); "
                "blas.cblas_dgemm(101, 111, 111, 1, 1, 2, D(1), (D * 2)(3, 4), 2, (D * 2)(5, 6), 1, D(0), c, 1); print(c[0])")
        env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH" and not k.startswith("SG_")}
        report = pathlib.Path(self.folder.name, "report.json")
        said = run(self.prefix / "bin/streamgemm", "run", "--device", "cpu", "--min", "0", "--json", "--report", report, "--", sys.executable, "-c", code, "", env=env)
        self.assertEqual(said, "39.0\n")
        self.assertEqual(json.loads(report.read_text())["rows"][0]["calls"], {"device": 1})
        for library in self.library.parent.glob("streamgemm-blas/libblas.so.3"):
            settings = {"SG_DEVICE": "cpu", "SG_BLAS_MIN": "0", "SG_BLAS_REPORT": str(report)}
            self.assertEqual(run(sys.executable, "-c", code, library, env=env | settings), "39.0\n")
            self.assertEqual(json.loads(report.read_text())["rows"][0]["calls"], {"device": 1})
            [backend] = self.root.glob("**/etc/flexiblasrc.d/StreamGEMM.conf")
            self.assertIn(f"library = {pathlib.Path('/') / library.relative_to(self.root)}\n", backend.read_text())

    def loaded(self, part, env):
        [line] = [line for line in run("ldd", part, env=env).splitlines() if "libstreamgemm.so" in line]
        return line.partition("=> ")[2].split(" (")[0]

    def test_program(self):
        self.assertRegex(run(self.prefix / "bin/streamgemm", "--version", env=self.env), r"^\d+\.\d+\.\d+\n$")
        for text in ("man/man1/streamgemm.1", "man/man1/streamgemm-gemm.1", "bash-completion/completions/streamgemm", "zsh/site-functions/_streamgemm",
                     "fish/vendor_completions.d/streamgemm.fish"):
            self.assertIn("streamgemm", (self.prefix / "share" / text).read_text())

    def test_pkg_config(self):
        env = dict(self.env, PKG_CONFIG_SYSROOT_DIR=str(self.root), PKG_CONFIG_PATH=str(self.library.parent / "pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "streamgemm", env=env).split()
        program = pathlib.Path(self.folder.name, "hello")
        run(*COMPILER, "-std=c99", EXAMPLE, "-o", program, *flags, env=env)
        self.assertEqual(run(program, env=env), WANTED)

    def test_run_path(self):
        """The alternative of docs/building.md to ldconfig: the program has a run path to the library."""
        env = {k: v for k, v in self.env.items() if k != "LD_LIBRARY_PATH"}
        env["PKG_CONFIG_PATH"] = str(self.library.parent / "pkgconfig")
        moved = f"--define-variable=prefix={self.prefix}"  # the tests install into a root of their own
        flags = run("pkg-config", moved, "--cflags", "--libs", "streamgemm", env=env).split()
        libdir = run("pkg-config", moved, "--variable=libdir", "streamgemm", env=env).strip()
        program = pathlib.Path(self.folder.name, "hello_with_run_path")
        run(*COMPILER, "-std=c99", EXAMPLE, "-o", program, *flags, f"-Wl,-rpath,{libdir}", env=env)
        self.assertEqual(run(program, env=env), WANTED)

    def test_ldconfig_finds_the_library(self):
        ldconfig = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if not ldconfig:
            self.skipTest("no ldconfig")
        configuration, cache = (pathlib.Path(self.folder.name, name) for name in ("ld.so.conf", "ld.so.cache"))
        configuration.write_text(f"{self.library.parent}\n")
        run(ldconfig, "-X", "-f", configuration, "-C", cache)
        found = rf"libstreamgemm\.so\.1 \(.*\) => {re.escape(str(self.library.parent))}/libstreamgemm\.so\.1\n"
        self.assertRegex(run(ldconfig, "-C", cache, "-p"), found)

    def cmake(self, name, find, plugin=False):
        """Configures a project that looks for the package, perhaps with a plugin installed; its output."""
        if not shutil.which("cmake"):
            self.skipTest("no cmake")
        source = pathlib.Path(self.folder.name, name)
        source.mkdir()
        project = CMAKE_PROJECT.replace("StreamGEMM 0.9 REQUIRED", find) + 'message("cuda: ${StreamGEMM_cuda_FOUND}")\n'
        (source / "CMakeLists.txt").write_text(project)
        shutil.copy(EXAMPLE, source / "hello.c")
        installed = self.plugins / "libstreamgemm-cuda.so"
        added = plugin and not installed.exists()
        if added:
            installed.parent.mkdir(parents=True, exist_ok=True)
            installed.touch()
        try:
            return run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        finally:
            if added:
                installed.unlink()

    def test_cmake_components(self):
        installed = (self.plugins / "libstreamgemm-cuda.so").exists()
        self.assertIn("cuda: TRUE", self.cmake("with_plugin", "StreamGEMM 0.9 REQUIRED COMPONENTS cuda", plugin=True))
        optional = self.cmake("optional", "StreamGEMM 0.9 REQUIRED OPTIONAL_COMPONENTS cuda")
        self.assertIn(f"cuda: {str(installed).upper()}", optional)
        with self.assertRaisesRegex(AssertionError, "no component\\s+'rocm'"):
            self.cmake("unknown", "StreamGEMM 0.9 REQUIRED COMPONENTS rocm")
        if not installed:
            with self.assertRaisesRegex(AssertionError, "no component\\s+'cuda'"):
                self.cmake("without_plugin", "StreamGEMM 0.9 REQUIRED COMPONENTS cuda")

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

    def test_cmake_refuses_newer_versions_and_those_of_another_soname(self):
        for version in ("99.0", "0.8"):
            with self.assertRaisesRegex(AssertionError, f'compatible with requested\\s+version "{version}"'):
                self.cmake(version, f"StreamGEMM {version} REQUIRED")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
