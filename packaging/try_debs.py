#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries Debian packages in a fresh minimal system of this machine's Debian release: each package alone finds all its libraries; of all
together no file is left after they are purged; their autopkgtests pass. Needs root, debootstrap, autopkgtest and the machine's mirror.
Mounts /proc inside: run it by `unshare --mount`, so that no mount is left.

usage: try_debs.py FOLDER-OF-PACKAGES SOURCE-TREE-WITH-DEBIAN
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

# What installing any package changes.
OWN_BY_DPKG = ("dev", "etc/ld.so.cache", "proc", "packages", "sys", "tmp", "run", "var/cache", "var/lib/apt", "var/lib/dpkg", "var/log")
ELF_FILES = """dpkg -L %s | while read -r file; do [ ! -f "$file" ] || ! head -c 4 "$file" | grep -q ELF || ldd "$file"; done"""


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class System:
    """A fresh one in `folder`, with /proc mounted; of this machine's `release`, or another of the same mirror. `packages`: its apt finds them."""

    def __init__(self, folder, packages=(), release=None):
        self.root = folder
        own = dict(re.findall(r'^(\w+)="?(.*?)"?$', pathlib.Path("/etc/os-release").read_text(), re.MULTILINE))["VERSION_CODENAME"]
        release = release or own
        sites = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages").splitlines()
        mirror = next((uri for uri, name, component in (site.split() for site in sites) if (name, component) == (own, "main")), None)
        if not mirror:
            raise SystemExit(f"apt's sources have no mirror of {own}")
        print(f"installing {release} from {mirror} into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        run("debootstrap", "--variant=minbase", release, folder, mirror)
        run("mount", "-t", "proc", "proc", folder / "proc")
        if packages:
            self.add(packages)
        self.call("apt-get", "update", "-q")

    def add(self, packages):
        repository = self.root / "packages"
        repository.mkdir()
        for package in packages:
            shutil.copy(package, repository)
        (repository / "Packages").write_text(subprocess.run(["dpkg-scanpackages", "-m", "."], cwd=repository, check=True, capture_output=True, text=True).stdout)
        (self.root / "etc/apt/sources.list.d/packages.list").write_text("deb [trusted=yes] file:/packages ./\n")
        (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")  # no services
        (self.root / "usr/sbin/policy-rc.d").chmod(0o755)

    def call(self, *command):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root"}
        return run("chroot", self.root, *command, env=environment)

    def apt_get(self, *arguments):
        return self.call("apt-get", "-q", "-y", "--no-install-recommends", *arguments)

    def remove(self):
        run("umount", self.root / "proc")
        shutil.rmtree(self.root)

    def files(self):
        found = set()
        for folder, folders, files in os.walk(self.root):
            inside = os.path.relpath(folder, self.root)
            folders[:] = [name for name in folders if os.path.normpath(os.path.join(inside, name)) not in OWN_BY_DPKG]
            found.update(os.path.normpath(os.path.join(inside, name)) for name in [*folders, *files])
        return {name for name in found if name not in OWN_BY_DPKG}


def main():
    folder, tree = map(pathlib.Path, sys.argv[1:])
    packages = sorted(path for path in folder.glob("*.deb") if "-dbgsym_" not in path.name)
    names = [path.name.split("_")[0] for path in packages]
    if not names:
        raise SystemExit(f"{folder} has no packages")
    system = System((folder / "system").resolve(), packages)
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

    done = subprocess.run(["autopkgtest", "--no-built-binaries", *packages, f"{tree}/", "--", "chroot", system.root], check=False)
    if done.returncode:
        raise SystemExit(f"autopkgtest: exit {done.returncode}")
    system.remove()


if __name__ == "__main__":
    main()
