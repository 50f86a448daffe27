#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which CPU BLAS the drop-in BLAS finds for each name, and what it says when there is none.

usage: resolution_test.py FOLDER-OF-THE-LIBRARIES FOLDER-OF-FAKE-LIBRARIES
"""
import pathlib
import signal
import sys

from dropin import NETLIB, Dropin, run

FAKES = pathlib.Path(sys.argv.pop(2))
# The device computes nothing: each call goes to the CPU BLAS, and `number` gives the mark of the fake one.
CPU = {"SG_BLAS": "0"}
NUMBER = f"""
def load(name, mode=os.RTLD_LOCAL):
    return ctypes.CDLL("{FAKES}/libfake-" + name + ".so", mode=mode | os.RTLD_NOW)
def number(name):
    a, b, c = operands(2, 2, 2)
    gemm(name, a, b, c)
    return c[0, 0]
"""


class Resolution(Dropin):
    def said(self, code, variables=(), **options):
        return self.child(NUMBER + code, CPU | dict(variables), **options)

    def test_a_plugins_own_library(self):
        self.assertEqual(self.said('load("one"); print(number("scipy_cblas_dgemm64_"))').stdout, "1.0\n")

    def test_two_plugins_with_libraries_of_their_own(self):
        said = self.said('load("one"); load("two"); print(number("scipy_cblas_dgemm"), number("scipy_cblas_dgemm64_"))')
        self.assertEqual(said.stdout, "2.0 1.0\n")

    def test_another_dispatcher_is_passed_over(self):
        self.assertEqual(self.said('load("lbt"); load("one"); print(number("scipy_cblas_dgemm64_"))').stdout, "1.0\n")
        self.assertEqual(self.said('load("flexiblas"); load("two"); print(number("scipy_cblas_dgemm"))').stdout, "2.0\n")

    def test_a_second_drop_in_blas_is_passed_over(self):
        said = self.said("""
            import ctypes
            first = ctypes.CDLL(sys.argv[1], mode=os.RTLD_GLOBAL)
            print(multiplies("cblas_dgemm"))
            """.replace("\n            ", "\n").replace("sys.argv[1]", repr(str(pathlib.Path(sys.argv[1]) / "libblas.so.3"))))
        self.assertEqual(said.stdout, "True\n")

    def test_no_cpu_blas(self):
        said = self.said('number("scipy_cblas_dgemm64_")', exits=-signal.SIGABRT)
        self.assertEqual(said.stderr.count("\n"), 1)
        for part in ("no CPU BLAS has scipy_cblas_dgemm64_", "SG_BLAS_CPU", "libopenblas0-pthread"):
            self.assertIn(part, said.stderr)
        self.assertEqual(self.said('print(blas.sg_blas_cpu_function(b"scipy_cblas_dgemm64_"))').stdout, "None\n")

    def test_the_variable(self):
        self.assertEqual(self.said('load("one"); print(number("scipy_cblas_dgemm64_"))', {"SG_BLAS_CPU": str(FAKES / "libfake-three.so")}).stdout, "3.0\n")
        said = self.said('print(multiplies("cblas_dgemm"))', {"SG_BLAS_CPU": "/no/such/library.so"})
        self.assertEqual(said.stdout, "True\n")
        self.assertIn("SG_BLAS_CPU=/no/such/library.so", said.stderr)
        self.assertEqual(said.stderr.count("\n"), 1)

    def test_a_function_of_the_programs(self):
        said = self.said("""
            mine = load("three")
            print(blas.sg_blas_set_cpu_function(b"cblas_dgemm", ctypes.cast(mine.scipy_cblas_dgemm64_, ctypes.c_void_p)))
            print(blas.sg_blas_cpu_function(b"cblas_dgemm") == ctypes.cast(mine.scipy_cblas_dgemm64_, ctypes.c_void_p).value)
            print(blas.sg_blas_set_cpu_function(b"cblas_dgemm", None), multiplies("cblas_dgemm"))
            print(blas.sg_blas_set_cpu_function(b"cblas_nothing", None), blas.sg_blas_set_cpu_function(None, None))
            """.replace("\n            ", "\n"))
        self.assertEqual(said.stdout, "0\nTrue\n0 True\n-1 -1\n")

    def test_the_reference_beside_it(self):
        """Its CBLAS calls Fortran's names, which are ours: each call is counted once, and computed once."""
        if not (NETLIB[""] / "libblas.so.3").exists():
            self.skipTest("libblas3 is not installed")
        found = self.json_of("print(json.dumps([multiplies('cblas_dgemm'), report()]))", {"SG_BLAS": "0", "SG_BLAS_CPU": str(NETLIB[""] / "libblas.so.3")})
        self.assertTrue(found[0])
        self.assertEqual([(row["name"], row["calls"]) for row in found[1]["rows"]], [("cblas_dgemm", {"switched off": 1})])


run()
