#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the NuGet package: the assembly and its documentation, and the native libraries that it loads, for a platform as .NET names it.

usage: pack.py OUT.nupkg VERSION LICENSE README ASSEMBLY.dll DOCUMENTATION.xml PLATFORM NATIVE=NAME...
       pack.py --symbols OUT.snupkg VERSION SYMBOLS.pdb                for servers of symbols
       pack.py --cuda OUT.nupkg VERSION LICENSE PLATFORM PLUGIN.so     StreamGemm.Cuda, which depends on StreamGemm
       pack.py --join OUT.nupkg PACKAGE.nupkg OTHER.nupkg...     OTHER: for another platform, of which the native libraries alone are taken

A .nupkg is a ZIP file in the layout of the Open Packaging Conventions. The same input gives the same bytes.
"""
import pathlib
import re
import sys
import tomllib
import zipfile

import icon

ROOT = pathlib.Path(__file__).resolve().parents[3]
FRAMEWORK = "netstandard2.1"

NUSPEC = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata minClientVersion="2.12">
    <id>{id}</id>
    <version>{version}</version>
    <authors>StreamGEMM</authors>
    <projectUrl>{home}</projectUrl>
    <description>{description}</description>
    <tags>matrix gemm blas cuda asynchronous</tags>
    <repository type="git" url="{source}"{commit} />
{more}
  </metadata>
</package>
"""
LICENSED = """    <license type="expression">Apache-2.0</license>
    <licenseUrl>https://licenses.nuget.org/Apache-2.0</licenseUrl>
    <copyright>Copyright 2026 The StreamGEMM authors</copyright>
    <readme>README.md</readme>
    <icon>icon.png</icon>
    <requireLicenseAcceptance>false</requireLicenseAcceptance>
    <dependencies>
      <group targetFramework=".NETStandard2.1"{dependency}
    </dependencies>"""
SYMBOLS = """    <packageTypes>
      <packageType name="SymbolsPackage" />
    </packageTypes>"""
RELATIONSHIPS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/{id}.nuspec" Id="R1" />
</Relationships>
"""
CONTENT_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
{defaults}{overrides}</Types>
"""


def content_types(names):
    """Each file has a type, by its extension or, without one, by its name."""
    kinds = {"rels": "application/vnd.openxmlformats-package.relationships+xml", "xml": "application/xml", "md": "text/markdown", "png": "image/png"}
    extensions = sorted({n.rsplit(".", 1)[1] for n in names if "." in pathlib.PurePosixPath(n).name} | {"rels"})
    defaults = [f'  <Default Extension="{e}" ContentType="{kinds.get(e, "application/octet-stream")}" />\n' for e in extensions]
    overrides = [f'  <Override PartName="/{n}" ContentType="application/octet-stream" />\n' for n in names
                 if "." not in pathlib.PurePosixPath(n).name]
    return CONTENT_TYPES.format(defaults="".join(defaults), overrides="".join(overrides))


def described(parts, id, version, description, more):
    """The parts with what a package says of itself and them. `more`: of the nuspec."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    commit = (ROOT / "tools/streamgemm/archived_commit.txt").read_text().strip()
    commit = "" if commit.startswith("$") else f' commit="{commit}"'
    nuspec = NUSPEC.format(id=id, version=version, description=description, home=urls["Homepage"], source=urls["Source"], commit=commit, more=more)
    parts = {**parts, f"{id}.nuspec": nuspec.encode(), "_rels/.rels": RELATIONSHIPS.format(id=id).encode()}
    return {"[Content_Types].xml": content_types(parts).encode(), **parts}


def write(output, parts):
    with zipfile.ZipFile(output, "w") as package:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            package.writestr(entry, content)


def contents(files):
    """The parts of a package that is licensed, and shown with its icon."""
    return {name: pathlib.Path(path).read_bytes() for name, path in files.items()} | {"icon.png": icon.png()}


def join(output, *packages):
    parts = {}
    for path in packages:
        with zipfile.ZipFile(path) as package:
            parts |= {name: package.read(name) for name in package.namelist() if path == packages[0] or name.startswith("runtimes/")}
    write(output, parts)


def make(output, version, license_file, readme, assembly, documentation, platform, *natives):
    files = {"LICENSE": license_file, "NOTICE": ROOT / "NOTICE", "README.md": readme, f"lib/{FRAMEWORK}/StreamGemm.dll": assembly,
             f"lib/{FRAMEWORK}/StreamGemm.xml": documentation}
    for native in natives:
        path, name = native.rsplit("=", 1)
        files[f"runtimes/{platform}/native/{name}"] = path
    write(output, described(contents(files), "StreamGemm", version, "Asynchronous matrix multiplication on CPUs and GPUs: arrays, Memory and device memory in, a Task out.", LICENSED.format(dependency=" />")))


def symbols(output, version, pdb):
    parts = {f"lib/{FRAMEWORK}/StreamGemm.pdb": pathlib.Path(pdb).read_bytes()}
    write(output, described(parts, "StreamGemm", version, "Symbols of StreamGemm, with its sources.", SYMBOLS))


def cuda(output, version, license_file, platform, plugin):
    """Where the library that it depends on looks for plugins: beside itself."""
    abi = re.search(r"^#define SG_BACKEND_ABI_VERSION (\d+)", (ROOT / "include/streamgemm/backend.h").read_text(), re.MULTILINE)[1]
    files = {"LICENSE": license_file, "NOTICE": ROOT / "NOTICE", "README.md": ROOT / "bindings/csharp/nuget/README.cuda.md",
             f"runtimes/{platform}/native/streamgemm/backend-{abi}/libstreamgemm-cuda.so": plugin}
    dependency = f'>\n        <dependency id="StreamGemm" version="[{version}]" />\n      </group>'
    write(output, described(contents(files), "StreamGemm.Cuda", version, "The CUDA plugin of StreamGemm. It holds NVIDIA's static CUDA runtime, which the CUDA Toolkit's agreement lets applications distribute.",
                            LICENSED.format(dependency=dependency)))


if __name__ == "__main__":
    {"--join": join, "--symbols": symbols, "--cuda": cuda}.get(sys.argv[1], make)(*sys.argv[2 if sys.argv[1].startswith("--") else 1:])
