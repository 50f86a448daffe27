# SPDX-License-Identifier: Apache-2.0
"""Every public class and function has a docstring, which mentions its parameters: the tooltip of an editor."""

import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
import unittest

import streamgemm as sg


def public_members(kind):
    """(name, function or property) of a class's own and inherited ones, as far as they are the package's."""
    for name in dir(kind):
        if name.startswith("_") and name != "__init__":
            continue
        owner = next(base for base in kind.__mro__ if name in vars(base))
        if owner.__module__.startswith("streamgemm"):
            yield name, inspect.getattr_static(kind, name)


class Docstrings(unittest.TestCase):
    def helps(self, name, function):
        text = inspect.getdoc(function) or ""
        self.assertGreater(len(text), 10, f"{name} has no docstring")
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            return  # a property
        for parameter in parameters.values():
            if parameter.name in ("self", "cls", "raised", "how") or parameter.name.startswith("_"):
                continue
            self.assertRegex(text, rf"\b{re.escape(parameter.name)}\b", f"{name}: its docstring says nothing of it")

    def test_all(self):
        for name in sg.__all__:
            thing = getattr(sg, name)
            if not inspect.isclass(thing):
                self.helps(name, thing)
                continue
            self.assertTrue(thing.__doc__ and thing.__doc__ != int.__doc__, f"{name} has no docstring")
            if issubclass(thing, (Exception, int)):
                continue
            for member, value in public_members(thing):
                with self.subTest(f"{name}.{member}"):
                    function = getattr(value, "__func__", value)
                    if callable(function) or isinstance(function, property) or inspect.isgetsetdescriptor(function):
                        if member == "__init__" and name in ("DeviceInfo", "DevicePeer", "BackendInfo", "Statistics", "Prediction", "TraceMetrics", "ContextMetrics", "PipelineInfo"):
                            continue
                        self.helps(f"{name}.{member}", function)

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "PyTorch is not here")
    def test_torch(self):
        import streamgemm.torch as sgt

        for name in sgt.__all__:
            self.helps(f"torch.{name}", getattr(sgt, name))

    def test_examples_print_their_usage(self):
        examples = pathlib.Path(__file__).parent.parent / "examples"
        needing = [path for path in examples.glob("*.py") if re.search(r"usage: |sys\.argv\[1\](?! if)", path.read_text(encoding="utf-8"))]
        self.assertGreater(len(needing), 5)
        for path in needing:
            if path.name == "asyncio_clients.py":
                continue  # it needs none
            with self.subTest(path.name):
                ran = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, check=False)
                self.assertEqual(1, ran.returncode)
                self.assertRegex(ran.stderr, rf"usage: {path.name}")
                self.assertNotIn("Traceback", ran.stderr)


if __name__ == "__main__":
    unittest.main()
