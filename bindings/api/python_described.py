# SPDX-License-Identifier: Apache-2.0
"""Native calls of Python's methods, and of the functions of streamgemm.operations, which put them off until a plan or a graph makes them."""
import ast
import copy
import re

HEAD = '# SPDX-License-Identifier: Apache-2.0\n"""Written by bindings/api/python.py."""\n'
DESCRIBED = "described"  # in place of whether a method records


class Submission(ast.NodeTransformer):
    """Puts the job's type or the graph, the target and the options into a native call; WAITS becomes a constant."""

    def __init__(self, how, order, waits, described=None):
        self.how, self.order, self.waits, self.described = how, order, waits, described

    def visit_Return(self, node):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.startswith("submit_"):
            native, order = ast.Name(f"_raw.{call.func.id}"), ast.parse(self.order, mode="eval").body
            before = [ast.Name(text) for text in self.how]
            if self.how == ["self._record"]:
                native, before = before[0], [native]
            given = [ast.Starred(order)] if isinstance(order, ast.Name) else getattr(order, "elts", None)
            own = call.args
            if self.described:  # its arguments are read now, the call is made when it is used
                call.args = [ast.Starred(ast.Name("given"))]
            call.args = before + call.args + (given if call.func.id == "submit_gemm" else [order])
            call.func = native
            if self.described:
                made = ast.Lambda(ast.parse("lambda how, target, order, given=0: 0", mode="eval").body.args, call)
                made.args.defaults = [ast.Tuple(own)]
                node.value = ast.Call(ast.Name("OperationDesc"), [ast.Constant(self.described), made], [])
        return self.generic_visit(node)

    def visit_Name(self, node):
        if node.id == "WAITS":
            return ast.Constant(self.waits)
        return ast.parse(self.order, mode="eval").body if node.id == "ORDER" else node


class Described:
    """The part of Python's emitter that writes operations.py and its stubs."""

    def described_operations(self):
        yield HEAD.replace('"""Written', '"""Descriptions of operations, for plans and graphs: Context.plan, Graph.update. Written') + (
            "from . import _raw\nfrom ._arguments import *\nfrom ._described import OperationDesc\nfrom ._messages import named, refuse_unknown, signed\n\n")
        for definition in self.classes["Context"]:
            summary = definition.summary.rstrip(".,")
            doc = f"Describes {summary}.\n\n{self.as_for(definition, DESCRIBED, f'Context.{definition.name}_async')}"
            body = [Submission(["how", "target"], "order", False, definition.name).visit(copy.deepcopy(s)) for s in definition.body]
            text = "\n".join(ast.unparse(ast.fix_missing_locations(s)) for s in body)
            yield self.function(definition, DESCRIBED, False, definition.name, doc, text)
            yield f"signed({definition.name})\n"
        yield f"__all__ = {[d.name for d in self.classes['Context']]!r}\n"

    def described_stubs(self):
        yield "# SPDX-License-Identifier: Apache-2.0\n# fmt: off\nfrom collections.abc import Iterable, Sequence\nfrom typing import Any\n"
        yield "from typing_extensions import Literal\n"
        body = []
        for definition in self.classes["Context"]:
            shown = lambda name, default, annotation: f"{name}: {self.stub_type(definition, name, default, annotation)}" + ("" if default is None else " = ...")  # noqa: E731
            body.append(f"def {definition.name}({self.signature(definition, DESCRIBED, False, shown)}) -> OperationDesc: ...")
        names = sorted(set(re.findall(r"\b(?:_?[A-Z]\w*)\b", "\n".join(body))) - {"Any", "None", "False", "True", "Literal", "Iterable", "Sequence"})
        known = [n for n in names if n not in re.findall(r'"(\w+)"', "\n".join(body))]
        yield f"from . import {', '.join(known)}\n"
        yield from body
