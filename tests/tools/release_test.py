#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/release makes the same archive, checksums and list of dependencies of the same commit, and refuses commits that are no release.
It is run on a copy of the checkout, but for its records and examples; without a checkout of git that is skipped.

usage: release_test.py SOURCE-ROOT
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1])
FILES = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=SOURCE, capture_output=True, text=True, check=False)
ENVIRONMENT = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", GIT_AUTHOR_DATE="1000000000 +0000", GIT_COMMITTER_DATE="1000000000 +0000",
                   **{f"GIT_{who}_{what}": "nobody@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")})


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        cls.root = pathlib.Path(cls.made.name, "checkout")
        for name in FILES.stdout.split("\0"):
            if (SOURCE / name).is_file() and not name.startswith(("bench/", "examples/", "docs/traces/")):
                (cls.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(SOURCE / name, cls.root / name)
        cls.version = cls.run_in(cls.root, "tools/version.py").stdout.strip()
        cls.minor = cls.version.rpartition(".")[0]
        changes = cls.root / "CHANGELOG.md"  # the section of the coming version may be another one's
        changes.write_text(re.sub(r"^## .*$", f"## {cls.version}", changes.read_text(), count=1, flags=re.MULTILINE))
        cls.run_in(cls.root, "git", "init", "-q")
        shutil.rmtree(cls.root / f"tests/abi/frozen-{cls.minor}", ignore_errors=True)
        cls.commit("without a frozen interface")
        cls.unfrozen = cls.git("rev-parse", "HEAD")
        cls.run_in(cls.root, sys.executable, "-B", "tests/abi/freeze.py")
        cls.commit("a release")
        cls.release = cls.git("rev-parse", "HEAD")
        cls.files = pathlib.Path(cls.made.name, "files")
        cls.done = cls.make(cls.files)

    def setUp(self):
        self.git("reset", "-q", "--hard", self.release)
        self.git("clean", "-qfd")

    @staticmethod
    def run_in(folder, *command):
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=ENVIRONMENT, check=False)

    @classmethod
    def git(cls, *arguments):
        done = cls.run_in(cls.root, "git", *arguments)
        assert done.returncode == 0, done
        return done.stdout.strip()

    @classmethod
    def commit(cls, subject):
        cls.git("add", "-A")
        cls.git("commit", "-q", "-m", subject)

    def edit(self, name, old, new):
        path = self.root / name
        self.assertIn(old, path.read_text())
        path.write_text(path.read_text().replace(old, new, 1))
        self.commit("a change")

    @classmethod
    def make(cls, folder, version=None, root=None):
        return cls.run_in(root or cls.root, "tools/release", version or cls.version, str(folder))

    @staticmethod
    def contents(folder):
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    def test_the_files(self):
        self.assertEqual(0, self.done.returncode, self.done)
        name = f"streamgemm-{self.version}"
        self.assertEqual({f"{name}.tar.xz", f"{name}.spdx.json", "SHA256SUMS"}, set(self.contents(self.files)))
        self.assertEqual(0, self.run_in(self.files, "sha256sum", "--strict", "-c", "SHA256SUMS").returncode)
        with tarfile.open(self.files / f"{name}.tar.xz") as archive:
            members = archive.getmembers()
            commit = archive.extractfile(f"{name}/tools/streamgemm/archived_commit.txt").read().decode()
        self.assertEqual(f"{self.release}\n", commit)
        self.assertEqual({1000000000}, {member.mtime for member in members})
        self.assertEqual(set(self.git("ls-files").splitlines()), {member.name.removeprefix(f"{name}/") for member in members if not member.isdir()})
        for command in ("export SOURCE_DATE_EPOCH=1000000000\n", f"git tag -s v{self.version} ", "gpg "):
            self.assertIn(f"\n{command}", self.done.stdout)
        self.assertEqual("", self.git("tag"))

    def test_the_list_of_dependencies(self):
        document = json.loads(self.contents(self.files)[f"streamgemm-{self.version}.spdx.json"])
        packages = {package["SPDXID"]: package for package in document["packages"]}
        self.assertEqual(len(packages), len(document["packages"]))
        rows = [line for line in (self.root / "docs/dependencies.md").read_text().splitlines() if line.startswith("| ")]
        self.assertEqual(len(rows) - 1, len(packages) - 1)  # the heading; the source
        kinds = {packages[each["spdxElementId"]]["name"]: each["relationshipType"] for each in document["relationships"][1:]}
        self.assertEqual("BUILD_TOOL_OF", kinds["Meson, Ninja"])
        self.assertEqual("OPTIONAL_DEPENDENCY_OF", kinds["OpenBLAS (libopenblas-pthread-dev)"])
        self.assertEqual("TEST_DEPENDENCY_OF", kinds["GoogleTest (libgtest-dev)"])
        self.assertEqual("DEPENDENCY_OF", kinds["nlohmann/json (nlohmann-json3-dev)"])
        self.assertIn(packages["SPDXRef-streamgemm"]["checksums"][0]["checksumValue"], document["documentNamespace"])
        for identity in packages:
            self.assertRegex(identity, r"^SPDXRef-[A-Za-z0-9.-]+$")

    def test_the_same_commit_gives_the_same_bytes(self):
        elsewhere, again = pathlib.Path(self.made.name, "elsewhere"), pathlib.Path(self.made.name, "again")
        self.assertEqual(0, self.run_in(self.root, "git", "clone", "-q", self.root, elsewhere).returncode)
        self.assertEqual(0, self.make(again, root=elsewhere).returncode)
        self.assertEqual(self.contents(self.files), self.contents(again))

    def refused(self, why, version=None):
        nothing = pathlib.Path(self.made.name, "nothing")
        done = self.make(nothing, version)
        self.assertEqual((1, False), (done.returncode, nothing.exists()), done)
        self.assertIn(why, done.stderr)

    def test_a_changed_tree(self):
        (self.root / "README.md").write_text("changed\n")
        self.refused("among them README.md")
        self.git("checkout", "-q", "README.md")
        (self.root / "stray").touch()
        self.refused("among them stray")

    def test_another_version(self):
        self.refused(f"version.h states {self.version}, not 99.0.0", "99.0.0")
        for wrong in ("1.0", "v1.0.0", "1.0.0-rc1"):
            self.refused("usage: tools/release VERSION", wrong)

    def test_the_changelog(self):
        self.edit("CHANGELOG.md", f"## {self.version}", "## Coming")
        self.refused(f"CHANGELOG.md is Coming, not {self.version}")

    def test_a_tag(self):
        self.git("tag", f"v{self.version}")
        self.addCleanup(self.git, "tag", "-d", f"v{self.version}")
        self.refused(f"the tag v{self.version} exists")

    def test_the_frozen_interface(self):
        if not self.version.endswith(".0"):
            self.skipTest("a correction does not freeze the interface")
        self.git("reset", "-q", "--hard", self.unfrozen)
        self.refused(f"frozen-{self.minor} is missing")
        self.git("reset", "-q", "--hard", self.release)
        self.edit("include/streamgemm/version.h", "SG_END_DECLS\n", "SG_API void sg_late(void);\nSG_END_DECLS\n")
        self.refused("is not what tests/abi/freeze.py writes: abi.txt, streamgemm/version.h")


if FILES.returncode != 0:
    print(f"no checkout: {FILES.stderr.strip()}")
    sys.exit(77)
unittest.main(argv=sys.argv[:1])
