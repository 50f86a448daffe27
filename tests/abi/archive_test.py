#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The static library: a program in C has all it needs of it, and its names clash with none of a program in C++.

usage: archive_test.py ARCHIVE INCLUDE EXAMPLES C-COMPILER... -- C++-COMPILER... -- LINK-ARGUMENTS...
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import public_api

ARCHIVE, INCLUDE, EXAMPLES, *REST = sys.argv[1:]
FIRST, SECOND = (i for i, word in enumerate(REST) if word == "--")
CC, CXX, LINK = REST[:FIRST], REST[FIRST + 1 : SECOND], REST[SECOND + 1 :]

# Names of the inside, as a program's own.
NAMESAKES = """
#include <streamgemm/streamgemm.h>
#include <cstdio>
namespace sg {
struct job { job(); int value; };
job::job() : value(7) {}
struct context { virtual int answer(); virtual ~context(); };
int context::answer() { return 42; }
context::~context() {}
bool log_message(int) { return true; }
struct error { virtual ~error(); };
error::~error() {}
}
int main() {
  sg::context own;
  sg::job job;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *context = nullptr;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4];
  desc.a = desc.b = desc.c = {nullptr, 2, 2, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  desc.a.data = a;
  desc.b.data = b;
  desc.c.data = c;
  options.device = "sim:h200";
  if (sg_context_create(&options, &context) != SG_STATUS_OK || sg_gemm(context, &desc, nullptr) != SG_STATUS_OK) return 1;
  if (sg_gemm(nullptr, &desc, nullptr) != SG_STATUS_INVALID_HANDLE) return 2;  // an exception of the inside
  sg_context_release(context);
  std::printf("%d %d %g %g %g %g\\n", own.answer(), job.value, c[0], c[1], c[2], c[3]);
}
"""


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Archive(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.program = pathlib.Path(temporary.name, "program")

    def test_only_public_functions_are_global(self):
        lines = [line.split() for line in output("nm", "-g", "--defined-only", ARCHIVE).splitlines()]
        strong = {line[2] for line in lines if len(line) == 3 and line[1] not in "VWu"}
        self.assertEqual({item.name for item in public_api.library_functions(f"{INCLUDE}/streamgemm") if item.exported}, strong)

    def test_a_program_in_c(self):
        output(*CC, "-std=c99", f"{EXAMPLES}/01_hello.c", "-I", INCLUDE, ARCHIVE, *LINK, "-o", self.program)
        self.assertNotIn("libstreamgemm", output("ldd", self.program))
        self.assertEqual("58 64\n139 154\n", output(self.program))

    def test_names_of_a_program(self):
        output(*CXX, "-std=c++17", "-x", "c++", "-", "-x", "none", "-I", INCLUDE, ARCHIVE, *LINK, "-o", self.program, input=NAMESAKES)
        self.assertEqual("42 7 19 22 43 50\n", output(self.program))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
