# SPDX-License-Identifier: Apache-2.0
"""C#'s enums, exceptions, blittable structs and classes of structs; see csharp.py."""
import os
import re
from xml.sax.saxutils import escape

import calls
from calls import is_switch
from managed import Managed
from names import pascal

NUMBERS = {"int32_t": "int", "int64_t": "long", "uint32_t": "uint", "uint64_t": "long", "size_t": "long", "double": "double", "float": "float"}
KEYWORDS = ("event", "in", "out", "ref", "params", "object", "string", "fixed", "lock")
UNSIGNED = {"uint32_t": ("int", "uint"), "uint64_t": ("long", "ulong"), "size_t": ("long", "ulong")}
# Exceptions with a name of their own, or with a counterpart in .NET, from which they derive.
EXCEPTIONS = {
    "InvalidArgument": ("InvalidArgumentException", "System.ArgumentException"),
    "InvalidHandle": ("InvalidHandleException", "System.InvalidOperationException"),
    "OutOfMemory": ("DeviceOutOfMemoryException", "System.OutOfMemoryException"),
    "Unsupported": ("UnsupportedException", "System.NotSupportedException"),
    "Cancelled": ("JobCancelledException", "System.OperationCanceledException"),
    "DeadlineExceeded": ("DeadlineExceededException", "System.TimeoutException"),
    "IoFailure": ("IoFailureException", "System.IO.IOException"),
    "Internal": ("InternalErrorException", "StreamGemmException"),
}


def word(name):
    return f"@{name}" if name in KEYWORDS else name


def member(enum, value):
    """The name of an enumerator: without what all of them begin with."""
    common = re.sub(r"[^_]*$", "", os.path.commonprefix([v.name for v in enum.values]))
    return pascal(value.name[len(common):])


