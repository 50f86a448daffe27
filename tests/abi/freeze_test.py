#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A release can be frozen: the record of today's interface holds for today's headers and not for headers that break it, and the
recorded program runs with the library.

usage: freeze_test.py LIBRARY INCLUDE C-COMPILER...
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import abi_dump
import freeze
import public_api

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY, INCLUDE, *COMPILER = sys.argv[1:]


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


class Freeze(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        done = run(sys.executable, HERE / "freeze.py", "--into", self.folder, "--", *COMPILER)
        self.assertEqual(0, done.returncode, done)
        self.frozen = self.folder / "frozen-{}.{}".format(*abi_dump.version_of(INCLUDE))

    def changed(self, *changes):
        """Today's headers with other text: (header, old, new)."""
        include = self.folder / "include"
        shutil.rmtree(include, ignore_errors=True)
        shutil.copytree(INCLUDE, include)
        for header, old, new in changes:
            path = include / "streamgemm" / header
            self.assertIn(old, path.read_text())
            path.write_text(path.read_text().replace(old, new))
        return include

    def check_abi(self, include):
        return run(sys.executable, HERE / "check_abi.py", self.frozen, include, *COMPILER)

    def test_the_program_runs(self):
        program = self.folder / "program"
        done = run(*COMPILER, "-std=c99", "-I", self.frozen, self.frozen / "program.c", LIBRARY, f"-Wl,-rpath,{pathlib.Path(LIBRARY).parent}", "-o", program)
        self.assertEqual(0, done.returncode, done.stderr)
        for device in ("cpu", "sim:h200"):
            done = run(program, device)
            self.assertEqual((0, ""), (done.returncode, done.stderr), device)

    def test_the_program_uses_each_struct_that_may_grow(self):
        text = (self.frozen / "program.c").read_text()
        items = public_api.parse_folder(self.frozen / "streamgemm")
        macros = {item.name for item in items if item.kind == "macro"}
        sized = {item.text.partition(":")[0] for item in items if item.kind == "field" and item.name == "struct_size"}
        initial = {f"{struct.upper()}_INIT" for struct in sized} & macros
        self.assertGreater(len(initial), 50)
        self.assertEqual(set(), {macro for macro in initial if macro not in text})

    def test_the_record_holds(self):
        self.assertEqual(0, self.check_abi(INCLUDE).returncode)

    def test_each_change_of_a_header_is_reported(self):
        for header, old, new, named in [
            ("job.h", "int64_t timeout_ns;", "int32_t timeout_ns;", "timeout_ns"),
            ("types.h", "SG_MEMORY_PINNED = 2", "SG_MEMORY_PINNED = 4", "SG_MEMORY_PINNED"),
            ("graph.h", "sg_graph_update(sg_graph *graph, int32_t index", "sg_graph_update(sg_graph *graph, int64_t index", "sg_graph_update"),
            ("queue.h", "char message[240];", "char message[256];", "sg_completion"),
            ("memory.h", "SG_API sg_status sg_host_free(", "SG_API sg_status sg_host_release(", "sg_host_free"),
            # Compatible, but not in the record of this very version.
            ("types.h", "SG_MEMORY_PEER = 4 ", "SG_MEMORY_PEER = 4, /**< . */\n  SG_MEMORY_NEW = 5 ", "SG_MEMORY_NEW"),
        ]:
            done = self.check_abi(self.changed((header, old, new)))
            self.assertEqual(1, done.returncode, (header, done))
            self.assertIn(named, done.stderr)
            self.assertIn("freeze.py", done.stderr)

    def test_the_next_release_may_add(self):
        major, minor = abi_dump.version_of(INCLUDE)
        earlier = [HERE / f"frozen-{release}" for release in freeze.releases() if release != f"{major}.{minor}"]
        newer = ("version.h", f"#define SG_VERSION_MINOR {minor}", f"#define SG_VERSION_MINOR {minor + 1}")
        function = ("version.h", "SG_END_DECLS\n", "/** Adds. Never blocks. Any thread.{} */\nSG_API void sg_added(void);\nSG_END_DECLS\n")
        for note, expected in ((f" Since {major}.{minor + 1}.", 0), ("", 1), (f" Since {major}.{minor}.", 1)):
            include = self.changed(newer, (*function[:2], function[2].format(note)))
            self.assertEqual(0, self.check_abi(include).returncode)
            done = run(sys.executable, HERE / "check_docs.py", include / "streamgemm", *earlier, self.frozen)
            self.assertEqual((expected, expected == 1), (done.returncode, "sg_added" in done.stderr), (note, done))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
