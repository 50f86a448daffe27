#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GEMMs under the limits of a process: address space, data, stacks, threads. Each run ends by itself, at once, with its GEMMs
computed or with SG_STATUS_OUT_OF_MEMORY. limits_test.py PROGRAM."""
import os
import pwd
import resource
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
MIB = 1 << 20


class Limits(unittest.TestCase):
    def run_under(self, kind, value, device, **how):
        def limit():
            resource.setrlimit(kind, (value, value))

        done = subprocess.run([PROGRAM, device], text=True, capture_output=True, timeout=300, preexec_fn=limit, **how)
        self.assertEqual((done.returncode, done.stderr), (0, ""), f"limit {value} on {device}: {done.stdout}")
        return done.stdout

    def sweep(self, kind, device, values):
        outcomes = [self.run_under(kind, value * MIB, device) for value in values]
        self.assertIn("done", outcomes[-1], "the largest limit is enough")
        return outcomes

    def test_address_space(self):
        self.assertIn("OUT_OF_MEMORY", self.sweep(resource.RLIMIT_AS, "cpu", [*range(150, 900, 30), 20000])[0])
        self.sweep(resource.RLIMIT_AS, "sim:h200", [*range(300, 900, 100), 20000])

    def test_data(self):
        self.assertIn("OUT_OF_MEMORY", self.sweep(resource.RLIMIT_DATA, "cpu", [*range(60, 700, 30), 20000])[0])

    def test_stacks(self):
        for device in ("cpu", "sim:h200"):
            for kib in (64, 128, 1024):
                self.assertIn("done", self.run_under(resource.RLIMIT_STACK, kib << 10, device))

    @unittest.skipIf(os.getuid() != 0, "root alone may start a program as nobody, who has no other process")
    def test_threads(self):
        nobody = pwd.getpwnam("nobody")
        who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": "/"}
        try:
            subprocess.run([PROGRAM], timeout=300, **who)
        except PermissionError:
            self.skipTest("nobody may not read this folder")
        for count in range(8):
            for device in ("cpu", "sim:h200"):
                self.run_under(resource.RLIMIT_NPROC, count, device, **who)
        self.assertIn("done", self.run_under(resource.RLIMIT_NPROC, 4096, "cpu", **who))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
