#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy on the drop-in BLAS: the distribution's, by preload and through libblas.so.3, and the wheel of PyPI, whose library has names of
its own. R, Octave and HPL (hpcc), where they are installed.

usage: numpy_test.py FOLDER-OF-THE-LIBRARIES RAISING-CLOCK-LIBRARY
"""
import json
import os
import pathlib
import shutil
import sys

from dropin import BUILT, PRELOAD, PYTHON, Dropin, reasons, run

RAISING_CLOCK = pathlib.Path(sys.argv.pop(2)).resolve(strict=True)
PACKAGES = pathlib.Path(os.environ.get("SG_TEST_PACKAGES", "/absent"))
PROGRAM = """
import numpy as np
chance = np.random.default_rng(3)
def matrix(rows, cols, kind):
    values = chance.standard_normal((rows, cols)) + (1j * chance.standard_normal((rows, cols)) if kind in "FD" else 0)
    return values.astype(kind)
def check(got, wanted, kind):
    bound = 1e-4 if kind in "fF" else 1e-11
    assert np.allclose(got, wanted, rtol=bound, atol=bound * 100), (kind, got.shape)
for kind in "fdFD":
    for m, n, k in ((1, 1, 1), (70, 50, 60), (65, 1, 9), (3, 90, 7), (128, 128, 128)):
        a, b = matrix(m, k, kind), matrix(k, n, kind)
        wanted = np.einsum("ij,jk->ik", a, b)
        check(a @ b, wanted, kind)
        check(np.dot(np.asfortranarray(a), b), wanted, kind)
        check(a.T.copy().T @ np.asfortranarray(b), wanted, kind)
        check(matrix(2 * m, 2 * k, kind)[::2, ::2] @ b * 0 + wanted, wanted, kind)
        wide = np.zeros((k, n + 5), kind)
        wide[:, :n] = b
        check(a @ wide[:, :n], wanted, kind)
        check(a.T @ a, np.einsum("ij,ik->jk", a, a), kind)
    s = matrix(80, 80, kind) + 80 * np.eye(80, dtype=kind)
    x = matrix(80, 3, kind)
    check(np.linalg.solve(s, np.einsum("ij,jk->ik", s, x)), x, kind)
    check(np.linalg.inv(s) @ s, np.eye(80), kind)
    q, r = np.linalg.qr(s)
    check(q @ r, s, kind)
    u, sigma, v = np.linalg.svd(s)
    check((u * sigma) @ v, s, kind)
    values, vectors = np.linalg.eigh(s + s.conj().T)
    check((vectors * values) @ vectors.conj().T, s + s.conj().T, kind)
print("right", np.__version__)
"""


class Stacks(Dropin):
    def stack(self, command, least, variables, **options):
        """The program is right, and at least so many calls were computed by the device."""
        record = self.folder / "report.json"
        said = self.execute(command, {"SG_BLAS_REPORT": str(record)} | variables, **options)
        report = json.loads(record.read_text())
        self.assertGreaterEqual(reasons(report)["device"], least, report)
        self.assertEqual(reasons(report)["device failed"], 0)
        return said.stdout, {row["name"] for row in report["rows"]}

    def test_the_distributions_by_preload(self):
        for device in ("cpu", "sim:h200"):
            said, names = self.stack([PYTHON, "-c", PROGRAM], 60, {"SG_DEVICE": device})
            self.assertIn("right", said)
            self.assertIn("cblas_zgemm", names)

    def test_the_distributions_through_libblas(self):
        said, names = self.stack([PYTHON, "-c", PROGRAM], 60, {"LD_LIBRARY_PATH": str(BUILT)}, preload=False)
        self.assertIn("right", said)
        self.assertIn("cblas_dgemm", names)

    def test_the_wheel(self):
        package = PACKAGES / "numpy_wheel"
        if not package.exists():
            self.skipTest("NumPy's wheel is not installed")
        said, names = self.stack([PYTHON, "-c", PROGRAM], 60, {"PYTHONPATH": str(package)})
        self.assertIn("right", said)
        self.assertIn("scipy_cblas_dgemm64_", names)

    def test_the_exceptions_of_numbers_are_those_of_the_program(self):
        """NumPy reads the processor's flags behind a product: those that the library's calls leave are not the program's."""
        code = """
import numpy as np
np.seterr(all="raise")
for n in (8, 300, 640):
    a = np.ones((n, n))
    assert (a @ a)[0, 0] == n
try:
    np.full((8, 8), 1e300) @ np.full((8, 8), 1e300)
except FloatingPointError as error:
    assert "overflow" in str(error), error
    print("right")
"""
        for least in ("auto", "200"):
            variables = {"SG_DEVICE": "sim:h200", "SG_BLAS_MIN": least, "LD_PRELOAD": f"{RAISING_CLOCK}:{PRELOAD}"}
            self.assertIn("right", self.execute([PYTHON, "-c", code], variables).stdout)

    def test_r(self):
        if not shutil.which("Rscript"):
            self.skipTest("R is not installed")
        code = "set.seed(1); a <- matrix(rnorm(8100), 90); s <- a %*% solve(a); stopifnot(max(abs(s - diag(90))) < 1e-8); cat('right')"
        self.assertIn("right", self.stack(["Rscript", "-e", code], 1, {})[0])

    def test_octave(self):
        if not shutil.which("octave-cli"):
            self.skipTest("Octave is not installed")
        code = "a = rand(90) + eye(90) * 90; s = a * inv(a); assert(s, eye(90), 1e-8); disp('right')"
        self.assertIn("right", self.stack(["octave-cli", "--eval", code], 1, {})[0])


    def test_hpl(self):
        sample = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
        if not shutil.which("hpcc") or not sample.exists():
            self.skipTest("hpcc is not installed")
        wanted = {"Ns": "500", "NBs": "64", "Ps": "1", "Qs": "1"}
        lines = [next((f"{value} {name}" for name, value in wanted.items() if line.split()[1:] == [name]), line) for line in sample.read_text().splitlines()]
        (self.folder / "hpccinf.txt").write_text("\n".join(lines) + "\n")
        _, names = self.stack(["hpcc"], 10, {"SG_BLAS_MIN": "40", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}, cwd=self.folder)
        self.assertLessEqual({"cblas_dgemm", "cblas_dtrsm"}, names)
        said = (self.folder / "hpccoutf.txt").read_text().partition("Begin of HPL section")[2]
        self.assertRegex(said, r"Ax-b.*PASSED")
        self.assertIn("0 tests completed and failed residual checks", said)


run()
