#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The NuGet package has the layout of one, and a program works with nothing but what is unpacked from it.

usage: package_test.py PACKAGE PLATFORM PROGRAM.exe RUNTIME...     RUNTIME: the command that runs a .NET program
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zipfile


def main():
    package, platform, program, *runtime = sys.argv[1:]
    natives = f"runtimes/{platform}/native"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        with zipfile.ZipFile(package) as archive:
            assert archive.testzip() is None
            names = archive.namelist()
            archive.extractall(root / "package")
        for needed in ("StreamGemm.nuspec", "[Content_Types].xml", "_rels/.rels", "lib/netstandard2.1/StreamGemm.dll",
                       "lib/netstandard2.1/StreamGemm.xml", f"{natives}/libstreamgemm_csharp.so"):
            assert needed in names, f"{needed} is missing"
        for name in names:
            if name.endswith((".xml", ".nuspec", ".rels")):
                xml.etree.ElementTree.parse(root / "package" / name)
        documented = [m.get("name") for m in xml.etree.ElementTree.parse(root / "package/lib/netstandard2.1/StreamGemm.xml").iter("member")]
        assert any(m.startswith("M:StreamGemm.GemmContext.GemmAsync") for m in documented), "the documentation tells of GemmAsync"

        # With the native libraries of another platform; the same bytes each time.
        with zipfile.ZipFile(root / "other.nupkg", "w") as other:
            for name in ("README.md", "runtimes/other/native/libstreamgemm_csharp.so"):
                other.writestr(name, "other")
        for name in ("first", "second"):
            subprocess.run([pathlib.Path(__file__).with_name("pack.py"), "--join", root / name, package, root / "other.nupkg"], check=True)
        assert (root / "first").read_bytes() == (root / "second").read_bytes()
        with zipfile.ZipFile(root / "first") as joined:
            assert joined.namelist() == [*names, "runtimes/other/native/libstreamgemm_csharp.so"], joined.namelist()
            assert joined.read("README.md") != b"other"

        clean = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "MONO_PATH", "STREAMGEMM_CSHARP")}
        # As a build lays it out: the assembly beside the program, the native files under runtimes.
        app = root / "app"
        shutil.copytree(root / "package/runtimes", app / "runtimes")
        shutil.copy(root / "package/lib/netstandard2.1/StreamGemm.dll", app)
        shutil.copy(program, app)
        print(subprocess.run([*runtime, app / pathlib.Path(program).name], env=clean, check=True, capture_output=True, text=True).stdout)
        # Unpacked, and nothing moved (Mono finds the assembly by a path).
        if pathlib.Path(runtime[0]).name == "mono":
            there = {**clean, "MONO_PATH": str(root / "package/lib/netstandard2.1")}
            print(subprocess.run([*runtime, program], env=there, check=True, capture_output=True, text=True).stdout)
            # A file named by the variable comes first, and its error is reported.
            wrong = subprocess.run([*runtime, program], env={**there, "STREAMGEMM_CSHARP": "/nonexistent.so"}, capture_output=True, text=True)
            assert wrong.returncode != 0 and "STREAMGEMM_CSHARP" in wrong.stderr and "/nonexistent.so" in wrong.stderr, wrong.stderr
            named = {**clean, "MONO_PATH": str(root / "alone"),
                     "STREAMGEMM_CSHARP": str(root / "package" / natives / "libstreamgemm_csharp.so")}
            (root / "alone").mkdir()
            shutil.copy(root / "package/lib/netstandard2.1/StreamGemm.dll", root / "alone")
            subprocess.run([*runtime, program], env=named, check=True, capture_output=True)


if __name__ == "__main__":
    main()
