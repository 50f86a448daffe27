#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds Debian packages in a fresh system of another release of Debian, and checks them with its Lintian, whose errors and warnings fail.
Run it by `unshare --mount`.

usage: build_debs.py FOLDER TREE RELEASE    TREE, in FOLDER, has debian/; the packages are left in FOLDER
environment: DEB_BUILD_OPTIONS, DEB_BUILD_PROFILES
"""
import os
import pathlib
import shutil
import sys

from debian_system import System

SCRIPT = """cd "/build/$1" && apt-get -q -y --no-install-recommends build-dep ./ && dpkg-buildpackage -us -uc -b && lintian --fail-on error,warning ../*.changes"""


def main():
    folder, name, release = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    system = System(folder / "building", release)
    system.apt_get("install", "dpkg-dev", "lintian")
    shutil.copytree(folder / name, system.root / "build" / name, symlinks=True)
    options = {key: os.environ[key] for key in ("DEB_BUILD_OPTIONS", "DEB_BUILD_PROFILES") if key in os.environ}
    print(system.call("sh", "-ec", SCRIPT, "sh", name, **options))
    for path in (system.root / "build").iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    system.remove()


if __name__ == "__main__":
    main()
