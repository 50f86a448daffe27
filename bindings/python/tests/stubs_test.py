# SPDX-License-Identifier: Apache-2.0
"""The stubs: mypy --strict accepts them and a program that uses them, and they agree with the package."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import streamgemm

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = pathlib.Path(streamgemm.__file__).parent
SKIPPED = 77


def mypy(*arguments, stubs, cache):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": stubs, "MYPY_CACHE_DIR": cache},
    )


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.where = {"stubs": f"{folder.name}/stubs", "cache": f"{folder.name}/cache"}
        (pathlib.Path(folder.name) / "stubs" / "streamgemm").mkdir(parents=True)
        for stub in PACKAGE.glob("*.pyi"):
            shutil.copy(stub, f"{folder.name}/stubs/streamgemm")
        (pathlib.Path(folder.name) / "stubs" / "torch").mkdir()  # for PyTorch's own types mypy takes minutes
        (pathlib.Path(folder.name) / "stubs" / "torch" / "__init__.pyi").write_text("class Tensor: ...\n")

    def test_strict(self):
        done = mypy("mypy", "--strict", str(HERE / "typed_use.py"), *map(str, PACKAGE.glob("*.pyi")), **self.where)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_wrong_use_is_reported(self):
        wrong = pathlib.Path(self.where["stubs"]).parent / "wrong.py"
        wrong.write_text("import streamgemm as sg\nsg.matmul_async(3, 4)\nx: int = sg.Context('cpu').device.name\n")
        done = mypy("mypy", "--strict", str(wrong), **self.where)
        self.assertIn("Found", done.stdout)
        self.assertIn("wrong.py:2", done.stdout)
        self.assertIn("wrong.py:3", done.stdout)

    def test_a_misspelt_option_is_reported(self):
        head = "import numpy as np\nimport streamgemm as sg\nx = np.eye(2)\ncontext = sg.Context('cpu')\n"
        calls = ["sg.matmul(x, x", "sg.matmul_async(x, x"]
        calls += [f"context.{name}(x, x" for name in ("gemm", "gemm_async", "matmul", "matmul_async", "copy", "copy_async")]
        calls += [f"context.{name}([(x, x)]" for name in ("gemm_grouped", "gemm_grouped_async")]
        calls += [f"context.plan(x, x).{name}(x, x" for name in ("run", "run_async")]
        calls += ["context.plan(x, x", "context.graph().gemm(x, x", "context.graph().run(", "context.graph().run_async("]
        calls += ["context.graph().copy(x, x", "sg.Context('cpu'", "sg.PlanOptions(", "context.stream(", "context.pinned_empty(3"]
        wrong = pathlib.Path(self.where["stubs"]).parent / "misspelt.py"
        lines = [f"{call}{'' if call.endswith('(') else ', '}priorty=1)" for call in calls]
        wrong.write_text(head + "\n".join(lines) + "\n")
        done = mypy("mypy", "--strict", str(wrong), **self.where)
        for number, line in enumerate(lines, 1 + head.count("\n")):
            self.assertIn(f"misspelt.py:{number}: error", done.stdout, line)
            with self.assertRaises(TypeError, msg=line):
                exec(head + line)  # pylint: disable=exec-used

    def test_stubs_agree_with_the_package(self):
        if importlib.util.find_spec("torch") is None:  # without it streamgemm.torch cannot be imported
            (pathlib.Path(self.where["stubs"]) / "streamgemm" / "torch.pyi").unlink()
        done = mypy("mypy.stubtest", "streamgemm", "--ignore-missing-stub", **self.where)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-c", "import mypy"], capture_output=True, check=False).returncode:
        print("mypy is not here")
        sys.exit(SKIPPED)
    unittest.main()
