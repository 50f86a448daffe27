# SPDX-License-Identifier: Apache-2.0
"""A fresh minimal Debian in a folder, by debootstrap and chroot: needs root, and a mirror in apt's sources. Its /proc is mounted: the program
that uses it is run by `unshare --mount`, so that no mount is left."""
import os
import pathlib
import re
import shutil
import subprocess

# What installing any package changes.
OWN_BY_DPKG = ("dev", "etc/ld.so.cache", "proc", "packages", "sys", "tmp", "run", "var/cache", "var/lib/apt", "var/lib/dpkg", "var/log")


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-8000:]}")
    return done.stdout


def own_release():
    return dict(re.findall(r'^(\w+)="?(.*?)"?$', pathlib.Path("/etc/os-release").read_text(), re.MULTILINE))["VERSION_CODENAME"]


class System:
    """`release`: a code name of Debian, which the mirror of this machine's release has, too; empty: this machine's."""

    def __init__(self, folder, release=""):
        self.root, release = folder, release or own_release()
        sites = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages").splitlines()
        mirror = next((uri for uri, name, component in (site.split() for site in sites) if (name, component) == (own_release(), "main")), None)
        if not mirror:
            raise SystemExit(f"apt's sources have no mirror of {own_release()}")
        print(f"installing {release} from {mirror} into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        run("debootstrap", "--variant=minbase", release, folder, mirror)
        run("mount", "-t", "proc", "proc", folder / "proc")
        (folder / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")  # no services
        (folder / "usr/sbin/policy-rc.d").chmod(0o755)

    def add_packages(self, packages):
        repository = self.root / "packages"
        repository.mkdir()
        for package in packages:
            shutil.copy(package, repository)
        (repository / "Packages").write_text(subprocess.run(["dpkg-scanpackages", "-m", "."], cwd=repository, check=True, capture_output=True, text=True).stdout)
        (self.root / "etc/apt/sources.list.d/packages.list").write_text("deb [trusted=yes] file:/packages ./\n")
        self.call("apt-get", "update", "-q")

    def call(self, *command, **more):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root"}
        return run("chroot", self.root, *command, env=environment | more)

    def apt_get(self, *arguments):
        return self.call("apt-get", "-q", "-y", "--no-install-recommends", *arguments)

    def files(self):
        found = set()
        for folder, folders, files in os.walk(self.root):
            inside = os.path.relpath(folder, self.root)
            folders[:] = [name for name in folders if os.path.normpath(os.path.join(inside, name)) not in OWN_BY_DPKG]
            found.update(os.path.normpath(os.path.join(inside, name)) for name in [*folders, *files])
        return {name for name in found if name not in OWN_BY_DPKG}

    def remove(self):
        run("umount", self.root / "proc")
        shutil.rmtree(self.root)
