#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds Debian packages in a fresh system, of another release of Debian or for another architecture, and checks them with its Lintian, whose
errors and warnings fail. For another architecture it builds neither pages nor what is for all, and runs what is built in QEMU.
Run it by `unshare --mount`.

usage: build_debs.py FOLDER TREE RELEASE ARCHITECTURE    TREE, in FOLDER, has debian/; the packages are left in FOLDER; RELEASE, ARCHITECTURE:
                                                         empty: this machine's
environment: DEB_BUILD_OPTIONS, DEB_BUILD_PROFILES
"""
import os
import pathlib
import shutil
import sys

from debian_system import System

SCRIPT = """cd "/build/$1" && apt-get -q -y --no-install-recommends build-dep ./ && dpkg-buildpackage -us -uc -b && lintian --fail-on error,warning ../*.changes"""
CROSS = """cd "/build/$1" && apt-get -q -y --no-install-recommends -a "$2" build-dep ./ && dpkg-buildpackage -us -uc -B -a "$2" && lintian --fail-on error,warning ../*.changes"""


def main():
    folder, name, release, architecture = pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:]
    system = System(folder / "building", release)
    if architecture:
        system.call("dpkg", "--add-architecture", architecture)
        system.apt_get("update")
        system.apt_get("install", f"crossbuild-essential-{architecture}", "qemu-user")
    system.apt_get("install", "dpkg-dev", "lintian")
    shutil.copytree(folder / name, system.root / "build" / name, symlinks=True)
    options = {key: os.environ[key] for key in ("DEB_BUILD_OPTIONS", "DEB_BUILD_PROFILES") if key in os.environ}
    if architecture:
        options["DEB_BUILD_PROFILES"] = " ".join({"cross", "nocheck", "nodoc"} | set(options.get("DEB_BUILD_PROFILES", "").split()))
    print(system.call("sh", "-ec", CROSS if architecture else SCRIPT, "sh", name, architecture, **options))
    for path in (system.root / "build").iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    system.remove()


if __name__ == "__main__":
    main()
