#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reference's testers of BLAS on the drop-in BLAS: level 3 by preload and as libblas.so.3, with each call on the device; levels 1 and 2
through libblas.so.3; the same with 64-bit integers. They are Debian's, of libblas-test and libblas64-test.

usage: netlib_test.py FOLDER-OF-THE-LIBRARIES DEVICE
"""
import json
import os
import sys

from dropin import BUILT, NETLIB, Dropin, reasons, run

DEVICE = sys.argv.pop(2)
THOROUGH = os.environ.get("SG_SOAK") == "1"
PASSED = {"s": 6, "d": 6, "c": 9, "z": 9}  # routines of level 3


class Testers(Dropin):
    def setUp(self):
        super().setUp()
        if not (NETLIB[""] / "xblat3d").exists():
            self.skipTest("libblas-test is not installed")

    def skip_unless_thorough(self):
        if DEVICE != "cpu" and not THOROUGH:
            self.skipTest("on this device with SG_SOAK=1")

    def passed(self, text, count, lines):
        """`lines` tests of `count` routines have passed, and none has failed."""
        self.assertNotRegex(text, r"FAIL|\*\*\*\*\*\*\*")
        self.assertEqual(text.count("PASSED"), count * lines, text)

    def said_by(self, folder, program, data, variables, **options):
        """What a tester says, on its output or in a file."""
        with open(folder / data) as given:
            said = self.execute([folder / program], {"SG_DEVICE": DEVICE} | variables, stdin=given, cwd=self.folder, **options)
        self.assertEqual(said.stderr, "")
        return said.stdout + "".join(file.read_text() for file in self.folder.glob("*.out"))

    def level3(self, variables, width="", **options):
        for kind, count in PASSED.items():
            for program, data, lines in ((f"xblat3{kind}", f"{kind}blat3.in", 2), (f"x{kind}cblat3", f"{kind}in3", 3)):
                if DEVICE != "cpu" and not THOROUGH and program not in ("xblat3d", "xccblat3"):
                    continue
                record = self.folder / "report.json"
                # Reading copies back takes more than the tests themselves.
                residency = {"SG_BLAS_RESIDENCY": "verify"} if program in ("xblat3d", "xccblat3") else {}
                with self.subTest(program):
                    self.passed(self.said_by(NETLIB[width], program, data, variables | residency | {"SG_BLAS_REPORT": str(record)}, **options), count, lines)
                    counts = reasons(json.loads(record.read_text()))
                    self.assertGreater(counts["device"], 5000)
                    self.assertGreater(counts["invalid argument"], 20)
                    self.assertEqual(counts["device failed"], 0)
                    for file in self.folder.glob("*"):
                        file.unlink()

    def test_level_3_by_preload(self):
        # The testers of CBLAS use data that only the reference has.
        self.level3({"LD_LIBRARY_PATH": str(NETLIB[""])})

    def test_level_3_as_libblas(self):
        self.skip_unless_thorough()
        self.level3({"LD_LIBRARY_PATH": str(BUILT)}, preload=False)

    def test_level_3_as_the_only_blas(self):
        """Every name that a CPU BLAS is looked for by leads back here, but the path of the reference. A cpu device must find that one."""
        self.skip_unless_thorough()
        only = self.folder / "only"
        only.mkdir()
        for name in ("libblas.so.3", "libopenblas.so.0", "libblis.so.4", "libmkl_rt.so.2", "libcblas.so.3"):
            (only / name).symlink_to(BUILT / "libblas.so.3")
        record = self.folder / "report.json"
        said = self.said_by(NETLIB[""], "xdcblat3", "din3", {"LD_LIBRARY_PATH": f"{only}:{BUILT.parent / 'api'}", "SG_BLAS_REPORT": str(record)}, preload=False)
        self.passed(said, 6, 3)
        report = json.loads(record.read_text())
        for name, path in report["cpu_blas"].items():
            self.assertTrue(path.endswith("/blas/libblas.so.3"), (name, path))
        self.assertGreater(reasons(report)["device"], 5000)

    def test_level_3_with_64_bit_integers(self):
        self.skip_unless_thorough()
        if not (NETLIB["64"] / "xblat3d").exists():
            self.skipTest("libblas64-test is not installed")
        self.level3({"LD_LIBRARY_PATH": str(BUILT)}, width="64", preload=False)

    def test_levels_1_and_2(self):
        if DEVICE != "cpu":
            self.skipTest("they use no device")
        for width in ("", "64"):
            if not (NETLIB[width] / "xblat1d").exists():
                continue
            for kind in "sdcz":
                for program, data in ((f"xblat1{kind}", None), (f"x{kind}cblat1", None), (f"xblat2{kind}", f"{kind}blat2.in"), (f"x{kind}cblat2", f"{kind}in2")):
                    with self.subTest(program + width):
                        said = self.said_by(NETLIB[width], program, data or f"{kind}in2", {"LD_LIBRARY_PATH": str(BUILT)}, preload=False)
                        self.assertNotRegex(said, r"FAIL|\*\*\*\*\*\*\*")
                        self.assertGreaterEqual(said.count("PASS"), 10)
                        for file in self.folder.glob("*.out"):
                            file.unlink()


run()
