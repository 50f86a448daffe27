# SPDX-License-Identifier: Apache-2.0
"""The classes of classes.py: their reader, and what the writers of Java and C# share (java_members.py, csharp_members.py)."""
import ast
import dataclasses
import pathlib
import re

from names import pascal

DEFINITIONS = pathlib.Path(__file__).with_name("classes.py")
OPERATORS = {ast.Add: (5, "+"), ast.Sub: (5, "-"), ast.Mult: (6, "*"), ast.FloorDiv: (6, "/"), ast.Mod: (6, "%"), ast.And: (2, "&&"),
             ast.Or: (1, "||"), ast.Eq: (3, "=="), ast.NotEq: (3, "!="), ast.Lt: (4, "<"), ast.Gt: (4, ">"), ast.LtE: (4, "<="), ast.GtE: (4, ">=")}


@dataclasses.dataclass
class Parameter:
    name: str
    type: str
    doc: str
    default: object = None  # in both languages
    csharp_default: object = None


@dataclasses.dataclass
class Member:
    """A method, or a field without parameters and body."""

    name: str
    type: str
    doc: str
    parameters: list
    body: list
    marks: dict  # of decorators: their arguments
    result: str = ""
    raises: list = dataclasses.field(default_factory=list)
    value: object = None  # of a field that follows from others

    @property
    def hidden(self):
        return self.name.startswith("_")

    def named(self, language, case):
        return self.marks.get(language, [case(self.name.lstrip("_"))])[0]

    @property
    def native(self):
        """The call of the library with which the body ends, or None."""
        last = self.body[-1] if self.body else None
        call = getattr(last, "value", None)
        return call if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.startswith("sg_") else None


@dataclasses.dataclass
class Class:
    name: str
    base: str
    doc: str
    fields: list
    methods: list


def marks_of(node):
    return {d.func.id if isinstance(d, ast.Call) else d.id: [a.value for a in d.args] if isinstance(d, ast.Call) else [] for d in node.decorator_list}


def field_of(node):
    parts = node.annotation.elts if isinstance(node.annotation, ast.Tuple) else [node.annotation]
    kind = parts.pop(0).id if isinstance(parts[0], ast.Name) else "long"
    texts = [p.value for p in parts]
    marks = {"csharp": texts[1:]} if len(texts) > 1 else {}
    return Member(node.target.id, kind, texts[0], [], [], marks, value=node.value)


def method_of(node):
    text = ast.get_docstring(node) or ""
    described, about, result, raises = {}, [], "", []
    for line in text.splitlines():
        found = re.match(r"(?:(\w+): |raises (\w+): |-> )(.*)", line)
        if found and found[1] in [a.arg for a in node.args.args]:
            described[found[1]] = found[3]
        elif found and found[2]:
            raises.append((found[2], found[3]))
        elif line.startswith("-> "):
            result = line[3:]
        elif line:
            about.append(line)
    parameters = []
    defaults = [None] * (len(node.args.args) - len(node.args.defaults)) + node.args.defaults
    for argument, default in zip(node.args.args, defaults):
        kind, optional = argument.annotation, None
        if isinstance(kind, ast.Subscript):
            kind, optional = kind.value, kind.slice
        parameters.append(Parameter(argument.arg, kind.id, described.get(argument.arg, ""), default, optional))
    body = node.body[1:] if text else node.body
    returns = node.returns.id if node.returns else "void"
    return Member(node.name, returns, " ".join(about), parameters, body, marks_of(node), result, raises)


def type_of(declaration):
    """The type of a parameter or an output in C, and its name."""
    kind, name = re.fullmatch(r"(?:const )?(\w+ \**)(\w+)", declaration).groups()
    known = {"int32_t ": "int", "int32_t *": "int", "double *": "double", "uint64_t *": "long", "char *": "Path", "int64_t ": "Duration", "void *": "address", "void **": "address"}
    return known.get(kind) or pascal(kind.strip("* ")), name.removesuffix("_ns")


def documentation(functions, name):
    """What a function is, and its parameters' documentation by name."""
    about, *described = re.split(r"\s*@(?:param(?:\[[\w,]+\])? |return )", functions[name].doc)
    documented = dict(d.split(" ", 1) for d in described if " " in d)
    for own, text in documented.items():
        other = re.fullmatch(r"As in (sg_\w+)\.", text)
        if other and other[1] in functions:
            documented[own] = documentation(functions, other[1])[1].get(own, text)
    return about, documented


