#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries Debian packages in a fresh minimal system: each package alone finds all its libraries; of all together no file is left after they
are purged; their autopkgtests pass. Needs autopkgtest. Run it by `unshare --mount`.

usage: try_debs.py FOLDER-OF-PACKAGES RELEASE SOURCE-TREE-WITH-DEBIAN...    RELEASE: of Debian; empty: this machine's
"""
import pathlib
import re
import subprocess
import sys

from debian_system import System

ELF_FILES = """dpkg -L %s | while read -r file; do [ ! -f "$file" ] || ! head -c 4 "$file" | grep -q ELF || ldd "$file"; done"""


def main():
    folder, release, trees = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    packages = sorted(path for path in folder.glob("*.deb") if "-dbgsym_" not in path.name)
    names = [path.name.split("_")[0] for path in packages]
    if not names:
        raise SystemExit(f"{folder} has no packages")
    system = System((folder / "system").resolve(), release)
    system.add_packages(packages)
    for name in names:
        system.apt_get("install", name)
        missing = [line.strip() for line in system.call("sh", "-c", ELF_FILES % name).splitlines() if "not found" in line]
        if missing:
            raise SystemExit(f"{name} does not depend on {', '.join(missing)}")
        system.apt_get("autoremove", "--purge", name)
        print(f"{name}: installed alone and purged", flush=True)

    planned = re.findall(r"^Inst (\S+)", system.apt_get("install", "--simulate", *names), re.MULTILINE)
    system.apt_get("install", *(name for name in planned if name not in names))
    before = system.files()
    system.apt_get("install", *names)
    added = system.files() - before
    system.apt_get("purge", *names)
    left = system.files() ^ before
    if left or not added:
        raise SystemExit(f"purged, and left or removed: {', '.join(sorted(left)) or 'nothing was installed'}")
    print(f"all: {len(added)} files installed, none left when purged", flush=True)

    for tree in trees:
        done = subprocess.run(["autopkgtest", "--no-built-binaries", *packages, f"{tree}/", "--", "chroot", system.root], check=False)
        if done.returncode:
            raise SystemExit(f"autopkgtest of {tree}: exit {done.returncode}")
    system.remove()


if __name__ == "__main__":
    main()
