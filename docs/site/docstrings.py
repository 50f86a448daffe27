# SPDX-License-Identifier: Apache-2.0
"""The package's docstrings, which are plain text, as fields of Sphinx: a paragraph of `name, name: meaning` describes parameters, whose
types are those of the stub; `as for gemm_async` becomes what that says; an indented paragraph is code."""
import ast
import inspect
import re

ALIASES = {"_Operand": "array, Job or a list of them", "_Source": "array or Job", "_Array": "array", "_Numpy": "numpy.ndarray", "_C": "array",
           "_Bias": "array, Job, number or None", "_Op": '"N", "T" or "C"', "_Compute": "str or Compute", "_Activation": "str or Activation",
           "_Place": "str or MemoryKind", "_Order": '"C" or "F"', "_Shape": "sequence of int", "_Arrays": "list or dict", "Any": "object", "npt.NDArray": "numpy.ndarray"}
AT_CALL = {"InvalidArgument": "an argument breaks a rule, which the message says with the argument's name and value.",
           "TypeError": "an argument is of no such type, or has no such name.",
           "Unsupported": "the device cannot do that for these types.",
           "OutOfMemory": "there is too little memory, also for the smallest plan.",
           "Busy": "the context's limit of jobs is reached."}
OF_THE_JOB = {"DeadlineExceeded": "the job had not completed when `timeout` was over.",
              "DependencyFailed": "a job that made one of the operands, or one of `after`, failed.",
              "BackendFailure": "the device failed.",
              "Cancelled": "another thread cancelled the job."}


def readable(annotation):
    """`_Source | Literal[False] | None` is "array, Job or False"."""
    if isinstance(annotation, ast.BinOp):
        parts = [readable(annotation.left), readable(annotation.right)]
        return " or ".join(dict.fromkeys(parts))
    if isinstance(annotation, ast.Subscript):
        of, inner = ast.unparse(annotation.value), annotation.slice
        items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if of == "Literal":
            return " or ".join(f'"{x.value}"' if isinstance(x.value, str) else str(x.value) for x in items)
        if of in ("Sequence", "Iterable", "Iterator", "Generator"):
            return f"{of.lower()} of {readable(items[0])}"
        if of in ("npt.NDArray", "Job"):
            return ALIASES.get(of, of)
        return f"{of}[{', '.join(map(readable, items))}]"
    if isinstance(annotation, ast.Constant) and annotation.value is Ellipsis:
        return "..."
    text = ast.unparse(annotation)
    return ALIASES.get(text, text)


class Stub:
    """Annotations of the package's stub, by the qualified names of functions."""

    def __init__(self, text):
        self.types, self.results, self.bases = {}, {}, {}
        self._read(ast.parse(text).body, "")

    def _read(self, body, prefix):
        for node in body:
            if isinstance(node, ast.ClassDef):
                self.bases[node.name] = [ast.unparse(base).partition("[")[0] for base in node.bases]
                self._read(node.body, node.name + ".")
            elif isinstance(node, ast.FunctionDef):
                name = prefix + node.name
                types, arguments = self.types.setdefault(name, {}), node.args
                for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                    if each.annotation is not None:
                        types.setdefault(each.arg, []).append(each.annotation)
                if node.returns is not None:
                    self.results.setdefault(name, []).append(node.returns)

    def _of(self, table, name):
        """Of the method, or of the one that it overrides."""
        if name in table:
            return table[name]
        of, _, method = name.rpartition(".")
        for base in self.bases.get(of, []):
            found = self._of(table, f"{base}.{method}")
            if found:
                return found
        return None

    def type_of(self, function, parameter):
        """Of all overloads; an array of NumPy is an array."""
        found = [readable(x) for x in (self._of(self.types, function) or {}).get(parameter, [])]
        found = list(dict.fromkeys(found))
        wider = [x for x in found if x not in ("numpy.ndarray", "None")]
        return " or ".join(wider or found)

    def result_of(self, function):
        found = list(dict.fromkeys(readable(x) for x in self._of(self.results, function) or []))
        return " or ".join(x for x in found if x != "None") if len(found) < 4 else ""


class Docstrings:
    def __init__(self, package, stub):
        self.package, self.stub, self.known = package, Stub(stub), {}

    @staticmethod
    def parameters(of):
        try:
            of = of.__init__ if inspect.isclass(of) else of
            return [name for name, one in inspect.signature(of).parameters.items() if one.kind is not one.VAR_KEYWORD and name != "self"]
        except (TypeError, ValueError):
            return []

    def find(self, name, near):
        """The function that `as for NAME` means: of the same class, of Context, or of the package."""
        of, _, method = name.rpartition(".")
        for place in (of, near, "Context"):
            found = getattr(getattr(self.package, place, None), method, None) if place else None
            if found is not None:
                return found, f"{place}.{method}"
        return getattr(self.package, method, None), method

    def described(self, of, name, depth=0):
        """(paragraphs, {parameter: meaning}) of a function's docstring."""
        if name not in self.known:
            self.known[name] = self.read(of, name, depth)
        return self.known[name]

    def read(self, of, name, depth):
        names, paragraphs, meanings = self.parameters(of), [], {}
        start = re.compile(r"(?:^|(?<=[.;!?)]) )((?:\w+,\s+)*\w+): ")
        for paragraph in re.split(r"\n\s*\n", inspect.getdoc(of) or ""):
            text = " ".join(line.strip() for line in paragraph.split("\n"))
            found = [x for x in start.finditer(text) if names and all(each in names for each in re.split(r",\s+", x[1]))]
            if paragraph.startswith("    ") or not found:
                paragraphs.append(paragraph)
                continue
            if found[0].start() > 0:
                paragraphs.append(text[:found[0].start()])
            for one, following in zip(found, [*found[1:], None]):
                meaning = text[one.end():following.start() if following else len(text)].strip()
                for each in re.split(r",\s+", one[1]):
                    meanings[each] = self.elsewhere(meaning, each, name, depth)
        return paragraphs, meanings

    def elsewhere(self, meaning, parameter, name, depth):
        """What `as for NAME` says there."""
        found = re.fullmatch(r"as for ([\w.]+?)\.?", meaning)
        if not found or depth > 4:
            return meaning
        of, qualified = self.find(found[1], name.rpartition(".")[0])
        return self.described(of, qualified, depth + 1)[1].get(parameter, meaning) if of is not None else meaning

    def fields(self, of, name):
        """The lines of reStructuredText of a function or class."""
        paragraphs, meanings = self.described(of, name)
        lines = []
        for paragraph in paragraphs:
            rows = paragraph.split("\n")
            lines += [*(["::", ""] if rows[0].startswith("    ") else []), *rows, ""]
        function = f"{name}.__init__" if inspect.isclass(of) else name
        for parameter in self.parameters(of) if meanings else []:
            text = meanings.get(parameter, "")
            lines.append(f":param {parameter}: {text}".rstrip())
            kind = self.stub.type_of(function, parameter)
            if kind:
                lines.append(f":type {parameter}: {kind}")
        result = "" if inspect.isclass(of) else self.stub.result_of(function)
        if callable(of) and result:
            lines.append(f":rtype: {result}")
        lines += [f":raises {error}: {why}" for error, why in self.raised(of, name).items()]
        return [*lines, ""]

    def raised(self, of, name):
        """The rules of every submission; a blocking call raises what its job failed with, too."""
        if not inspect.isfunction(of) or "untracked" not in self.parameters(of) or name.startswith(("Graph.", "Stage.")):
            return {}
        return AT_CALL if name.endswith("_async") else {**AT_CALL, **OF_THE_JOB}