def bound(node, functions):
    """A method that only calls a function of the library, as the header declares and documents it."""
    name = node.args[0].id
    function = functions[name]
    given = {k.arg: k.value for k in node.keywords}
    about, documented = documentation(functions, name)
    declared = [type_of(p) for p in function.parameters[1:]]
    inputs = [(kind, own) for kind, own in declared if not own.startswith("out_") and own not in ("text", "data", "size")]
    outputs = [(kind, own) for kind, own in declared if own.startswith("out_")]
    tests = about.startswith("Tests whether")
    if "timeout" in dict((own, kind) for kind, own in inputs):
        result = "waited"
    elif declared and declared[-1][1] == "out_size":
        result = "Text" if "char *text" in function.parameters else "bytes"
    else:
        result = "bool" if tests else outputs[0][0] if outputs else "void"
    told = documented.get(outputs[0][1], "") if outputs and result in ("int", "long", "bool", "double", "address") else ""
    told = re.sub(r"[;.]? ?\b(NULL|0) on failure\.| \(see the top of this file\)", "", told)
    told = re.sub(r"\b([01]): ", lambda m: ("false: ", "true: ")[int(m[1])], told) if tests else told
    parameters = []
    for kind, own in inputs:
        default = given.get(own)
        optional = default.elts[0] if isinstance(default, ast.List) else None
        doc = "" if own == "timeout" else documented.get(own, f"the {own.replace('_', ' ')}")
        parameters.append(Parameter(own, kind, doc, None if optional else default, optional))
    called = ast.Expr(ast.Call(node.args[0], [ast.Name(own) for _, own in inputs], []))
    marks = {language: [text.value] for language, text in zip(("java", "csharp"), node.args[1:])}
    marks.update({k: [given[k].value] for k in ("only", "this") if k in given})
    about = "Whether" + about.removeprefix("Tests whether") if tests else about
    return Member(name.split("_", 2)[2], result, about, parameters, [called], marks, told)


def classes(functions):
    for node in ast.parse(DEFINITIONS.read_text()).body:
        if isinstance(node, ast.ClassDef):
            yield Class(node.name, node.bases[0].id if node.bases else "", " ".join((ast.get_docstring(node) or "").split()),
                        [field_of(n) for n in node.body if isinstance(n, ast.AnnAssign)],
                        [method_of(n) if isinstance(n, ast.FunctionDef) else bound(n.value, functions) for n in node.body
                         if isinstance(n, ast.FunctionDef) or isinstance(getattr(n, "value", None), ast.Call)])


