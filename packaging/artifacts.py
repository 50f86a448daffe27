#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the packages of the commit that is checked out, but for Debian's, which tools/package makes itself. A file above its size in
artifact_sizes.txt fails.

usage: artifacts.py all | KIND... [--arm64] [--twice] [FOLDER]     KIND: jar, wheel, nupkg, tarball or cuda; FOLDER: build-artifacts by default

jar      FOLDER/maven: a Maven repository
wheel    FOLDER/wheel: the Python wheel and its source distribution
nupkg    FOLDER/nupkg: the NuGet package, and its symbols as another
tarball  FOLDER/tarball: the archive of tools/release
cuda     FOLDER/cuda: the CUDA plugin, which nvcc builds in some minutes, as a Python wheel, in a Maven repository, as a NuGet package
all      these, cuda where nvcc is, and Debian's packages in FOLDER/deb
--arm64  jar and nupkg have native code for aarch64, too, built by aarch64-linux-gnu.ini
--twice  makes them in two folders, the second time without a compiler cache, and compares them: a file that differs is named, and fails
"""
import filecmp
import importlib.machinery
import importlib.util
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

import cuda_wheel
import maven
import wheel

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES, DEBIAN_SIZES = ROOT / "packaging/artifact_sizes.txt", ROOT / "packaging/debian_sizes.txt"
EVERYWHERE = ("jar", "wheel", "nupkg", "tarball")
KINDS = (*EVERYWHERE, "cuda")
NVCC = shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
PLATFORMS = {"x86_64": ("linux-x86_64", "linux-x64"), "aarch64": ("linux-aarch_64", "linux-arm64")}  # as Maven and NuGet name them
MARK = ".packages"  # in a folder that is for packages alone
FOLDERS = {"jar": "maven"}  # of the other kinds their own names
# Native code without its symbol tables.
BUILD = ["--buildtype=release", "-Dtests=disabled", "-Dtools=disabled", "-Ddocs=disabled", "-Dc_link_args=-s", "-Dcpp_link_args=-s"]
WRAPPERS = ["-Dcuda=disabled", "-Dlanguages=java,csharp", "-Dbindings=enabled"]
CROSS = [*WRAPPERS, "--cross-file", ROOT / "packaging/aarch64-linux-gnu.ini", "-Dcpu_blas=enabled"]
BUILDS = {"build": WRAPPERS, "build-aarch64": CROSS, "build-cuda": ["-Dcuda=enabled", "-Dbindings=disabled"]}


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def run(*command, **options):
    subprocess.run([str(each) for each in command], check=True, **options)


class Packages:
    def __init__(self, out, arm64=False):
        self.out = out.resolve()
        self.wrappers = ["build", "build-aarch64"][: 1 + arm64]
        self.version = output(sys.executable, "tools/version.py")

    def build(self, name, target):
        """This file of a build of the committed files."""
        tree = self.out / f"streamgemm-{self.version}"
        build = tree / name
        if not tree.exists():
            self.out.mkdir(parents=True, exist_ok=True)
            archive = subprocess.run(["git", "archive", f"--prefix={tree.name}/", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
            run("tar", "-x", "-C", self.out, input=archive)
        if not (build / "build.ninja").exists():
            run("meson", "setup", build, tree, *BUILD, *BUILDS[name], stdout=subprocess.DEVNULL)
        run("ninja", "--quiet", "-C", build, target)
        return build / target

    def of_each_platform(self, target):
        """First of this machine's."""
        return [self.build(name, target) for name in self.wrappers]

    def jar(self, folder):
        jar, *others = self.of_each_platform("bindings/java/streamgemm.jar")
        run(ROOT / "packaging/maven.py", jar, jar.parent / "sources", self.version, folder, *others)

    def nupkg(self, folder):
        name = f"StreamGemm.{self.version}.nupkg"
        packages = self.of_each_platform(f"bindings/csharp/nuget/{name}")
        folder.mkdir(parents=True)
        run(ROOT / "bindings/csharp/nuget/pack.py", "--join", folder / name, *packages)
        if (packages[0].parent.parent / "StreamGemm.pdb").exists():
            shutil.copy(self.build("build", f"bindings/csharp/nuget/StreamGemm.{self.version}.snupkg"), folder)
        else:
            print("tools/package: without StreamGemm.snupkg, as Mono has no Mono.Cecil 0.11 (Debian: libmono-cecil-private-cil), which writes its .pdb", flush=True)

    def wheel(self, folder):
        wheel.make(ROOT, folder, ["-Csetup-args=-Dcpp_link_args=-s", "-Csetup-args=-Dc_link_args=-s"])

    def cuda(self, folder):
        plugin = self.build("build-cuda", "lib/backends/cuda/libstreamgemm-cuda.so")
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        cuda_wheel.make(ROOT, plugin, project, self.version, folder)
        if (machine := os.uname().machine) not in PLATFORMS:
            raise SystemExit(f"tools/package: the CUDA plugin has no packages for {machine}")
        in_maven, in_nuget = PLATFORMS[machine]
        maven.cuda(plugin, in_maven, self.version, folder / "maven")
        run(ROOT / "bindings/csharp/nuget/pack.py", "--cuda", folder / f"StreamGemm.Cuda.{self.version}.nupkg", self.version, ROOT / "LICENSE", in_nuget, plugin)

    def tarball(self, folder):
        loader = importlib.machinery.SourceFileLoader("release", str(ROOT / "tools/release"))
        release = importlib.util.module_from_spec(importlib.util.spec_from_loader("release", loader))
        loader.exec_module(release)
        folder.mkdir(parents=True)
        (folder / f"streamgemm-{self.version}.tar.xz").write_bytes(release.archive(f"streamgemm-{self.version}/"))

    def make(self, kinds):
        if self.out.exists() and any(self.out.iterdir()) and not (self.out / MARK).exists():
            raise SystemExit(f"tools/package: {self.out} has other files, and folders in it are emptied for packages")
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / MARK).touch()
        shutil.rmtree(self.out / f"streamgemm-{self.version}", ignore_errors=True)
        for kind in kinds:
            folder = self.folder(kind)
            shutil.rmtree(folder, ignore_errors=True)
            getattr(self, kind)(folder)

    def folder(self, kind):
        return self.out / FOLDERS.get(kind, kind)


