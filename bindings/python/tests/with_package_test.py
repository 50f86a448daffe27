# SPDX-License-Identifier: Apache-2.0
"""Runs an example with the data of a package; skipped where that is not installed.
usage: with_package_test.py EXAMPLE PACKAGE [ARGUMENT...]    PACKAGE: a package's folder, as PyPI installs it, or DEBIAN-PACKAGE:FOLDER"""

import os
import pathlib
import subprocess
import sys

_, example, package, *arguments = sys.argv
debian_package, _, folder = package.rpartition(":")
places = [*filter(None, [os.environ.get("SG_TEST_PACKAGES")]), *sys.path]
folders = [found for place in places if (found := pathlib.Path(place) / folder).is_dir()]
if not folders:
    print(f"{debian_package or folder} ({'Debian' if debian_package else 'PyPI'}) is not installed")
    sys.exit(77)
sys.exit(subprocess.run([sys.executable, example, folders[0], *arguments], check=False, timeout=600).returncode)
