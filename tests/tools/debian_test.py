#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/package would put into Debian packages, without making them: every installed file belongs to one package, the symbols file
has the library's names, the copyright file the licences of NOTICE.

usage: debian_test.py SOURCE-ROOT BUILD-DIRECTORY PREFIX
"""
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest

SOURCE, BUILD, PREFIX = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
DEBIAN, CUDA = SOURCE / "packaging/debian", SOURCE / "packaging/debian-cuda"
PLUGIN = "usr/lib/*/streamgemm/backend-*/libstreamgemm-cuda.so"  # of a source package of its own: nvcc is not free
OPTIONAL = ("usr/lib/*/libstreamgemm.a", "usr/share/doc/streamgemm/html", "usr/lib/*/cli/streamgemm", "usr/lib/*/libstreamgemm_csharp.so")  # by options of Meson
LICENCES = {"Apache License, Version 2.0": "Apache-2.0", "CC BY 4.0": "CC-BY-4.0"}  # as NOTICE and as Debian write them


def stanzas(path):
    """The fields of each stanza of a file in Debian's format."""
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE)
    return [{name: value.strip() for name, value in re.findall(r"^([\w-]+):((?:.*\n(?:[ \t].*\n)*))", part + "\n", re.MULTILINE)} for part in re.split(r"\n\n+", text.strip())]


def lines(path):
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def matches(path, pattern):
    """As dh_install: a pattern names files, or folders with all that is in them, and its star no slash."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = stanzas(DEBIAN / "control")
        cls.packages = [stanza["Package"] for stanza in cls.control[1:]]
        cls.soversion = subprocess.run([SOURCE / "tools/version.py", "--soversion"], capture_output=True, text=True, check=True).stdout.strip()

    def test_control(self):
        self.assertEqual(self.control[0]["Source"], "streamgemm")
        cuda = stanzas(CUDA / "control")
        self.assertEqual(cuda[0]["Maintainer"], self.control[0]["Maintainer"])
        self.assertEqual([stanza["Section"] for stanza in cuda], ["contrib/math", "contrib/libs"])
        for stanza in self.control[1:] + cuda[1:]:
            for field in ("Architecture", "Depends", "Description"):
                self.assertTrue(stanza.get(field), f"{stanza['Package']} has no {field}")
            for line in stanza["Description"].splitlines():
                self.assertLessEqual(len(line), 80, f"{stanza['Package']}: {line}")
        for library in ("libstreamgemm", "libstreamgemm-blas"):
            self.assertIn(library + self.soversion, self.packages, "the package's name has the soname's number")

    def test_addresses(self):
        urls = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["urls"]
        metadata = stanzas(DEBIAN / "upstream/metadata")[0]
        self.assertEqual((metadata["Repository-Browse"], metadata["Repository"]), (urls["Source"], urls["Source"] + ".git"))
        self.assertEqual((metadata["Changelog"], metadata["Documentation"]), (urls["Source"] + "/CHANGELOG.md", urls["Documentation"]))
        for folder in (DEBIAN, CUDA):
            self.assertIn(f"\n{urls['Homepage']}/releases/ streamgemm-", (folder / "watch").read_text())

    def test_files_are_named_by_packages(self):
        named = {path.name.rpartition(".")[0] for path in DEBIAN.iterdir() if path.suffix in (".install", ".postinst", ".prerm", ".doc-base", ".examples")}
        self.assertEqual(named, set(self.packages))
        self.assertEqual([line.split()[0] for line in lines(SOURCE / "packaging/debian_sizes.txt")],
                         self.packages + [stanza["Package"] for stanza in stanzas(CUDA / "control")[1:]])

    def test_every_installed_file_belongs_to_one_package(self):
        patterns = {package: lines(DEBIAN / f"{package}.install") for package in self.packages}
        patterns["not installed"] = lines(DEBIAN / "not-installed")
        used = set()
        for path in self.installed():
            owners = [(package, pattern) for package in patterns for pattern in patterns[package] if matches(path, pattern)]
            used.update(pattern for _, pattern in owners)
            if not matches(path, PLUGIN):
                self.assertEqual(len(owners), 1, f"{path} belongs to {owners}")
        for package, pattern in ((package, pattern) for package in patterns for pattern in patterns[package]):
            self.assertTrue(pattern in used or pattern in OPTIONAL, f"{package}: nothing that is installed is {pattern}")

    def installed(self):
        """The paths under a prefix of /usr, whatever that of the build is."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder], check=True)
            prefix = pathlib.Path(folder, PREFIX.lstrip("/"))
            for place, _, files in os.walk(folder):
                for name in files:
                    path = pathlib.Path(place, name)
                    inside = path.relative_to(prefix if path.is_relative_to(prefix) else folder).as_posix()
                    yield inside if inside.startswith("etc/") else f"usr/{inside}"

    def test_symbols(self):
        printed = subprocess.run([DEBIAN / "symbols.py", SOURCE], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(printed[0], f"libstreamgemm.so.{self.soversion} libstreamgemm{self.soversion} #MINVER#")
        exported = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", BUILD / "lib/api/libstreamgemm.so"], capture_output=True, text=True, check=True).stdout
        names = {name.replace("@@", "@") for name in re.findall(r"\S+$", exported, re.MULTILINE)}
        names = {name if "@" in name else f"{name}@{name}" for name in names}  # the node itself
        self.assertEqual({line.split()[0] for line in printed[2:]}, names)

    def test_copyright(self):
        copyright = stanzas(DEBIAN / "copyright")
        texts = {stanza["License"].splitlines()[0] for stanza in copyright if "Files" not in stanza and "License" in stanza}
        used = {stanza["License"] for stanza in copyright if "Files" in stanza}
        said = re.findall(r"licensed under\s+(?:the\s+)?(.+?)\s*(?:\(|,\s*https)", (SOURCE / "NOTICE").read_text(), re.IGNORECASE | re.DOTALL)
        self.assertEqual({LICENCES[licence] for licence in said}, used)
        self.assertEqual(texts, used)
        for stanza in copyright:
            for pattern in stanza.get("Files", "").split():
                self.assertTrue(any(SOURCE.glob(pattern)), f"no file is {pattern}")

    def test_autopkgtests(self):
        for test in stanzas(DEBIAN / "tests/control"):
            for name in test["Tests"].split():
                self.assertTrue(os.access(DEBIAN / "tests" / name, os.X_OK), name)
            needed = {package.strip() for package in test["Depends"].split(",")}
            self.assertTrue(needed & set(self.packages), f"{test['Tests']} tests no package")

    def test_usage(self):
        for arguments in ([], ["rpm"], ["deb", "--unknown"]):
            done = subprocess.run([SOURCE / "tools/package", *arguments], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr[:6]), (2, "usage:"), done)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
