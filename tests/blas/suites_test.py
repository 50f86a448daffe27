#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of NumPy's and SciPy's own tests, those of their wheels, with the drop-in BLAS preloaded: each valid call of level 3 goes to the device. With
SG_SOAK=1 more of them, and on the simulated device, too.

usage: suites_test.py FOLDER-OF-THE-LIBRARIES
"""
import json
import os
import pathlib
import sys
import unittest

from dropin import PYTHON, Dropin, reasons, run

WHEELS = pathlib.Path(os.environ.get("SG_TEST_PACKAGES", "/absent")) / "numpy_wheel"
SOAK = os.environ.get("SG_SOAK") == "1"
DEVICES = ("cpu", "sim:h200") if SOAK else ("cpu",)


@unittest.skipUnless((WHEELS / "scipy").is_dir(), "the wheels of NumPy, SciPy and pytest are not installed")
class Suites(Dropin):
    def suite(self, modules, least, choice=None, device="cpu"):
        """The tests of some modules pass, and at least so many calls were computed by the device."""
        record = self.folder / f"report of {device.split(':')[0]}.json"
        command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(["-k", choice] if choice else []), "--pyargs", *modules]
        said = self.execute(command, {"SG_BLAS_REPORT": str(record), "SG_DEVICE": device, "PYTHONPATH": str(WHEELS)}, cwd=self.folder)
        print(said.stdout.splitlines()[-1], end=" ", flush=True)
        counts = reasons(json.loads(record.read_text()))
        self.assertGreaterEqual(counts["device"], least, counts)
        self.assertEqual(counts["device failed"], 0)

    def test_numpys_linear_algebra(self):
        for device in DEVICES:
            self.suite(["numpy.linalg.tests.test_linalg"], 1000, device=device)

    def test_numpys_products(self):
        for device in DEVICES:  # the huge ones take 8 GiB
            self.suite(["numpy._core.tests.test_multiarray"], 1000, "(dot or matmul or MatMul or Dot) and not huge", device=device)

    def test_scipys_linear_algebra(self):
        more = ["basic", "decomp", "decomp_ldl", "decomp_polar", "matfuncs", "procrustes", "solvers"] if SOAK else []
        for device in DEVICES:
            self.suite([f"scipy.linalg.tests.test_{name}" for name in ("blas", "decomp_cholesky", "decomp_lu", "decomp_update", *more)], 100, device=device)


if __name__ == "__main__":
    run()
