#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes Python's operations from their definitions and the public headers: methods with docstrings, stubs, and the list of submit
options for C. A new submit option comes to every method by itself.

usage: python.py FOLDER DEFINITIONS.py STUBS.pyi HEADER...

FOLDER gets _operations.py, operations.py, _functions.py, _tables.py, __init__.pyi, operations.pyi, order.h and operations.inc. In STUBS.pyi `# errors`, `# enums: NAMES`, `# record: NAME = STRUCT` and
`# methods: CLASS` stand for what is written here.
"""
import ast
import copy
import pathlib
import sys
import textwrap

from model import Model
from names import pascal, prose
from python_described import DESCRIBED, HEAD, Described, Submission
from python_rules import Rule, table

# Submit options whose names or defaults are Python's own: name, default, type, documentation.
OPTIONS = {
    "stream": ("stream", "None", "Stream | None", "runs it after earlier submissions to that Stream."),
    "after": ("after", "()", "Sequence[Job[Any]]", "runs it after these Jobs."),
    "priority": ("priority", "0", "int", "-1 low, 0 normal or the stream's, 1 high."),
    "flags": ("untracked", "False", "bool", "no ordering by operands that overlap."),
    "plan": ("options", "None", "PlanOptions | None", "PlanOptions."),
    "timeout_ns": ("timeout", "None", "float | None",
                    "seconds from the call, after which the job is dropped or stopped, and fails as DeadlineExceeded."),
    "label": ("label", "None", "str | None",
              "a name for the job, in the message of its failure and in the library's log; at most 63 bytes of UTF-8 are kept."),
}
# Python's own exceptions from which those of a status derive.
BASES = {"InvalidArgument": ["ValueError"], "InvalidHandle": ["ValueError"], "OutOfMemory": ["MemoryError"], "NoDevice": ["LookupError"],
         "Unsupported": ["NotImplementedError"], "Cancelled": ["CancelledError"], "Deadlock": ["RuntimeError"], "BackendFailure": ["RuntimeError"],
         "DeadlineExceeded": ["TimeoutError"], "IoFailure": ["OSError"], "Shutdown": ["RuntimeError"], "Internal": ["RuntimeError"]}
VERBS = {"custom": "Runs", "run": "Runs", "push": "Pushes", "copy": "Makes"}
NOT_RECORDED = ("after", "timeout")
PLUMBING = ("queue", "tag", "graph", "after_count")
# Types of parameters, by name; those of operands follow from their defaults.
TYPES = {
    "function": "Function | str", "reduction": "Reduction | str", "pooling": "Pooling | str", "kind": "TriangularKind | str", "side": "Side | str",
    "triangle": "Triangle | str", "diagonal": "Diagonal | str", "symmetry": "Symmetry | str", "mask": "Mask | str | None", "pairs": "RotaryPairs | str", "quantization": "Quantization | str",
    "dtype": "str | None", "index_type": "IndexType | str | None", "gate_order": "GateOrder | str", "layout": "ImageLayout | str",
    "filter_layout": "FilterLayout | str", "op_a": "_Op", "op_b": "_Op", "op_w": "_Op", "compute": "_Compute",
    "activation": "_Activation | None", "scale": "float | None", "size": "Sequence[int] | None", "kernel": "int | Sequence[int]",
    "stride": "int | Sequence[int]", "padding": "int | Sequence[int]", "dilation": "int | Sequence[int]",
    "channels": "Sequence[int] | None", "shape": "Sequence[int] | None", "reads": "Sequence[_Source]", "writes": "Sequence[_Source]",
    "updates": "Sequence[_Source]", "products": "Iterable[_Item]", "dst": "_C",
}


class Option:
    """An option of every submission."""

    def __init__(self, field):
        self.field = field
        of_type = ("0.0", "float") if field.type == "double" else ("0", "int")
        self.name, self.default, self.type, self.doc = OPTIONS.get(field.name, (field.name, *of_type, field.doc))


class Definition:
    """A method of a class, from its definition."""

    def __init__(self, function, owner):
        self.name, self.owner = function.name, owner
        self.marks = {d.id for d in function.decorator_list}
        self.planned, self.recording, self.unrecorded = (m in self.marks for m in ("planned", "recording", "unrecorded"))
        self.result = function.returns.value
        arguments = function.args
        defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + arguments.defaults
        self.positional = [(a.arg, d and ast.unparse(d), a.annotation) for a, d in zip(arguments.args, defaults)]
        self.keywords = [(a.arg, ast.unparse(d), a.annotation) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)]
        self.summary, _, self.doc = ast.get_docstring(function).partition("\n")
        self.summary = self.summary.rstrip(".")
        self.body = function.body[1:]
        self.waits = any(isinstance(n, ast.Name) and n.id == "WAITS" for s in self.body for n in ast.walk(s))

    @property
    def parameters(self):
        return self.positional + self.keywords


class Python(Described):
    def __init__(self, model, definitions):
        self.model = model
        options = [Option(f) for f in model.structs["sg_submit"].own if f.name not in PLUMBING]
        self.options = [o for o in options if o.name != "options"] + [o for o in options if o.name == "options"]
        tree = ast.parse(definitions)
        self.classes = {c.name: [Definition(f, c.name) for f in c.body] for c in tree.body if isinstance(c, ast.ClassDef)}
        self.rules = []
        names = {o.name for o in model.operations}
        for definition in self.classes["Context"]:
            call = definition.body[-1].value
            if call.func.id in names:
                self.rules.append(Rule(model, definition, len(self.rules)))
                call.args, call.keywords, call.func = self.rules[-1].arguments(), [], ast.Name("submit_operation")

    def taken(self, definition, recorded):
        """The options that a method has."""
        if recorded == DESCRIBED:
            return []
        return [o for o in self.options if (o.name != "options" or definition.planned) and not (recorded and o.name in NOT_RECORDED)]

    def order(self, definition, recorded):
        have = self.taken(definition, recorded)
        return f"({', '.join(o.name if o in have else o.default for o in self.options)},)"

    def signature(self, definition, recorded, is_method=True, stub=None):
        """The parameters; with a stub's function, as that writes each."""
        shown = stub or (lambda name, default, _: name if default is None else f"{name}={default}")
        options = [(o.name, o.default, o.type) for o in self.taken(definition, recorded)]
        options = [f"{n}: {t} = ..." if stub else f"{n}={d}" for n, d, t in options]
        named = [shown(*p) for p in definition.keywords] + options + ([] if stub else ["**unknown"])
        return ", ".join((["self"] if is_method else []) + [shown(*p) for p in definition.positional] + (["*"] + named if definition.keywords or options else named))

    def names(self, definition, recorded):
        return ", ".join([n for n, *_ in definition.parameters] + [o.name for o in self.taken(definition, recorded)])

    def method(self, definition, name, doc, how, recorded=False, waits=False, is_method=True):
        body = [Submission(how, self.order(definition, recorded), waits).visit(copy.deepcopy(s)) for s in definition.body]
        text = "\n".join(ast.unparse(ast.fix_missing_locations(s)) for s in body)
        return self.function(definition, recorded, is_method, name, doc, text)

    def function(self, definition, recorded, is_method, name, doc, body):
        doc = doc.replace("\\", "\\\\")
        owner = "operations" if recorded == DESCRIBED else "Graph" if recorded else definition.owner if is_method else "streamgemm"
        refuse = f"if unknown:\n    refuse_unknown('{owner}.{name}', unknown, {self.names(definition, recorded)!r}.split(', '))"
        signature = self.signature(definition, recorded, is_method)
        return f"def {name}({signature}):\n" + textwrap.indent(f'"""{doc}"""\n{refuse}\n{body}\n', "    ")

    def described(self, definition, other):
        """The parameters' documentation, with that of the options."""
        options = self.taken(definition, False)
        if definition.name == "gemm":
            return definition.doc.strip() + "\n" + "\n".join(f"{o.name}: {o.doc}" for o in options) + "\n"
        line = textwrap.fill(f"{', '.join(o.name for o in options)}: as for {other}gemm_async.", 120)
        return f"{definition.doc.strip()}\n{line}\n".lstrip()

    def of_context(self, definition, target, is_method=True):
        """NAME_async and NAME."""
        name, own = definition.name, "self." if is_method else ""
        result, verb = self.result(definition), VERBS.get(name, "Computes")
        tuple_is = f"; the result is {result}" if definition.result[0] in "([" else ""
        elsewhere = "" if definition.owner == "Context" and is_method else "Context."
        doc = f"Submits {definition.summary}, and returns its Job at once{tuple_is}.\n\n{self.described(definition, elsewhere)}"
        how = ["Job", target]
        yield self.method(definition, f"{name}_async", doc, how, False, False, is_method)
        doc = f"{verb} {definition.summary}, waits, and returns {result}. Ctrl-C cancels it.\n\n{self.as_for(definition, False, name + '_async')}"
        if definition.waits:
            yield self.method(definition, name, doc, how, False, True, is_method)
        else:
            given = [n for n, *_ in definition.positional] + [f"{n}={n}" for n, *_ in definition.keywords]
            given += [f"{o.name}={o.name}" for o in self.taken(definition, False)]
            yield self.function(definition, False, is_method, name, doc, f"return finished({own}{name}_async({', '.join(given)}))")

    def as_for(self, definition, recorded, other):
        return textwrap.fill(f"{self.names(definition, recorded)}: as for {other}.", 120) + "\n"

    def result(self, definition):
        return {"result": "the result", "[results]": "the list of results", "written": "what is written"}.get(definition.result, definition.result)

    def recorded(self, definition):
        """A method that records: of its own, or by Graph._record with the native function and its arguments."""
        doc = f"Records {definition.summary}; returns {self.result(definition)}.\n\n{self.as_for(definition, True, f'Context.{definition.name}_async')}"
        return self.method(definition, definition.name, doc, ["self._record"], True)

    def class_of(self, name, doc, methods):
        return f"class {name}:\n" + textwrap.indent(f'"""{doc}"""\n\n' + "\n".join(methods), "    ")

    def operations(self):
        target = "self._target or self._open_target()"
        yield HEAD + "from . import _raw\nfrom ._arguments import *\nfrom ._described import RUN\nfrom ._job import Job, finished\nfrom ._matrix import Matrix\nfrom ._messages import named, refuse_unknown, signed\n\n"
        context = self.classes["Context"]
        yield self.class_of("ContextMethods", "The operations of a Context, which has _target.", [m for d in context for m in self.of_context(d, target)])
        records = [self.recorded(d) for d in context if not d.unrecorded]
        yield self.class_of("RecordedMethods", "Operations recorded into a Graph. Their results are written by each run.", records)
        for name in ("Plan", "Graph", "Pipeline"):
            methods = [m for d in self.classes[name] for m in ([self.recorded(d)] if d.recording else self.of_context(d, "self._target"))]
            yield self.class_of(f"{name}Methods", f"The submissions of a {name}.", methods)
        yield "\n".join(f"named({n!r}, {n}Methods)" for n in ("Context", "Plan", "Graph", "Pipeline")) + "\nnamed('Graph', RecordedMethods)\n"

    def functions(self):
        yield HEAD + "from . import _raw\nfrom ._default import target_of_default\nfrom ._job import Job\nfrom ._messages import refuse_unknown, signed\n\n"
        matmul = next(d for d in self.classes["Context"] if d.name == "matmul")
        yield from self.of_context(matmul, "target_of_default()", False)
        yield "signed(matmul_async)\nsigned(matmul)\n"

    def order_header(self):
        yield "/* Written from the public headers by bindings/api/python.py: the options of every submission, as methods pass them. */"
        yield "enum { " + ", ".join(f"ORDER_{o.name.upper()}" for o in self.options) + ", ORDER_COUNT };"
        numbers = [o.field for o in self.options if o.field.name not in OPTIONS]
        yield "#define ORDER_NUMBERS(X) " + " ".join(
            f"X({f.name}, ORDER_{f.name.upper()}, {', '.join(self.range_of(f))})" for f in numbers if f.type != "double")
        yield "#define ORDER_REALS(X) " + " ".join(f"X({f.name}, ORDER_{f.name.upper()})" for f in numbers if f.type == "double")

    def range_of(self, field):
        if field.type in self.model.enums:
            values = [int(v.value) for v in self.model.enums[field.type].values]
            return str(min(values)), str(max(values))
        kind = field.type.removesuffix("_t").upper()
        return "0" if kind.startswith("U") else f"{kind}_MIN", f"{kind}_MAX"

    # Stubs.

    def stub_type(self, definition, name, default, annotation):
        if annotation:
            return annotation.value
        if definition.name in ("gemm", "matmul", "run") and name in ("a", "b"):
            return "_Operand"
        if name == "bias" and definition.name in ("gemm", "matmul", "run"):
            return "_Bias"
        if name in ("alpha", "beta") and default != "None" or definition.owner == "Plan" and name in ("alpha", "beta"):
            return "complex | None" if default == "None" else "complex"
        if name in TYPES:
            return TYPES[name]
        if default in ("True", "False"):
            return "bool"
        if default and default[0] in "'\"":
            return "str"
        if default is None or default == "None":
            is_result = name in definition.result.strip("()").split(", ") and name in [n for n, *_ in definition.keywords]
            return "_Source" if default is None else f"_Source | {'Literal[False] | ' if is_result else ''}None"
        return "float" if "." in default or "e" in default else "int"

    def stub_result(self, definition):
        if definition.result.startswith("["):
            return "list[Any]"
        if definition.result.startswith("("):
            return f"tuple[{', '.join('Any' for _ in definition.result.split(', '))}]"
        return "_C" if definition.name == "copy" else "Any"

    def stub(self, definition, recorded, is_method=True):
        """The stubs of a method; overloads by the result's array where that says the type."""
        forms = [(None, None, self.stub_result(definition))]
        c = next((n for n, *_ in definition.positional if n in ("c", "out")), None)
        if definition.name in ("gemm", "matmul", "push") or definition.owner == "Plan":
            forms = [("_Numpy", "None", "_Numpy"), ("_Operand", "None", "Any"), ("_Operand", "_C", "_C")]
            forms = forms[1:] if definition.name == "push" else forms
        names = [definition.name] if recorded else [f"{definition.name}_async", definition.name]
        for name in names:
            if definition.owner == "Plan":  # without operands of a GEMM
                options = ", ".join(f"{o.name}: {o.type} = ..." for o in self.taken(definition, False))
                yield "@overload"
                yield f"def {name}(self, a: OperationDesc, b: None = ..., c: None = ..., *, {options}) -> {'Job[Any]' if name.endswith('_async') else 'Any'}: ..."
            for source, of_result, result in forms:

                def shown(parameter, default, annotation):
                    kind = self.stub_type(definition, parameter, default, annotation)
                    if source and parameter in ("a", "b"):
                        kind = source
                    if of_result and parameter == c:
                        return f"{c}: {of_result}" + (" = ..." if of_result == "None" else "")
                    return f"{parameter}: {kind}" + ("" if default is None or parameter == "b" and source else " = ...")

                if len(forms) > 1:
                    yield "@overload"
                result_of = f"Job[{result}]" if name.endswith("_async") else result
                yield f"def {name}({self.signature(definition, recorded, is_method, shown)}) -> {result_of}: ..."

    def methods_of(self, name):
        if name == "module":
            return list(self.stub(next(d for d in self.classes["Context"] if d.name == "matmul"), False, False))
        if name == "Graph":
            recorded = [line for d in self.classes["Context"] if not d.unrecorded for line in self.stub(d, True)]
            return recorded + [line for d in self.classes["Graph"] for line in self.stub(d, d.recording)]
        return [line for d in self.classes[name] for line in self.stub(d, False)]

    @staticmethod
    def members(enum):
        own = {v.name[len(enum.prefix):]: int(v.value, 0) for v in enum.values}
        return {("_" if name[0].isdigit() else "") + name: value for name, value in own.items()}

    def errors(self):
        """The name and the value of each failing status."""
        for value in self.model.enums["sg_status"].values:
            if value.value.startswith("-"):
                yield pascal(value.name.removeprefix("SG_STATUS_")), value

    def enums(self, names):
        for enum in (e for e in self.model.enums.values() if pascal(e.name) in names):
            yield f"class {pascal(enum.name)}(enum.IntEnum):"
            yield from (f"    {name} = {value}" for name, value in self.members(enum).items())
            yield ""

    def tables(self, template):
        """What the package makes its exceptions, enums and records of; the stubs' template names them."""
        listed = template.partition("# enums: ")[2].partition("\n")[0].split()
        enums = {pascal(e.name): (prose(e.doc, {}), self.members(e)) for e in self.model.enums.values() if pascal(e.name) in listed}
        errors = {name: (int(value.value), BASES.get(name, []), prose(value.doc, {})) for name, value in self.errors()}
        structs = dict(line.removeprefix("# record: ").split(" = ") for line in template.splitlines() if line.startswith("# record: "))
        records = {name: (struct, prose(self.model.structs[struct].doc, {})) for name, struct in structs.items()}
        gemm = {f"stride_{x}": f"the stride from item to item of {x}" for x in ("a", "b", "c", "bias")} | {"bias_shape": "bias"}
        names = {"gemm": gemm, "gemm_grouped": gemm, **{r.definition.name: r.names() for r in self.rules}}
        names["matmul"] = {**gemm, "c": "out", "stride_c": gemm["stride_c"].replace("of c", "of out")}
        order = f"({', '.join(o.default for o in self.options)},)"
        return f"DEFAULT_ORDER = {order}\nENUMS = {enums!r}\nERRORS = {errors!r}\nRECORDS = {records!r}\nNAMES = {{\n" + "".join(
            f"    {operation!r}: {of!r},\n" for operation, of in names.items()) + "}\n"

    def record_class(self, name, struct):
        yield f"class {name}(_Record):"
        counts = {f.name.removesuffix("s") + "_count" for f in struct.fields if f.array and f.type in self.model.structs}
        for f in (f for f in struct.own if f.name not in counts):
            kind = "str" if f.type == "char" else f"tuple[{pascal(f.type)}, ...]" if f.type in self.model.structs else (
                pascal(f.type) if f.type in self.model.enums else "float" if f.type == "double" else "int")
            yield f"    {f.name}: {kind}"
        yield ""

    def stubs(self, template):
        for line in template.splitlines():
            command, _, words = line.strip().removeprefix("# ").partition(": ")
            indent = line[:len(line) - len(line.lstrip())]
            if line.strip().startswith("# enums: "):
                yield from self.enums(words.split())
            elif line == "# errors":
                bases = {name: ", ".join(["Error", *BASES.get(name, [])]) for name, _ in self.errors()}
                yield from (f"class {name}({b.replace('Can', 'concurrent.futures.Can')}): ..." for name, b in bases.items())
            elif line.strip().startswith("# record: "):
                name, struct = words.split(" = ")
                yield from self.record_class(name, self.model.structs[struct])
            elif line.strip().startswith("# methods: "):
                yield from (indent + each for each in self.methods_of(words))
            else:
                yield line


def main():
    folder, definitions, template, *headers = map(pathlib.Path, sys.argv[1:])
    made = Python(Model(headers), definitions.read_text())
    (folder / "_operations.py").write_text("\n\n".join(made.operations()) + "\n")
    (folder / "operations.py").write_text("\n\n".join(made.described_operations()) + "\n")
    (folder / "operations.pyi").write_text("\n".join(made.described_stubs()) + "\n")
    (folder / "_functions.py").write_text("\n\n".join(made.functions()) + "\n")
    (folder / "_tables.py").write_text(HEAD + made.tables(template.read_text()))
    (folder / "__init__.pyi").write_text("\n".join(made.stubs(template.read_text())) + "\n")
    (folder / "order.h").write_text("\n".join(made.order_header()) + "\n")
    (folder / "operations.inc").write_text("\n".join(table(made.rules)) + "\n")


if __name__ == "__main__":
    main()
