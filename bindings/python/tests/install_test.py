# SPDX-License-Identifier: Apache-2.0
"""`meson install` puts the package on its Python's path. usage: install_test.py BUILD-FOLDER MESON..."""

import json
import os
import pathlib
import site
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "streamgemm"))
from install_dir import folder  # noqa: E402

BUILD, MESON = sys.argv[1], sys.argv[2:]


class Installed(unittest.TestCase):
    def introspect(self, what):
        done = subprocess.run([*MESON, "introspect", what, BUILD], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def test_the_folder(self):
        options = {option["name"]: option["value"] for option in self.introspect("--buildoptions")}
        searched = [*sys.path, *site.getsitepackages(), site.getusersitepackages()]
        if not any(path.startswith(os.path.join(options["prefix"], "")) for path in searched):
            self.skipTest("this Python looks nowhere below the prefix")
        where = {to for to in self.introspect("--installed").values() if "/streamgemm/_" in to and "packages" in to}
        self.assertTrue(any(to.endswith("/__init__.py") for to in where) and any("/_native." in to for to in where))
        for to in where:
            self.assertIn(os.path.dirname(os.path.dirname(to)), searched)

    def test_the_choice(self):
        debian = ["/usr/lib/python311.zip", "/usr/lib/python3.11", "/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages"]
        self.assertEqual(folder("/usr/local", "lib/python3/dist-packages", debian), "/usr/local/lib/python3.11/dist-packages")
        self.assertIsNone(folder("/usr", "lib/python3/dist-packages", debian))
        self.assertIsNone(folder("/usr", "/usr/lib/python3/dist-packages", debian))
        self.assertIsNone(folder("/opt/sg", "lib/python3/dist-packages", debian))
        self.assertIsNone(folder("/usr/local", "lib/python3.11/dist-packages", debian))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