class CSharpValues(Managed):
    case = method = staticmethod(pascal)
    escape = staticmethod(escape)

    def __init__(self, model):
        super().__init__(model)
        self.constants = {v.name: f"{pascal(e.name)}.{member(e, v)}" for e in model.enums.values() for v in e.values}

    def summary(self, comment, indent, left_out="null"):
        return f"{indent}/// <summary>{self.text(comment, left_out)}</summary>"

    # Enums, and classes over the structs of SWIG.

    def enums(self):
        for enum in self.model.enums.values():
            yield self.summary(enum.doc, "  ")
            if enum.name.endswith("_flags"):
                yield "  [System.Flags]"
            yield f"  public enum {pascal(enum.name)} {{"
            for value in enum.values:
                yield self.summary(value.doc, "    ")
                yield f"    {member(enum, value)} = {value.value},"
            yield "  }"
            yield ""

    def property_of(self, field):
        """C# type, expression that reads and statement that writes; None for other members than numbers, text and enumerators."""
        native = f"native.{field.name}"
        flags = calls.flags_type(self.model, field)
        if field.type == "char" and (field.array or field.const):
            return "string", native, f"{native} = value"
        if field.array and field.type.startswith("sg_"):
            one, kind = field.name.removesuffix("s"), pascal(field.type)
            return f"System.Collections.Generic.IReadOnlyList<{kind}>", f"{kind}.Each(native.{one}_count, native.{one}, native)", None
        if field.array or field.pointer:
            return None
        if flags:
            return pascal(flags), f"({pascal(flags)}){native}", f"{native} = (uint)value"
        if field.type in self.model.enums:
            return pascal(field.type), f"({pascal(field.type)}){native}", f"{native} = (int)value"
        if is_switch(field):
            return "bool", f"{native} != 0", f"{native} = value ? 1 : 0"
        if field.type in UNSIGNED:
            public, proxy = UNSIGNED[field.type]  # identifiers use all bits; sizes do not
            return public, f"unchecked(({public}){native})", f'{native} = ({proxy})Native.Size(value, "{pascal(field.name)}")'
        return (NUMBERS[field.type], native, f"{native} = value") if field.type in NUMBERS else None

    def properties(self, struct):
        counts = {f.name.removesuffix("s") + "_count" for f in struct.fields if f.array and f.type.startswith("sg_")}
        return [(f, self.property_of(f)) for f in struct.own if f.name not in counts]

    def entries(self):
        """The structs that another one has an array of."""
        for name in sorted({f.type for s in self.model.structs.values() for f in s.fields if f.array and f.type.startswith("sg_")}):
            struct = self.model.structs[name]
            found = self.properties(struct)
            yield self.summary(struct.doc, "  ")
            yield f"  public sealed class {pascal(name)} {{"
            for field, (kind, _, _) in found:
                yield self.summary(field.doc, "    ")
                yield f"    public {kind} {pascal(field.name)} {{ get; }}"
            yield f"    internal {pascal(name)}(Internal.{name} native) {{"
            for field, (_, read, _) in found:
                yield f"      {pascal(field.name)} = {read};"
            yield "    }"
            yield f"    internal static {pascal(name)}[] Each(int count, System.Func<int, Internal.{name}> at, object owner) {{"
            yield f"      var all = new {pascal(name)}[count];"
            yield f"      for (int i = 0; i < count; ++i) all[i] = new {pascal(name)}(at(i));"
            yield "      System.GC.KeepAlive(owner);"
            yield "      return all;"
            yield "    }"
            yield "  }"
            yield ""

    def structs(self):
        filled = {p for f in self.model.functions.values() for p in f.parameters}
        for struct in (s for s in self.model.structs.values() if s.sized and not s.name.endswith("_desc")):
            properties = self.properties(struct)
            if not all(p for _, p in properties):
                continue
            filled_in = any(re.fullmatch(rf"{struct.name} \*out_\w+", p) for p in filled)
            yield self.summary(struct.doc, "  ")
            yield f"  public sealed class {pascal(struct.name)} {{"
            yield f"    internal readonly Internal.{struct.name} native = new Internal.{struct.name}();"
            if filled_in:
                yield f"    internal {pascal(struct.name)}() {{ }}"
            for field, (kind, read, write) in properties:
                setter = "" if filled_in else f" set {{ {write}; }}"
                yield self.summary(re.sub(r"^sg_\w+_flags\b", "Flags", field.doc), "    ")
                yield f"    public {kind} {pascal(field.name)} {{ get {{ return {read}; }}{setter} }}"
            yield "  }"
            yield ""

    # Descriptors.

    def blittable(self):
        """The descriptors, and the structs in them."""
        names = [o.desc.name for o in self.model.operations]
        names += [n for n in ("sg_copy_desc", "sg_stage_desc", "sg_weight", "sg_submit", "sg_completion") if n in self.model.structs]
        for name in names:
            names += [f.type for f in self.model.structs[name].fields if f.type in self.model.structs and not f.pointer]
        return [self.model.structs[n] for n in dict.fromkeys([*names, "sg_custom_operand"])]

    def native_type(self, field):
        if field.pointer or field.type in self.model.callbacks:
            return "long"
        return pascal(field.type) if field.type in self.model.enums else NUMBERS.get(field.type, field.type)

    def initial(self, struct, values):
        parts = []
        for field, value in zip(struct.fields, values):
            if field.name == "struct_size":
                parts.append(f"struct_size = {struct.size}")
            elif isinstance(value, list):
                inner = self.initial(self.model.structs[field.type], value)
                if inner != f"new {field.type} {{  }}":
                    parts.append(f"{word(field.name)} = {inner}")
            elif value in self.constants:
                parts.append(f"{word(field.name)} = {self.constants[value]}")
            elif value in self.model.macros:
                parts.append(f"{word(field.name)} = {self.model.macros[value].text}")
            elif not re.fullmatch(r"NULL|0|0\.0|\(\w+\)0", value):
                parts.append(f"{word(field.name)} = {value}")
        return f"new {struct.name} {{ {', '.join(parts)} }}"

    def descriptors(self):
        for struct in self.blittable():
            yield "  [System.Runtime.InteropServices.StructLayout(System.Runtime.InteropServices.LayoutKind.Sequential)]"
            yield f"  internal unsafe struct {struct.name} {{"
            for f in struct.fields:
                yield f"    internal fixed {'byte' if f.type == 'char' else self.native_type(f)} {f.name}[{self.model.constant(f.array)}];" if f.array else f"    internal {self.native_type(f)} {word(f.name)};"
            if struct.fields[0].init is not None:
                yield f"    internal static readonly {struct.name} Initial = {self.initial(struct, [f.init for f in struct.fields])};"
            yield "  }"
            yield ""
        yield "  /// <summary>Numbers of the calls of calls.h.</summary>"
        yield "  internal static class Call {"
        for number, name in enumerate([*calls.SPECIAL, *(o.name for o in self.model.operations)]):
            yield f"    internal const int {pascal(name)} = {number};"
        yield "  }"

    def exceptions(self):
        failures = [v for v in self.model.enums["sg_status"].values if v.value.startswith("-")]
        cases = []
        for value in failures:
            status = pascal(value.name.removeprefix("SG_STATUS_"))
            name, base = EXCEPTIONS.get(status, (f"{status}Exception", "StreamGemmException"))
            own = base == "StreamGemmException"
            yield self.summary(value.doc, "  ")
            yield f"  public sealed class {name} : {base}{'' if own else ', IStreamGemmError'} {{"
            yield f"    internal {name}(string message) : base({f'Status.{status}, ' if own else ''}message) {{ }}"
            if not own:
                yield "    /// <inheritdoc/>"
                yield f"    public Status Status => Status.{status};"
            yield "  }"
            yield ""
            cases.append(f"        case Status.{status}: return new {name}(message);")
        yield "  internal static partial class Errors {"
        yield "    static System.Exception Made(Status status, string message) {"
        yield "      switch (status) {"
        yield from cases
        yield "        default: return new StreamGemmException(status, message);"
        yield "      }"
        yield "    }"
        yield "  }"
        yield ""
