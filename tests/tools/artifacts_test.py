#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/package makes the archive of a commit, and fails for a file that is missing, above its size or another in a second build. The packages of
the languages have tests of their own. Without a checkout of git the archive is not made.

usage: artifacts_test.py SOURCE-ROOT
"""
import contextlib
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "packaging"))
sys.dont_write_bytecode = True
import artifacts  # noqa: E402


class Artifacts(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)

    def table(self, *kinds):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            good = artifacts.table(self.folder, kinds)
        return good, printed.getvalue()

    def write(self, name, kibibytes):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(kibibytes << 10))

    def test_sizes(self):
        [(name, limit)] = artifacts.limits(["tarball"])
        self.assertEqual(self.table("tarball"), (False, f"no file is {self.folder}/{name}\n"))
        self.write(name, limit)
        self.assertEqual(self.table("tarball"), (True, f"{limit:6} KiB of {limit:5}  {name}\n"))
        self.write(name, limit + 1)
        self.assertEqual(self.table("tarball"), (False, f"{limit + 1:6} KiB of {limit:5}  {name}: too large\n"))

    def test_symbols_are_left_out_without_a_pdb(self):
        made = self.folder / "bindings/csharp/nuget"
        made.mkdir(parents=True)
        packages = artifacts.Packages(self.folder)
        names = [f"StreamGemm.{packages.version}.{kind}" for kind in ("nupkg", "snupkg")]
        zipfile.ZipFile(made / names[0], "w").close()

        def build(_, target):
            self.assertTrue((self.folder / target).exists(), f"ninja has no target {target}")
            return self.folder / target

        packages.build = build
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            packages.nupkg(self.folder / "nupkg")
        self.assertIn("without StreamGemm.snupkg, as Mono has no Mono.Cecil", printed.getvalue())
        self.assertEqual([path.name for path in (self.folder / "nupkg").iterdir()], names[:1])
        self.assertTrue(self.table("nupkg")[0])
        (made.parent / "StreamGemm.pdb").touch()
        (made / names[1]).touch()
        packages.nupkg(self.folder / "both")
        self.assertEqual(sorted(path.name for path in (self.folder / "both").iterdir()), names)

    def test_every_kind_has_limits(self):
        for kind in (*artifacts.KINDS, "deb"):
            self.assertTrue(artifacts.limits([kind]), kind)

    def test_two_builds(self):
        packages = [artifacts.Packages(self.folder / name) for name in ("one", "other")]
        for name in ("one", "other"):
            self.write(f"{name}/maven/a.jar", 1)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertTrue(artifacts.same(*packages, ["jar"]))
            self.write("other/maven/a.jar", 2)
            self.write("one/maven/b.jar", 1)
            self.assertFalse(artifacts.same(*packages, ["jar"]))
        self.assertEqual(printed.getvalue(), "made twice: the same\nmade twice: b.jar, a.jar differ\n")

    def run_package(self, *arguments):
        return subprocess.run([SOURCE / "tools/package", *arguments], capture_output=True, text=True, check=False)

    def test_usage(self):
        for arguments in (["jar", "--unknown"], ["all", "one", "two"], ["all", "jar"], ["tarball", "all"], ["jar", "folder", "nupkg"]):
            done = self.run_package(*arguments)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("usage: artifacts.py all", done.stderr)

    def test_other_files_stay(self):
        self.write("tarball/mine", 1)
        with self.assertRaisesRegex(SystemExit, "has other files"):
            artifacts.Packages(self.folder).make(["tarball"])
        self.assertTrue((self.folder / "tarball/mine").exists())

    def test_arm64_is_for_native_code(self):
        done = self.run_package("tarball", "--arm64")
        self.assertEqual((done.returncode, done.stderr), (2, "tools/package: --arm64 is not for tarball\n"))
        done = self.run_package("tarball", "wheel", "--arm64")
        self.assertEqual((done.returncode, done.stderr), (2, "tools/package: --arm64 is not for tarball and wheel\n"))

    @unittest.skipUnless((SOURCE / ".git").exists(), "no checkout of git")
    def test_the_archive(self):
        done = self.run_package("tarball", self.folder)
        self.assertEqual(done.returncode, 0, done)
        [path] = (self.folder / "tarball").iterdir()
        with tarfile.open(path) as archive:
            self.assertIn(f"{path.name.removesuffix('.tar.xz')}/meson.build", archive.getnames())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
