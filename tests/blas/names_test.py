#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The names that each library of the drop-in BLAS exports, and what it needs.

usage: names_test.py FOLDER-OF-THE-LIBRARIES GENERATOR
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

from dropin import BUILT, NETLIB, PRELOAD, PYTHON, Dropin, run

GENERATOR = sys.argv.pop(2)
OWN = {"sg_blas_version", "sg_blas_cpu_function", "sg_blas_set_cpu_function", "sg_blas_report", "sg_blas_enable", "sg_blas_forget"}
PACKAGES = pathlib.Path(os.environ.get("SG_TEST_PACKAGES", "/absent"))


def exported(library):
    said = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in said.splitlines() if line.strip()}


def needed(library):
    said = subprocess.run(["readelf", "-d", str(library)], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"NEEDED.*\[(.*)\]", said)), re.findall(r"SONAME.*\[(.*)\]", said)


def undefined(library):
    said = subprocess.run(["nm", "-D", "--undefined-only", str(library)], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in said.splitlines()}


class Names(Dropin):
    def test_the_preload_library(self):
        generated = set(subprocess.run([PYTHON, GENERATOR, "names"], check=True, capture_output=True, text=True).stdout.split())
        self.assertEqual(exported(PRELOAD), generated | OWN | {"pilaenv_"})
        for form in ("{}_", "{}_64_", "cblas_{}", "cblas_{}64_", "scipy_{}_", "scipy_{}_64_", "scipy_cblas_{}", "scipy_cblas_{}64_"):
            for name in "sgemm dgemm cgemm zgemm ssymm zhemm csyrk zherk dsyr2k cher2k strmm ztrsm dgemmt sgemmtr".split():
                self.assertIn(form.format(name), generated)
        for form in ("{}_", "{}_64_", "scipy_{}_", "scipy_{}_64_"):
            for name in "sgetrf dgetrs cgesv zpotrf dpotrs sposv dgeqrf sorgqr zungqr dsyev zheev ssyevd cheevd".split():
                self.assertIn(form.format(name), generated)

        for name in "cblas_sgemm_batch scipy_cblas_dgemm_batch64_ cgemm_batch_ cblas_zgemm_batch_strided dgemm_batch_strided_".split():
            self.assertIn(name, generated)

    def test_the_alternatives_have_what_the_reference_has(self):
        if not (NETLIB[""] / "libblas.so.3").exists():
            self.skipTest("libblas3 is not installed")
        # The wrappers that the reference's CBLAS calls Fortran functions by are its own.
        wanted = {name for name in exported(NETLIB[""] / "libblas.so.3") if not re.fullmatch(r"\w+sub_", name)}
        for name in ("libblas.so.3", "libblas64.so.3"):
            self.assertEqual(exported(BUILT / name), wanted | OWN)

    def test_they_need_the_c_library_only(self):
        for name in ("libstreamgemm-blas.so.1", "libblas.so.3", "libblas64.so.3"):
            libraries, soname = needed(BUILT / name)
            self.assertEqual(libraries, {"libc.so.6"})
            self.assertEqual(soname, [name])
            self.assertLess((BUILT / name).resolve().stat().st_size, 550_000)

    def test_numpys_wheel_calls_names_of_the_table(self):
        self.calls_names_of_the_table(PACKAGES / "numpy_wheel")

    def test_the_wheel_for_newer_pythons_does(self):
        self.calls_names_of_the_table(PACKAGES / "numpy_newest")

    def calls_names_of_the_table(self, package):
        if not package.exists():
            self.skipTest("NumPy's wheel is not installed")
        generated = exported(PRELOAD)
        level3 = re.compile(r"(gemm|gemmt|gemmtr|symm|hemm|syrk|herk|syr2k|her2k|trmm|trsm)_?(64_)?$")
        called = {name for library in package.rglob("*.so") for name in undefined(library) if level3.search(name)}
        self.assertGreater(len(called), 3)
        self.assertEqual(called - generated, set())
        solvers = re.compile(r"(?:^|_)[sdcz](getrf|getrs|gesv|potrf|potrs|posv|geqrf|orgqr|ungqr|syevd|heevd|syev|heev)_?(64_)?$")
        called = {name for library in package.rglob("*.so") for name in undefined(library) if solvers.search(name)}
        self.assertGreater(len(called), 5)
        self.assertEqual(called - generated, set())


run()
