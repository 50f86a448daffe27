#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel for Python 3.12 and every later version of the commit that is checked out, and tries it, in a fresh Debian 13, whose Python is
3.13. Needs root, debootstrap, the mirror of this machine's Debian and PyPI. Mounts /proc inside: run it by `unshare --mount`, so that no mount is left.

usage: try_wheel.py FOLDER     for the wheel
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from debian_system import System

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEEDS = ["g++", "meson", "ninja-build", "pkg-config", "swig", "python3-dev", "python3-venv", "nlohmann-json3-dev", "libopenblas-pthread-dev", "libdnnl-dev",
         "ca-certificates"]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    system = System(pathlib.Path(tempfile.mkdtemp(dir=folder)).resolve() / "system", release="trixie")
    system.apt_get("install", *NEEDS)
    # What this machine trusts, and where it asks.
    for name in ("etc/ssl/certs/ca-certificates.crt", "etc/resolv.conf", "etc/pip.conf"):
        if (pathlib.Path("/") / name).exists():
            shutil.copyfile(pathlib.Path("/") / name, system.root / name)
    system.call("mkdir", "/source", "/wheel")
    archive = subprocess.run(["git", "-c", "safe.directory=*", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", system.root / "source"], input=archive, check=True)
    print("building the wheel", flush=True)
    system.call("python3", "/source/packaging/wheel.py", "/source", "/wheel", "-Csetup-args=-Dcpp_link_args=-s", "-Csetup-args=-Dc_link_args=-s")
    [wheel] = (system.root / "wheel").glob("*.whl")
    if not re.search("-cp312-abi3-manylinux_", wheel.name):
        raise SystemExit(f"{wheel.name} is not for Python 3.12 and later ones")
    system.call("python3", "-m", "venv", "/try")
    for packages in ([f"/wheel/{wheel.name}"], ["numpy"]):
        system.call("/try/bin/pip", "install", "--quiet", *packages)
        system.call("/try/bin/python", "-m", "streamgemm.selftest", "cpu", "sim:h200")
    shutil.copy(wheel, folder)
    print(f"{wheel.name}, {wheel.stat().st_size >> 10} KiB: passed", flush=True)
    system.remove()


if __name__ == "__main__":
    main()
