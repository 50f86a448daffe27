# SPDX-License-Identifier: Apache-2.0
"""Java's classes of classes.py; see members.py."""
import re

from java_values import javadoc, plain
from members import Members, snake

FENCE = "java.lang.ref.Reference.reachabilityFence"
FIELD = re.compile(r"  /\*\* (.*) \[get\] \*/\n  (?:private |final |volatile )*([\w<>]+) (\w+);")
METHOD = re.compile(r"(?P<doc>  /\*\*(?:(?!\*/).)*\*/\n)  (?P<kind>public [\w<>\[\] ]*?)(?P<name>\w+)\((?P<parameters>[^)]*)\)", re.S)
RAISES = {"IllegalState": "IllegalStateException"}


class JavaMembers(Members):
    types = {"long": "long", "int": "int", "bool": "boolean", "double": "double", "Text": "String", "bytes": "byte[]", "void": "void", "address": "long",
             "Path": "java.nio.file.Path", "Duration": "java.time.Duration", "waited": "boolean", "NativeObject": "NativeObject"}
    symbols = {"self": "this", "LARGEST": "Long.MAX_VALUE", "ANY": "null", "MISSING": "null", "OP_W": '"opW"', "dtype": "memory.dtype", "memory": "memory"}
    space = ""  # before a constant
    has_properties = False
    math = "Math."
    @staticmethod
    def local(name):
        return "address" if name == "native" else plain(name)


    def field(self, field):
        return plain(field.name)

    def attribute(self, name):
        return "span(1, 0)" if name == "span" else plain(name)

    closing = "close"

    def reference(self, member, name):
        return member.named("java", plain) if member else plain(name)

    number = staticmethod("{}.value".format)
    is_missing = staticmethod("({} == null)".format)

    def typed(self, kind, text):
        return f'{kind}.name().toLowerCase(java.util.Locale.ROOT) + " " + {text}'

    def refusal(self, how, arguments):
        made = "IllegalStateException" if how == "refuse_state" else "StreamGemmException.InvalidArgument"
        return f"throw new {made}({self.expression(arguments[-1])});"

    def passed(self, text, kind):
        if kind == "Duration":
            return f"Times.nanos({text})"
        if kind == "Path":
            return f"{text}.toString()"
        return f"{text}.handle()" if kind in self.handles else f"{text}.value" if kind not in self.types and kind else text

    def sized(self, text, declared):
        return text.replace("this.handle()", "handle()")

    def type_of(self, name):
        return self.types.get(name, name)

    def signature(self, member, parameters, kind=None, name=None):
        access = "" if member.hidden or self.own.name == "Shapes" else "public "
        static = "static " if "static" in member.marks else ""
        kind = kind or (self.own.name if "this" in member.marks else self.type_of(member.type))
        override = "@Override\n  " if member.name == "to_string" else ""
        taken = ", ".join(f"{self.type_of(p.type)} {self.local(p.name)}" for p in parameters)
        return f"  {override}{access}{static}{kind} {name or member.named('java', plain)}({taken}) {{"

    def doc(self, member, parameters, result=None):
        if not member.doc:
            return ""
        if member.hidden or self.own.name == "Shapes":
            return f"\n  /** {self.text(member.doc)} */"
        tags = [f"@param {self.local(p.name)} {self.text(p.doc or 'how long to wait at most')}" for p in parameters]
        told = result or ("this" if "this" in member.marks else member.result or {
            "bool": "true if so", "waited": "false if the time passed", "void": "", "double": "seconds"}.get(
                member.type, "a new object, to be closed" if member.type in self.handles else "the value"))
        tags += [f"@return {self.text(told)}"] if told and result != "-" else []
        tags += [f"@throws {RAISES.get(n, 'StreamGemmException.' + n)} {self.text(t)}" for n, t in member.raises]
        return "\n" + javadoc("  ", self.text(member.doc), tags)

    def returned(self, member, call, arguments, out):
        """The statement of a call of the library."""
        kind = member.type
        made = f"org.streamgemm.internal.Native.{call}({', '.join(arguments)})"
        if kind in ("void", "this"):
            return f"{made};"
        if kind in ("Text", "bytes"):
            text = f"bytes((data, size) -> org.streamgemm.internal.Native.{call}({', '.join([*arguments, 'data', 'size'])}))"
            return f"return text({text});" if kind == "Text" else f"return {text};"
        if kind in ("bool", "waited"):
            return f"return {made} == {'1' if out else 'Status.OK.value'};"
        if kind in self.handles:
            return f"return new {kind}({made}{', this' if kind == 'Graph' else ''});"
        if f"sg_{snake(kind)}" in self.model.structs:
            return f"return {kind}.from(struct -> org.streamgemm.internal.Native.{call}({', '.join([*arguments, 'struct'])}));"
        return {"int": f"return (int) {made};", "long": f"return {made};", "address": f"return {made};",
                "double": f"return Double.longBitsToDouble({made});"}.get(kind, f"return {kind}.of((int) {made});")

    def method(self, member):
        lines = [self.doc(member, member.parameters).lstrip("\n"), self.signature(member, member.parameters)]
        body = self.statements(member)
        if member.native:
            arguments, out = self.arguments(member)
            after = ["return this;"] if "this" in member.marks else []
            body += ["try {", *(f"  {s}" for s in [self.returned(member, member.native.func.id, arguments, out), *after]), "} finally {",
                     *(f"  {FENCE}({o});" for o in self.kept(member)), "}"]
        return "\n".join(line for line in [*lines, *(f"    {s}" for s in body), "  }"] if line)

    def overloads(self, member):
        """The forms without the last parameters that have defaults, or without a limit."""
        name = member.named("java", plain)
        if member.type == "waited":
            arguments, _ = self.arguments(member)
            call = f"org.streamgemm.internal.Native.{member.native.func.id}(handle(), -1);"
            yield "\n".join([self.doc(member, [], "-").lstrip("\n"), self.signature(member, [], "void"), f"    try {{\n      {call}\n    }} finally {{\n      {FENCE}(this);\n    }}", "  }"])
        for count in range(len(member.parameters)):
            left_out = member.parameters[count:]
            if all(p.default for p in left_out):
                taken = member.parameters[:count]
                filled = ", ".join([*(self.local(p.name) for p in taken), *(self.expression(p.default) for p in left_out)])
                returns = "" if member.type == "void" else "return "
                yield "\n".join([self.doc(member, taken).lstrip("\n"), self.signature(member, taken), f"    {returns}{name}({filled});", "  }"])

    @staticmethod
    def getter(doc, kind, name, value):
        return f"{javadoc('  ', doc, ['@return the value'])}\n  public {kind} {name}() {{\n    return {value};\n  }}"

    def accessor(self, field):
        return self.getter(self.text(field.doc), self.type_of(field.type), plain(field.name), self.name(field.name))

    def members(self):
        self.known = set()
        yield from (self.accessor(f) for f in self.own.fields if f.doc)
        for member in self.methods:
            yield self.method(member)
            yield from self.overloads(member)

    def view(self):
        """The fields and the constructor of a view, and its struct."""
        stored = [f for f in self.own.fields if not f.value]
        yield "\n".join(f"  final {self.type_of(f.type)} {plain(f.name)};" for f in stored)
        taken = ", ".join(["Matrix memory", *(f"{self.type_of(f.type)} {plain(f.name)}" for f in stored)])
        yield "\n".join([f"  private {self.own.name}({taken}) {{", "    super(memory);", *(f"    this.{plain(f.name)} = {plain(f.name)};" for f in stored), "  }"])
        struct = self.model.structs[f"sg_{self.own.name.lower()}"]
        self.known = set()
        start = "place == 0 ? 0 : place + first * memory.elementSize()" if any(f.name == "first" for f in stored) else "place"
        writes = [f"    s.putLong(at + {f.offset}, {start if f.name == 'data' else self.name(f.name)});" for f in struct.own]
        yield "\n".join(["  void write(Scratch s, int at, long place) {", *writes, "  }"])

    def struct(self):
        """The fields of a struct, the constructor with those that have no default, setters, and what fills the struct in."""
        name, groups = self.own.name, {}
        yield "\n".join([*(f"  long {plain(f.name)} = {value};" for f, value in self.sizes),
                         *(f"  {f.type} {plain(f.name)} = {f.type}.of(0);" for f in self.own.fields if f.type != "long")])
        for field in self.own.fields:
            first = field.name.split("_")[0]
            groups.setdefault({"pad": "padding"}.get(first, first), []).append(field)
        for group, fields in groups.items():
            made = group == "kernel"
            tags = [f"@param {plain(f.name)} {self.text(f.doc)}" for f in fields] + ([] if made else ["@return this"])
            taken = ", ".join(f"{f.type} {plain(f.name)}" for f in fields)
            doc = "Windows of each pixel, without padding." if made else f"Sets the {group}."
            stores = "\n".join(f"    this.{plain(f.name)} = {plain(f.name)};" for f in fields)
            head = f"public {name}" if made else f"public {name} {group}"
            yield f"{javadoc('  ', doc, tags)}\n  {head}({taken}) {{\n{stores}\n    check();\n{'' if made else '    return this;' + chr(10)}  }}"
        checks = [f'    requireRange("{plain(f.name)}", {plain(f.name)}, {value});' for f, value in self.sizes]
        yield "\n".join(["  final void check() {", *checks, '    java.util.Objects.requireNonNull(layout, "layout");', "  }"])
        made, *rest = groups.values()
        yield self.emitter.copy_method(name, [plain(f.name) for f in made], [plain(f.name) for fields in rest for f in fields])
        writes = [f"    s.putLong(at + {f.offset}, {plain(f.name)});" for f in self.model.structs[self.own.base].own]
        yield "\n".join(["  void write(Scratch s, int at) {", *writes, "  }"])

    def files(self):
        """The classes that are written here as a whole."""
        for own in self.written("java"):
            if own.doc:
                parts, base = list(self.members()), ""
                if own.base == "View":
                    parts, base = [*self.view(), *parts], "extends View "
                elif own.base in self.model.structs:
                    parts = [*self.struct(), *(self.method(m) for m in self.methods)]
                elif own.base:
                    release = f"org.streamgemm.internal.Native::sg_{own.name.lower()}_release"
                    parts, base = [f"  {own.name}(long handle) {{\n    super(handle, {release});\n  }}", *parts], "extends NativeObject "
                body = "\n\n".join(parts)
                yield own.name, f"\n/** {self.text(own.doc)} */\n{'public ' if own.base else ''}final class {own.name} {base}{{\n{body}\n}}\n"

    def completed(self, name, source):
        """A class by hand, with its members of classes.py, with methods that read the fields whose documentation ends with [get],
        and with the short forms of its methods: without the parameters whose documentation ends with the value that they then
        have, as [= 0]."""
        more = list(self.emitter.gemm_members()) if name == "Gemm" else []
        more += [part for own in self.written("java") if own.name == name and not own.doc for part in self.members()]
        more += [self.getter(*found.groups(), found[3]) for found in FIELD.finditer(source)]
        for found in METHOD.finditer(source):
            values = dict(re.findall(r"@param (\w+) [^\[@]*\[= (.*)\]", found["doc"]))
            if values:
                taken = found["parameters"].split(", ")
                named = [p.split()[-1] for p in taken]
                doc = re.sub(r"   \* @param (?:%s) (?:(?!\n   \*(?: @|/)).)*\n" % "|".join(values), "", found["doc"], flags=re.S)
                doc = re.sub(r"\n   \*\n   \*/", "\n   */", doc)
                shown = ", ".join(p for p, n in zip(taken, named) if n not in values)
                passed = ", ".join(values.get(n, n) for n in named)
                kind = found["kind"].replace("synchronized ", "")
                returns = "" if kind.endswith("void ") else "return "
                more.append(f"{doc}  {kind}{found['name']}({shown}) {{\n    {returns}{found['name']}({passed});\n  }}")
        source = re.sub(r" \[= .*\]$| \[get\](?= \*/)", "", source, flags=re.M)
        return source if not more else source.rstrip().removesuffix("}") + "\n" + "\n\n".join(more) + "\n}\n"
