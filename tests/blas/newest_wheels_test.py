#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The newest wheels of NumPy and SciPy, which take a later Python than Debian 12 has: suites_test.py in a fresh Debian 13. With SG_SOAK=1, as root;
reads the mirror of this machine's Debian and PyPI.

usage: newest_wheels_test.py FOLDER-OF-THE-LIBRARIES LIBSTREAMGEMM SOURCE-FOLDER
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LIBRARIES, LIBRARY, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
INSIDE = "--inside" in sys.argv


def try_wheels(folder):
    sys.path.insert(0, str(SOURCE / "packaging"))
    from debian_system import System

    system = System(folder / "system", release="trixie")
    system.apt_get("install", "python3-pip", "libstdc++6", "ca-certificates")
    for name in ("etc/ssl/certs/ca-certificates.crt", "etc/resolv.conf", "etc/pip.conf"):  # what this machine trusts, and where it asks
        if (pathlib.Path("/") / name).exists():
            shutil.copyfile(pathlib.Path("/") / name, system.root / name)
    system.call("pip", "install", "--quiet", "--target", "/wheels/numpy_wheel", "numpy", "scipy", "pytest", "hypothesis")
    for library, name in ((LIBRARIES / "libstreamgemm-blas.so.1", "libstreamgemm-blas.so.1"), (LIBRARY, "libstreamgemm.so.1")):
        shutil.copyfile(library, system.root / "usr/lib/x86_64-linux-gnu" / name)
    system.call("ldconfig")
    shutil.copytree(SOURCE / "tests/blas", system.root / "tests")
    print(system.call("python3", "/tests/suites_test.py", "/usr/lib/x86_64-linux-gnu", SG_TEST_PACKAGES="/wheels", SG_SOAK="1"))
    print(system.call("python3", "-c", "import importlib.metadata as of, sys; sys.path.insert(0, '/wheels/numpy_wheel'); print(*(f'{each} {of.version(each)}' for each in ('numpy', 'scipy')))"))
    system.remove()


if __name__ == "__main__":
    if os.environ.get("SG_SOAK") != "1" or os.geteuid() != 0 or not shutil.which("debootstrap"):
        print("skipped: needs SG_SOAK=1, root and debootstrap")
        sys.exit(77)
    if not INSIDE:
        sys.exit(subprocess.run(["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv, "--inside"], check=False).returncode)
    with tempfile.TemporaryDirectory() as created:
        try_wheels(pathlib.Path(created).resolve())
