#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Meson's summary names each part, and for each that is not built what to install. usage: summary_test.py SOURCE-FOLDER MESON..."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, *MESON = sys.argv[1:]
PARTS = {"CUDA plugin", "OpenBLAS in the cpu backend", "oneDNN in the cpu backend", "program streamgemm", "Python package",
         "Java package", "C# package", "tests", "site"}


class Summary(unittest.TestCase):
    def test_what_is_not_built_is_named(self):
        with tempfile.TemporaryDirectory() as temporary:
            absent = pathlib.Path(temporary, "absent.ini")
            programs = ("swig", "doxygen", "cmake")
            absent.write_text("[binaries]\n" + "".join(f"{name} = 'no-such-program'\n" for name in programs))
            command = [*MESON, "setup", "--native-file", absent, "-Dcuda=disabled", "-Dtests=disabled", "-Dlanguages=python,java",
                       f"{temporary}/build", SOURCE]
            # The one library that cannot be absent.
            json = [subprocess.run(["pkg-config", what, "nlohmann_json"], capture_output=True, text=True, check=True).stdout for what in ("--modversion", "--cflags")]
            pathlib.Path(temporary, "nlohmann_json.pc").write_text("Name: json\nDescription: json\nVersion: {}Cflags: {}".format(*json))
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  env={**os.environ, "PKG_CONFIG_LIBDIR": temporary, "PKG_CONFIG_PATH": ""})
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        said = dict(re.findall(r"^    (\S.*?) *: (\S.*)$", done.stdout.partition("  Built\n")[2].partition("\n\n")[0], re.MULTILINE))
        self.assertLessEqual(PARTS, set(said))
        self.assertEqual("no: -Dcuda=disabled", said["CUDA plugin"])
        self.assertEqual("no: -Dtests=disabled", said["tests"])
        self.assertIn("CLI11 (libcli11-dev)", said["program streamgemm"])
        self.assertIn("Doxygen (doxygen)", said["site"])
        self.assertEqual("no: not in -Dlanguages", said["C# package"])
        for package in ("Python package", "Java package"):
            self.assertRegex(said[package], r"^no: install .*SWIG 4.1 or newer \(swig\)")


    def test_other_targets_are_refused(self):
        with tempfile.TemporaryDirectory() as temporary:
            cross = pathlib.Path(temporary, "cross.ini")
            cross.write_text("[host_machine]\nsystem = 'linux'\ncpu_family = 's390x'\ncpu = 's390x'\nendian = 'big'\n"
                             "[binaries]\nc = 'cc'\ncpp = 'c++'\n[properties]\nneeds_exe_wrapper = false\n")
            done = subprocess.run([*MESON, "setup", "--cross-file", cross, f"{temporary}/build", SOURCE], capture_output=True, text=True, check=False)
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertIn("StreamGEMM needs a 64-bit little-endian target; this is s390x, big-endian, with pointers of 8 bytes", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
