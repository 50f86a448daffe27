#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A product of Dask's arrays in two processes, each with the drop-in BLAS preloaded: the products of blocks go to the device. (The sums over blocks
of the depth would stay with NumPy: it is one block.)

usage: dask_test.py FOLDER-OF-THE-LIBRARIES
"""
import json
import os
import pathlib
import unittest

from dropin import PYTHON, Dropin, reasons, run

WHEELS = pathlib.Path(os.environ.get("SG_TEST_PACKAGES", "/absent")) / "numpy_wheel"
PROGRAM = """
import dask, dask.array, numpy
if __name__ == "__main__":
    random = numpy.random.default_rng(1)
    a, b = random.standard_normal((640, 300)), random.standard_normal((300, 512))
    with dask.config.set(scheduler="processes", num_workers=2):
        c = (dask.array.from_array(a, (64, 300)) @ dask.array.from_array(b, (300, 128))).compute()
    assert numpy.allclose(c, numpy.einsum("ij,jk->ik", a, b), rtol=1e-12, atol=1e-12)
"""


@unittest.skipUnless((WHEELS / "dask").is_dir(), "the wheel of Dask is not installed")
class Dask(Dropin):
    def test_blocks_in_two_processes(self):
        for device in ("cpu", "sim:h200"):
            script = self.folder / "blocks.py"
            script.write_text(PROGRAM)
            name = f"{device.split(':')[0]}-"
            self.execute([PYTHON, script], {"SG_BLAS_REPORT": str(self.folder / f"{name}%p.json"), "SG_DEVICE": device, "PYTHONPATH": str(WHEELS)})
            counts = [reasons(json.loads(path.read_text())) for path in self.folder.glob(f"{name}*.json")]
            computing = [each for each in counts if each["device"] > 0]
            self.assertIn(len(computing), (1, 2), counts)  # the first process may have done all before the second has started
            self.assertEqual(sum(each["device"] for each in computing), 40)


if __name__ == "__main__":
    run()
