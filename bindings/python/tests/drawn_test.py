# SPDX-License-Identifier: Apache-2.0
"""The layers of drawn forms of bench/networks/drawn.py: their values, and that the program reports wrong ones."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    print("PyTorch is not here")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench" / "networks"))
import drawn  # noqa: E402
import drawn_forms  # noqa: E402
import drawn_layers  # noqa: E402

DEVICE = os.environ.get("SG_TEST_DEVICE", "cpu")
torch.set_num_threads(1)


class Drawn(unittest.TestCase):
    def run_program(self, *arguments, code=0, limits=None):
        """What it prints, and its record. limits: of the size of forms, instead of its own."""
        with tempfile.TemporaryDirectory() as folder:
            record, out = pathlib.Path(folder) / "drawn.json", io.StringIO()
            argv = ["drawn.py", "--device", DEVICE, "--json", str(record), *map(str, arguments)]
            with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), mock.patch.dict(drawn.LIMITS, limits or {}):
                with self.assertRaises(SystemExit) as exits:
                    drawn.main()
            self.assertEqual(code, exits.exception.code, out.getvalue())
            return out.getvalue(), json.loads(record.read_text())

    def test_values(self):
        text, record = self.run_program("--values", "--forms", 53, "--seed", 5, limits={f"{DEVICE.split(':')[0]} values": (1e7, 1 << 20)})
        device = record["device"]
        self.assertEqual((device["seed"], device["failed"], len(device["values"])), (5, [], 53), text)
        self.assertEqual(set(drawn_forms.KINDS), {each["form"]["kind"] for each in device["values"]})
        self.assertEqual({"bf16", "f16", "f32"}, {each["form"]["dtype"] for each in device["values"]})

    def test_wrong_values_fail(self):
        def wrong(form, make, right=drawn_layers.softmax):
            layer = right(form, make)
            layer.by_torch = lambda t, known=layer.by_torch: (known(t)[0] * 1.05,)
            return layer

        with mock.patch.dict(drawn_layers.LAYERS, softmax=wrong):
            text, record = self.run_program("--values", "--forms", 4, "--kinds", "softmax", "--seed", 5, code=1)
        self.assertEqual(4, len(record["device"]["failed"]))
        self.assertIn("FAILED: 4", text)
        self.assertRegex(text, "FAILED .* y differs by 0.0")

    def test_unwritten_values_fail(self):
        def silent(form, make, right=drawn_layers.softmax):
            layer = right(form, make)
            layer.ours = lambda call, t: call("softmax", t["x"], t["x"])
            return layer

        with mock.patch.dict(drawn_layers.LAYERS, softmax=silent):
            text, _ = self.run_program("--values", "--forms", 1, "--kinds", "softmax", "--seed", 5, code=1)
        self.assertIn("y differs by nan", text)

    @unittest.skipUnless(DEVICE == "cpu", "a simulated device has no times")
    def test_times(self):
        kinds = ("--kinds", "softmax,norm,embedding", "--forms", 12, "--seed", 5, "--seconds", 0.01)
        text, record = self.run_program(*kinds, limits={"cpu": (1e7, 1 << 20)})
        variants = {row["variant"] for row in record["rows"]}
        self.assertEqual({"streamgemm", "streamgemm, calls", "PyTorch"}, variants)
        self.assertRegex(text, r"softmax +\d+ +\d+\.\d\d +\d+\.\d\d")
        self.assertIn("the 25 worst graphs", text)

    def test_a_seed_draws_the_same_forms(self):
        def drawn_by(seed, shrinks):
            return list(drawn_forms.forms(drawn.random.Random(seed), 200, 4e12, 4 << 30, shrinks))

        self.assertEqual(drawn_by(1, False), drawn_by(1, False))
        self.assertNotEqual(drawn_by(1, False), drawn_by(2, False))
        for form in drawn_by(3, False):
            self.assertTrue(drawn_forms.flops(form) <= 4e12 and drawn_forms.nbytes(form) <= 4 << 30, form)


if __name__ == "__main__":
    unittest.main()
