#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Debian packages of the commit, twice, and tries them in a fresh Debian; the CUDA plugin's, too, where nvcc is; and all but that once
more in Debian 13; or the wheel for newer Pythons in a Debian that has one. That takes an hour and root: it is run with SG_SOAK=1 only, which
tools/test --soak sets, on a checkout on Debian.

usage: packages_test.py SOURCE-ROOT BUILD-DIRECTORY deb | wheel
"""
import os
import pathlib
import shutil
import subprocess
import sys

root, folder = map(pathlib.Path, sys.argv[1:3])
if os.environ.get("SG_SOAK") != "1" or os.geteuid() != 0 or not (root / ".git").exists() or "ID=debian\n" not in pathlib.Path("/etc/os-release").read_text():
    print("SG_SOAK is not 1, or this is not root on Debian with a checkout of git")
    sys.exit(77)
cuda = ["--cuda"] if shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin") else []
package = [root / "tools/package", "deb", "--try"]
commands = {"deb": [[*package, "--twice", *cuda, folder / "packages"], [*package, "--release", "trixie", folder / "packages-trixie"]],
            "wheel": [["unshare", "--mount", "--propagation", "private", root / "packaging/try_wheel.py", folder / "wheel"]]}
sys.exit(any(subprocess.run(command, check=False).returncode for command in commands[sys.argv[3]]))
