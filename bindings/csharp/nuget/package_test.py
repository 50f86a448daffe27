#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The NuGet package has the layout of one, and a program works with nothing but what is unpacked from it, in each layout that a build makes.

usage: package_test.py PACKAGE PLATFORM PROGRAM.exe BUNDLED.exe SYMBOLS.snupkg | none RUNTIME...     RUNTIME: the command that runs a .NET program
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zipfile


def main():
    package, platform, program, bundled, symbols, *runtime = sys.argv[1:]
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

        # What it says of itself, as the project for `dotnet pack` says it.
        project = {t.tag: t.text for t in xml.etree.ElementTree.parse(pathlib.Path(__file__).parents[1] / "StreamGemm.csproj").iter() if t.text and t.text.strip()}
        own = {t.tag.partition("}")[2]: t for t in xml.etree.ElementTree.parse(root / "package/StreamGemm.nuspec").iter()}
        for tag, name in {"id": "PackageId", "authors": "Authors", "copyright": "Copyright", "description": "Description", "tags": "PackageTags",
                          "license": "PackageLicenseExpression", "readme": "PackageReadmeFile", "icon": "PackageIcon"}.items():
            assert own[tag].text == project[name], f"{tag}: {own[tag].text!r} is not {project[name]!r}"
        assert own["repository"].get("url").startswith("https://") and own["projectUrl"].text.startswith("https://")
        picture = (root / "package" / own["icon"].text).read_bytes()
        assert picture.startswith(b"\x89PNG") and struct.unpack(">II", picture[16:24]) == (128, 128) and len(picture) < 4096, "the icon is a PNG of 128 x 128"
        assert project["TargetFrameworks"].split(";")[0] == "netstandard2.1"

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
        assembly = root / "package/lib/netstandard2.1/StreamGemm.dll"
        is_mono = pathlib.Path(runtime[0]).name == "mono"

        def run(*command, **variables):
            done = subprocess.run([*runtime, *command], env={**clean, **variables}, capture_output=True, text=True, check=False)
            if done.returncode == 77:
                print(done.stdout)
                sys.exit(77)  # without the runtime
            return done

        def works(*command, **variables):
            done = run(*command, **variables)
            assert done.returncode == 0, done.stdout + done.stderr
            print(done.stdout)

        def application(name, exe, *files):
            (root / name).mkdir()
            for file in (exe, *files):
                shutil.copy(file, root / name)
            return root / name / pathlib.Path(exe).name

        # As a build lays it out: the assembly beside the program, the native files under runtimes.
        app = application("app", program, assembly)
        shutil.copytree(root / "package/runtimes", app.parent / "runtimes")
        works(app)
        # Published for one platform: all files in one folder. As a single file: the assembly is in no file.
        works(application("published", program, assembly, *(root / "package" / natives).iterdir()))
        works(application("single", bundled, *(root / "package" / natives).iterdir()), assembly)
        # A file named by the variable comes first, and its error is reported.
        wrong = run(app, STREAMGEMM_CSHARP="/nonexistent.so")
        assert wrong.returncode != 0 and "STREAMGEMM_CSHARP" in wrong.stderr and "/nonexistent.so" in wrong.stderr, wrong.stderr
        if symbols != "none":
            names_sources(root, symbols, wrong, lambda: run(app, STREAMGEMM_CSHARP="/nonexistent.so"), is_mono)
        works(application("alone", program, assembly), STREAMGEMM_CSHARP=str(root / "package" / natives / "libstreamgemm_csharp.so"))
        if is_mono:  # unpacked, and nothing moved: Mono finds the assembly by a path
            works(program, MONO_PATH=str(assembly.parent))
        else:  # built and not published: .NET finds all files in NuGet's folder of packages
            works(referring(application("built", program), root, names, platform))


def names_sources(root, symbols, without, fail, is_mono):
    """With the .pdb of the package of symbols a stack has lines of sources. The .pdb is of this assembly, and has the sources."""
    with zipfile.ZipFile(symbols) as archive:
        archive.extractall(root / "symbols")
    assert not [n for n in archive.namelist() if not n.endswith((".pdb", ".nuspec", ".rels", ".xml"))], archive.namelist()
    kinds = [t.get("name") for t in xml.etree.ElementTree.parse(root / "symbols/StreamGemm.nuspec").getroot().iter() if t.tag.endswith("}packageType")]
    assert kinds == ["SymbolsPackage"], kinds
    pdb = (root / "symbols/lib/netstandard2.1/StreamGemm.pdb").read_bytes()
    assembly = (root / "app/StreamGemm.dll").read_bytes()
    table = pdb.index(b"#Pdb\0") - 8
    at, = struct.unpack_from("<I", pdb, table)
    identity = assembly.index(b"RSDS") + 4
    assert pdb[at:at + 16] == assembly[identity:identity + 16], "the .pdb is of another assembly"
    assert assembly[identity + 20:].startswith(b"/_/StreamGemm.pdb\0"), "the name of the .pdb"
    if is_mono:
        return  # its stacks have lines with --debug only
    (root / "app/StreamGemm.pdb").write_bytes(pdb)
    line = re.compile(r"at StreamGemm\.NativeLoader\.\.cctor\(\) in /_/bindings/csharp/src/NativeLoader\.cs:line \d+")
    assert not line.search(without.stderr) and line.search(fail().stderr), fail().stderr


def referring(program, root, names, platform):
    """Lets a program refer to the package, in a folder of packages, as the SDK does."""
    version = (root / "package/StreamGemm.nuspec").read_text().split("<version>")[1].split("<")[0]
    shutil.copytree(root / "package", root / "packages/streamgemm" / version)
    own = {n: {} for n in names if n.startswith("lib/") and n.endswith(".dll")}
    natives = {n: {"rid": platform, "assetType": "native"} for n in names if n.startswith("runtimes/")}
    target, library = ".NETCoreApp,Version=v3.1", f"StreamGemm/{version}"
    program.with_suffix(".deps.json").write_text(json.dumps({
        "runtimeTarget": {"name": target}, "targets": {target: {library: {"runtime": own, "runtimeTargets": natives}}},
        "libraries": {library: {"type": "package", "serviceable": False, "sha512": "", "path": f"streamgemm/{version}"}}}))
    program.with_suffix(".runtimeconfig.json").write_text(json.dumps({"runtimeOptions": {
        "rollForward": "LatestMajor", "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
        "configProperties": {"System.Globalization.Invariant": True}, "additionalProbingPaths": [str(root / "packages")]}}))
    return program


if __name__ == "__main__":
    main()