def limits(kinds, arm64=False):
    """(pattern, KiB) of each file that these kinds make."""
    text = SIZES.read_text().replace("VERSION", output(sys.executable, "tools/version.py"))
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    lines = list(dict(row[-2:] for row in rows if arm64 or row[0] != "--arm64").items())
    if "deb" in kinds:
        debian = (line.split() for line in DEBIAN_SIZES.read_text().splitlines() if not line.startswith("#"))
        lines += [(f"deb/{name}_*.deb", size) for name, size in debian if NVCC or name != "streamgemm-cuda"]
    folders = {FOLDERS.get(kind, kind) for kind in kinds}
    return [(pattern, int(size)) for pattern, size in lines if pattern.split("/")[0] in folders]


def table(out, kinds, arm64=False):
    """Prints each file's size beside its limit; whether all are there and none is larger."""
    good = True
    for pattern, limit in limits(kinds, arm64):
        files = sorted(out.glob(pattern))
        for file in files:
            size = -(-file.stat().st_size // 1024)
            good = good and size <= limit
            print(f"{size:6} KiB of {limit:5}  {file.relative_to(out)}{'' if size <= limit else ': too large'}")
        if not files and not pattern.endswith(".snupkg"):  # which some builds leave out
            good = False
            print(f"no file is {out / pattern}")
    return good


def same(first, second, kinds):
    folders = [(first.folder(kind), second.folder(kind)) for kind in kinds]
    differing = []
    for one, other in folders:
        names = [sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) for folder in (one, other)]
        differing += sorted(set(names[0]) ^ set(names[1])) + sum(filecmp.cmpfiles(one, other, set(names[0]) & set(names[1]), shallow=False)[1:], [])
    print(f"made twice: {', '.join(differing) + ' differ' if differing else 'the same'}")
    return not differing


def main(arguments):
    twice, arm64 = "--twice" in arguments, "--arm64" in arguments
    rest = [each for each in arguments if each not in ("--twice", "--arm64")]
    kinds = tuple(itertools.takewhile(lambda each: each in (*KINDS, "all"), rest))
    rest = rest[len(kinds) :]
    if not kinds or ("all" in kinds and len(kinds) > 1) or len(rest) > 1 or any(each.startswith("-") for each in rest):
        print(__doc__, file=sys.stderr)
        return 2
    if arm64 and not {"jar", "nupkg", "all"} & set(kinds):
        print(f"tools/package: --arm64 is not for {' and '.join(kinds)}", file=sys.stderr)
        return 2
    everything = kinds == ("all",)
    if everything:
        kinds = KINDS if NVCC else EVERYWHERE
    if output("git", "-c", "safe.directory=*", "status", "--porcelain"):
        print("tools/package: what is not committed is not packaged", flush=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", output("git", "-c", "safe.directory=*", "log", "-1", "--format=%ct"))
    packages = Packages(pathlib.Path(rest[0] if rest else ROOT / "build-artifacts"), arm64)
    packages.make(kinds)
    if everything:
        run(ROOT / "tools/package", "deb", *(["--cuda"] if NVCC else []), *(["--twice"] if twice else []), packages.folder("deb"))
    good = table(packages.out, (*kinds, "deb") if everything else kinds, arm64)
    if twice:
        os.environ["CCACHE_DISABLE"] = "1"  # it would give the first build's objects
        again = Packages(packages.out / "again/in_another_folder", arm64)
        again.make(kinds)
        good = same(packages, again, kinds) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
