#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ScaLAPACK over four ranks of this machine with the drop-in BLAS preloaded: its testers of level 3 of PBLAS, with each call on the device, and the
depth of each rank's GEMMs. Debian's, of scalapack-mpi-test with Open MPI, and with SG_SOAK=1 MPICH.

usage: scalapack_test.py FOLDER-OF-THE-LIBRARIES DEVICE LIBRARY-WITH-A-PILAENV
"""
import json
import os
import pathlib
import re
import shutil
import sys

from dropin import PRELOAD, PYTHON, Dropin, reasons, run

DEVICE, FAKE = sys.argv.pop(2), sys.argv.pop(2)
THOROUGH = os.environ.get("SG_SOAK") == "1"
DATA = pathlib.Path("/usr/share/scalapack/PBLAS")
RANKS = 4
ROUTINES = {"s": "GEMM SYMM SYRK SYR2K TRMM TRSM", "d": "GEMM SYMM SYRK SYR2K TRMM TRSM",
            "c": "GEMM SYMM HEMM SYRK HERK SYR2K HER2K TRMM TRSM", "z": "GEMM SYMM HEMM SYRK HERK SYR2K HER2K TRMM TRSM"}

# C = A B of integers on a grid of 2 x 2, in blocks of 16; each rank checks its part.
PRODUCT = """
import ctypes, sys
import numpy
blacs = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
integer = lambda value=0: ctypes.byref(ctypes.c_int(value))
number = lambda value: ctypes.byref(ctypes.c_double(value))
rank, ranks, grid, rows, cols, row, col = (ctypes.c_int() for _ in range(7))
blacs.blacs_pinfo_(ctypes.byref(rank), ctypes.byref(ranks))
blacs.blacs_get_(integer(-1), integer(0), ctypes.byref(grid))
blacs.blacs_gridinit_(ctypes.byref(grid), b"R", integer(2), integer(2))
blacs.blacs_gridinfo_(ctypes.byref(grid), *map(ctypes.byref, (rows, cols, row, col)))
n, block = 256, 16
mine = lambda at: numpy.array([i for i in range(n) if i // block % 2 == at])
i, j = mine(row.value), mine(col.value)
whole = lambda seed: numpy.random.default_rng(seed).integers(-4, 5, (n, n))
a, b = whole(1), whole(2)
part = lambda x: numpy.asfortranarray(x[numpy.ix_(i, j)], dtype=float)
form = (ctypes.c_int * 9)(1, grid.value, n, n, block, block, 0, 0, len(i))
pointer = lambda x: ctypes.c_void_p(x.ctypes.data)
parts = part(a), part(b), part(0 * a)
at = lambda x: (pointer(x), integer(1), integer(1), form)
blacs.pdgemm_(b"N", b"N", integer(n), integer(n), integer(n), number(1), *at(parts[0]), *at(parts[1]), number(0), *at(parts[2]))
assert (parts[2] == part(a @ b)).all(), rank.value
blacs.blacs_gridexit_(ctypes.byref(grid))
blacs.blacs_exit_(integer(0))
"""


class Scalapack(Dropin):
    launcher = "openmpi"

    def setUp(self):
        super().setUp()
        self.programs = next(pathlib.Path("/usr/lib").glob(f"*/scalapack/{self.launcher}-tests/PBLAS"), None)
        self.library = next(pathlib.Path("/usr/lib").glob(f"*/libscalapack-{self.launcher}.so.*"), None)
        if not (self.programs and self.library and DATA.exists() and shutil.which(f"mpiexec.{self.launcher}")):
            self.skipTest(f"scalapack-mpi-test and {self.launcher} are not installed")

    def ranks(self, command, variables):
        """Runs a program on each rank; returns what it says, and the reports."""
        preload = {"LD_PRELOAD": str(PRELOAD), "SG_DEVICE": DEVICE, "SG_BLAS_MIN": "0", "SG_BLAS_REPORT": f"{self.folder}/%r.json"} | variables
        root = ["--allow-run-as-root", "--oversubscribe"] if self.launcher == "openmpi" else []
        done = self.execute([f"mpiexec.{self.launcher}", *root, "-n", RANKS, "env", *(f"{key}={value}" for key, value in preload.items()), *command],
                            preload=False, cwd=self.folder)
        reports = [json.loads((self.folder / f"{rank}.json").read_text()) for rank in range(RANKS)]
        for report in reports:
            counts = reasons(report)
            self.assertGreater(counts["device"], 0)
            self.assertEqual((counts["device failed"], counts["no device"]), (0, 0))
        return done.stdout, reports

    def check_testers(self, kinds):
        for kind in kinds:
            with self.subTest(kind):
                text = (DATA / f"P{kind.upper()}BLAS3TST.dat").read_text()
                if not THOROUGH:  # one grid, the first two problems
                    text = re.sub(r"^4(\s+number of process grids.*\n)2 ", r"1\g<1>2 ", text, flags=re.MULTILINE)
                    text = re.sub(r"^4(\s+number of tests problems)", r"2\1", text, flags=re.MULTILINE)
                (self.folder / f"P{kind.upper()}BLAS3TST.dat").write_text(text)
                said, _ = self.ranks([self.programs / f"{kind}pb3tst"], {})
                tests = 16 if THOROUGH else 2
                for routine in ROUTINES[kind].split():
                    self.assertRegex(said, rf"P{kind.upper()}{routine} +{tests} +{tests} +0 +0\n", said)
                self.assertNotIn("FAILED  *", said)

    def test_level_3(self):
        self.check_testers("sdcz" if THOROUGH else "d" if DEVICE == "cpu" else "c")

    def test_the_logical_block(self):
        depths, program = {}, self.folder / "product.py"
        program.write_text(PRODUCT)
        for block in (16, 128):
            _, reports = self.ranks([PYTHON, program, self.library], {"SG_PBLAS_NB": str(block)})
            depths[block] = {row["k"] for report in reports for row in report["rows"] if row["routine"] == "dgemm"}
        self.assertEqual(depths, {16: {16}, 128: {128}})


class Mpich(Scalapack):  # whose ranks wait by polling: on few cores it takes minutes
    launcher = "mpich"

    def setUp(self):
        if not THOROUGH:
            self.skipTest("with SG_SOAK=1")
        super().setUp()

    def test_level_3(self):
        self.check_testers("d")


class Inquiry(Dropin):
    def said(self, variables, precision="D"):
        """What it says, and on standard error. ScaLAPACK's own stands behind the drop-in BLAS."""
        return self.child(f"print(blas.pilaenv_(ctypes.byref(ctypes.c_int(7)), b'{precision}'))", {"LD_PRELOAD": f"{PRELOAD}:{FAKE}"} | variables)

    def test_what_it_says(self):
        own = 7000 + ord("D")  # of the arguments
        for variables, wanted in (({"SG_DEVICE": "cpu"}, own), ({"SG_DEVICE": "sim:h200"}, 512), ({"SG_DEVICE": "sim:h200", "SG_BLAS": "0"}, own),
                                  ({"SG_DEVICE": "cpu", "SG_PBLAS_NB": "96"}, 96), ({"SG_DEVICE": "sim:h200", "SG_PBLAS_NB": "4096"}, 4096)):
            done = self.said(variables)
            self.assertEqual((int(done.stdout), done.stderr), (wanted, ""), variables)
        self.assertEqual([int(self.said({"SG_DEVICE": "sim:h200"}, each).stdout) for each in "SDCZz"], [512, 512, 512, 256, 256])
        for wrong in ("0", "4097", "many"):
            done = self.said({"SG_PBLAS_NB": wrong, "SG_DEVICE": "cpu"})
            self.assertEqual(int(done.stdout), own)
            self.assertIn(f"SG_PBLAS_NB={wrong}: no whole number from 1 to 4096; the default is used", done.stderr)

    def test_without_scalapack(self):
        done = self.child("print(blas.pilaenv_(ctypes.byref(ctypes.c_int(7)), b'D'))", {"SG_DEVICE": "cpu"})
        self.assertEqual(int(done.stdout), 32)


if __name__ == "__main__":
    run()
