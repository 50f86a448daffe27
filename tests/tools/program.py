# SPDX-License-Identifier: Apache-2.0
"""What the tests of the program `streamgemm` share. The program is the first argument of each."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import npy

PROGRAM = sys.argv[1]
OK, FAILED, USAGE, NO_DEVICE, VERIFICATION = range(5)


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, *arguments, exits=OK):
        done = subprocess.run([PROGRAM, *map(str, arguments)], text=True, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, exits, f"{arguments}\n{done.stdout}\n{done.stderr}")
        if exits == OK:
            self.assertEqual(done.stderr, "", "nothing on stderr when all went well")
        elif exits != VERIFICATION:
            self.assertEqual(done.stdout, "", "errors go to stderr")
        if exits != OK:
            self.assertTrue(done.stderr.strip())
        return done

    def json_of(self, *arguments):
        return json.loads(self.run_program(*arguments, "--json").stdout)

    def complaint(self, *arguments, exits=USAGE):
        return self.run_program(*arguments, exits=exits).stderr

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def matrix(self, name, rows, cols, descr="<f4", order=False, version=1, seed=1):
        chance = random.Random(seed)
        number = lambda: chance.randint(-4, 4)
        values = [[complex(number(), number()) if "c" in descr else number() for _ in range(cols)] for _ in range(rows)]
        return self.file(name, npy.encode(values, descr, order, version)), values