def snake(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


class Members:
    """Writes the classes in a language, which says: types, method, refusals, number, cast, and how a class and its calls look."""

    def __init__(self, emitter):
        self.emitter, self.model = emitter, emitter.model
        self.classes = list(classes(self.model.functions))
        self.bound = {m.native.func.id: (c, m) for c in self.classes for m in c.methods if m.native}
        self.handles = {c.name for c in self.classes if c.base == "NativeObject"} | {"Graph", "Job"}

    def written(self, language):
        for self.own in self.classes:
            self.methods = [m for m in self.own.methods if m.marks.get("only", [language]) == [language]]
            if own_struct := self.model.structs.get(self.own.base):
                self.sizes = [(Member(f.name, "long", f.doc, [], [], {}), int(f.init)) for f in own_struct.own]
                self.own = dataclasses.replace(self.own, fields=[f for f, _ in self.sizes] + self.own.fields)
            yield self.own

    def text(self, comment):
        """A comment in the language's words, with names of functions as those of methods."""
        def method(found):
            of, member = self.bound.get(found[0], (None, None))
            owner, _, name = found[0].removeprefix("sg_").partition("_")
            return f"{of.name if of else owner.capitalize()}.{self.reference(member, self.closing if name == 'release' else name)}"

        return re.sub(r"\bsg_(?:" + "|".join(sorted(h.lower() for h in self.handles)) + r")_\w+", method, self.emitter.text(comment))

    def is_property(self, member):
        """Whether C# has it as a property: it tells something of the object."""
        kinds = ("int", "bool", "double")
        return not member.parameters and member.native and "only" not in member.marks and (member.type in kinds or f"sg_{snake(member.type)}" in self.model.structs)

    # Expressions and statements.

    def name(self, name):
        if name in self.known:
            return self.local(name)
        field = next((f for f in self.own.fields if f.name == name), None)
        if field:
            return self.expression(field.value) if field.value else self.field(field)
        return self.symbols.get(name) or self.space * (name in self.emitter.constants) + self.emitter.constants.get(name, name)

    def nested(self, node, level):
        """An operand of an operator, in brackets if its own binds less."""
        text = self.expression(node)
        operator = getattr(node, "op", None) or getattr(node, "ops", [None])[0]
        binds = 0 if isinstance(node, ast.IfExp) else OPERATORS.get(type(operator), (9,))[0]
        return f"({text})" if binds < level else text

    def expression(self, node):
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.Constant):
            return f'"{node.value}"' if isinstance(node.value, str) else str(node.value).lower() if isinstance(node.value, bool) else str(node.value)
        if isinstance(node, ast.Attribute):
            return f"{self.expression(node.value)}.{self.attribute(node.attr)}"
        if isinstance(node, (ast.BinOp, ast.Compare)):
            level, operator = OPERATORS[type(node.op if isinstance(node, ast.BinOp) else node.ops[0])]
            right = node.right if isinstance(node, ast.BinOp) else node.comparators[0]
            return f"{self.nested(node.left, level)} {operator} {self.nested(right, level + 1)}"
        if isinstance(node, ast.BoolOp):
            level, operator = OPERATORS[type(node.op)]
            return f" {operator} ".join(self.nested(v, level) for v in node.values)
        if isinstance(node, ast.UnaryOp):
            return ("!" if isinstance(node.op, ast.Not) else "-") + self.nested(node.operand, 8)
        if isinstance(node, ast.IfExp):
            return f"{self.nested(node.test, 1)} ? {self.nested(node.body, 1)} : {self.expression(node.orelse)}"
        if isinstance(node, ast.JoinedStr):
            parts = [self.expression(p) if isinstance(p, ast.Constant) else self.nested(p.value, 9) for p in node.values]
            return " + ".join(parts if parts[0].startswith('"') else ['""', *parts])
        return self.call(node)

    def call(self, node):
        arguments = [self.expression(a) for a in node.args]
        if isinstance(node.func, ast.Attribute):
            return f"{self.expression(node.func.value)}.{self.called(node.func.attr, arguments)}"
        name = node.func.id
        shared = {"number": self.number, "real": lambda x: f"(double) {x}", "is_missing": self.is_missing, "typed": self.typed}
        if name in shared:
            return shared[name](*arguments)
        if name == "max":
            return f"{self.math}{self.emitter.method(name)}({', '.join(arguments)})"
        return f"new {name}({', '.join(arguments)})" if name[0].isupper() else self.called(name, arguments)

    def called(self, name, arguments):
        own = next((m for c in self.classes for m in c.methods if not arguments and name == self.plain_name(m) and self.is_property(m)), None)
        return own.named("csharp", pascal) if own and self.has_properties else f"{self.emitter.method(name.lstrip('_'))}({', '.join(arguments)})"

    @staticmethod
    def plain_name(member):
        """has_happened of hasHappened."""
        return snake(member.marks.get("java", [member.name])[0])

    def statement(self, node):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            kind = "" if target.id in self.known else f"{self.types[node.annotation.id]} " if isinstance(node, ast.AnnAssign) else self.kind_of(node.value)
            self.known.add(target.id)
            return f"{kind}{self.local(target.id)} = {self.expression(node.value)};"
        if isinstance(node, ast.If):
            inner = [self.statement(n) for n in node.body]
            test = self.expression(node.test)
            return f"if ({test}) {inner[0]}" if len(inner) == 1 else "\n".join([f"if ({test}) {{", *(f"  {s}" for s in inner), "}"])
        if isinstance(node, ast.Return):
            return f"return {self.expression(node.value)};" if node.value else "return;"
        call = node.value
        if getattr(call.func, "id", "").startswith("refuse"):
            return self.refusal(call.func.id, call.args)
        return f"{self.expression(call)};"

    def kind_of(self, value):
        """The type of a local without an annotation: a number, a text or a truth."""
        while isinstance(value, ast.IfExp):
            value = value.body
        texts, truths = (ast.JoinedStr,), (ast.Compare, ast.BoolOp)
        is_text = isinstance(value, texts) or isinstance(value, ast.Constant) and isinstance(value.value, str)
        return f"{self.types['Text' if is_text else 'bool' if isinstance(value, truths) else 'long']} "

    def statements(self, member):
        """The statements of a body, but for a call of the library at its end."""
        self.known = {p.name for p in member.parameters}
        return [line for n in member.body[:-1 if member.native else None] for line in self.statement(n).splitlines()]

    # Calls of the library.

    def arguments(self, member):
        """Those of the call, and the kind of its output: None, "struct", or the C type."""
        call = member.native
        declared = self.model.functions[call.func.id].parameters
        given = [a for a in call.args]
        if "self" not in [getattr(a, "id", "") for a in given]:
            given.insert(0, ast.Name("self"))
        kinds = {p.name: p.type for p in member.parameters}
        passed = [self.passed(self.expression(a), self.own.name if a.id == "self" else kinds.get(a.id, "")) if isinstance(a, ast.Name) else self.expression(a)
                  for a in given]
        passed = [self.sized(text, declared[i]) for i, text in enumerate(passed)]
        return passed, declared[len(given)] if len(declared) > len(given) else None

    def kept(self, member):
        """Objects that must live until the call is over."""
        return [self.symbols["self"], *(self.local(p.name) for p in member.parameters if p.type in self.handles or p.type == "Matrix")]

