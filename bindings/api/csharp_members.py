# SPDX-License-Identifier: Apache-2.0
"""C#'s classes of classes.py; see members.py."""
from csharp_values import word
from members import Members
from names import camel, pascal

RAISES = {"IllegalState": "System.InvalidOperationException", "Unsupported": "UnsupportedException"}
VIEWS = ("Matrix", "Heads", "Images", "Sequence")  # structs, passed by reference


class CSharpMembers(Members):
    types = {"long": "long", "int": "int", "bool": "bool", "double": "double", "Text": "string", "bytes": "byte[]", "void": "void", "address": "System.IntPtr",
             "Path": "string", "Duration": "System.TimeSpan", "waited": "bool"}
    symbols = {"self": "this", "LARGEST": "long.MaxValue", "ANY": "0", "MISSING": '"missing"', "OP_W": '"options.OpW"', "dtype": "DType", "memory": "Memory"}
    space = "StreamGemm."  # before a constant
    has_properties = True
    math = "System.Math."

    @staticmethod
    def local(name):
        return word(camel(name))

    def field(self, field):
        return field.named("csharp", pascal)

    def attribute(self, name):
        return pascal(name)

    closing = "dispose"

    def reference(self, member, name):
        return member.named("csharp", pascal) if member else pascal(name)

    number = staticmethod("(int){}".format)
    is_missing = staticmethod("({}.DType == 0)".format)

    def typed(self, kind, text):
        return f'{text} + " " + {kind}'

    def refusal(self, how, arguments):
        text = self.expression(arguments[-1])
        if how == "refuse_state":
            return f"throw new System.InvalidOperationException({text});"
        name = f", {self.expression(arguments[0])}" if len(arguments) > 1 else ""
        if how == "refuse_range":
            return f"throw new System.ArgumentOutOfRangeException({name[2:]}, {self.expression(arguments[1])}, {text});"
        return f"throw new System.ArgumentException({text}{name});"

    def passed(self, text, kind):
        if kind == "Duration":
            return f"Time.Nanoseconds({text})"
        if kind == "address":
            return f"(long){text}"
        return f"{text}.Handle.Token" if kind in self.handles else f"(int){text}" if kind not in self.types and kind else text

    def sized(self, text, declared):
        return f'Native.Size({text}, "{camel(declared.split()[-1])}")' if declared.startswith(("uint64_t", "size_t")) else text.replace("this.Handle", "Handle")

    def type_of(self, name):
        return self.types.get(name) or (f"Gemm{name}" if name in self.handles else name)

    def hidden(self, member):
        return member.hidden or self.own.name == "Shapes"

    def doc(self, member, parameters):
        if member.name == "to_string":
            yield "    /// <inheritdoc/>"
            return
        yield f"    /// <summary>{self.text(member.doc)}</summary>"
        if self.hidden(member):
            return
        yield from (f'    /// <param name="{camel(p.name)}">{self.text(p.doc or "how long to wait at most")}</param>' for p in parameters)
        result = member.result or {"waited": "false if the time passed"}.get(member.type, "") if parameters or member.type != "waited" else ""
        if result and not self.is_property(member):
            yield f"    /// <returns>{self.text(result)}</returns>"
        yield from (f'    /// <exception cref="{RAISES[n]}">{self.text(t)}</exception>' for n, t in member.raises)

    def parameter(self, parameter):
        by_reference = "in " if parameter.type in VIEWS else ""
        default = parameter.csharp_default or parameter.default
        value = "" if default is None else f" = {self.expression(default)}"
        return f"{by_reference}{self.type_of(parameter.type)} {self.local(parameter.name)}{value}"

    def signature(self, member, parameters):
        access = "internal " if self.hidden(member) else "public "
        static = "static " if "static" in member.marks else "override " if member.name == "to_string" else ""
        in_order = [p for p in parameters if not p.csharp_default] + [p for p in parameters if p.csharp_default]
        taken = "" if self.is_property(member) else f"({', '.join(map(self.parameter, in_order))})"
        return f"    {access}{static}{self.type_of(member.type)} {member.named('csharp', pascal)}{taken}"

    def returned(self, member):
        """The statements of a call of the library."""
        arguments, out = self.arguments(member)
        call, kind = f"Raw.{member.native.func.id}", self.type_of(member.type)
        fences = [f"System.GC.KeepAlive({o});" for o in self.kept(member) if o not in [self.local(p.name) for p in member.parameters if p.type == "Matrix"]]
        passed = ", ".join(arguments)
        if kind == "void":
            return [f"{call}({passed});", *fences]
        if member.type in ("Text", "bytes"):
            made = f"Content((long data, ulong room, out ulong size) => {call}({passed}, data, room, out size))"
            return [f"byte[] made = {made};", *fences, "return Text.Of(made);" if member.type == "Text" else "return made;"]
        if member.type in ("bool", "waited") and not out:
            return [f"int status = {call}({passed});", *fences, "return status == (int)Status.Ok;"]
        if out and out.startswith("sg_") and "**" not in out and out.split(" ")[0] in self.model.structs:
            return [f"var made = new {kind}();", f"{call}({passed}, made.native);", *fences, "return made;"]
        stored = {"double": "double", "long": "ulong"}.get(member.type) or ("long" if "**" in out else "int")
        value = {"bool": "made == 1", "address": "(System.IntPtr)made", "int": "made", "long": "checked((long)made)", "double": "made"}.get(member.type)
        value = value or (f"new {kind}(this, made)" if member.type in self.handles else f"({kind})made")
        return [f"{stored} made;", f"{call}({passed}, out made);", *fences, f"return {value};"]

    def method(self, member):
        yield from self.doc(member, member.parameters)
        yield self.signature(member, member.parameters) + " {"
        is_property = self.is_property(member)
        body = self.statements(member) + (self.returned(member) if member.native else [])
        body = [f"if ({self.local(p.name)} == null) throw new System.ArgumentNullException(\"{camel(p.name)}\");" for p in member.parameters if p.type in self.handles] + body
        yield from (f"      {s}" for s in (["get {", *(f"  {s}" for s in body), "}"] if is_property else body))
        yield "    }"
        yield ""
        if member.type == "waited":
            yield from self.doc(member, [])
            name = member.named("csharp", pascal)
            yield f"    public void {name}() => {name}(System.Threading.Timeout.InfiniteTimeSpan);"
            yield ""

    def fields(self):
        for field in self.own.fields:
            kind, name = self.type_of(field.type), self.field(field)
            if field.doc:
                yield f"    /// <summary>{self.text(field.doc)}</summary>"
            access = "public" if field.doc else "internal"
            yield f"    {access} {kind} {name} => {self.expression(field.value)};" if field.value else f"    {access} {kind} {name} {{ get; }}"

    def view(self):
        """The fields and the constructor of a view, and its struct."""
        own = self.own.name
        yield "    internal readonly Matrix Memory;"
        yield f"    /// <summary>Element type; 0 of default({own}), which stands for none.</summary>"
        yield "    public DType DType => Memory.DType;"
        yield from self.fields()
        stored = [f for f in self.own.fields if not f.value]
        yield f"    {own}(in Matrix memory, {', '.join(f'{self.type_of(f.type)} {camel(f.name)}' for f in stored)}) {{"
        yield "      Memory = memory;"
        yield from (f"      {self.field(f)} = {camel(f.name)};" for f in stored)
        yield "    }"
        yield "    internal void RequireWritable(string name) => Memory.RequireWritable(name);"
        yield f"    internal Internal.sg_{own.lower()} In(Pins pins) {{"
        yield "      long place = pins.Take(Memory);"
        has_first = any(f.name == "first" for f in stored)
        start = "place == 0 ? 0 : place + First * Element.Size(DType)" if has_first else "place"
        struct = self.model.structs[f"sg_{own.lower()}"]
        values = ", ".join(f"{f.name} = {start if f.name == 'data' else self.name(f.name)}" for f in struct.own)
        yield f"      return new Internal.sg_{own.lower()} {{ {values} }};"
        yield "    }"
        yield ""

    def struct(self):
        """The properties of a struct, a constructor, and what fills the struct in."""
        name, struct = self.own.name, self.own.base
        short = {"kernel": "", "stride": "stride", "dilation": "dilation", "pad": "padding"}
        yield f"    /// <summary>{self.text('Some windows; the other sizes are those of each side or direction.')}</summary>"
        yield '    /// <param name="kernelH">Rows of a window.</param>'
        yield '    /// <param name="kernelW">Columns of a window.</param>'
        yield '    /// <param name="stride">Rows, and columns, from window to window.</param>'
        yield '    /// <param name="padding">Rows and columns of zeros at each side of an image.</param>'
        yield '    /// <param name="dilation">Rows, and columns, from one pixel of a window to the next.</param>'
        yield f"    public {name}(long kernelH, long kernelW, long stride = 1, long padding = 0, long dilation = 1) {{"
        yield from (f"      {pascal(f.name)} = {short[f.name.split('_')[0]] or camel(f.name)};" for f, _ in self.sizes)
        yield "    }"
        for f in self.own.fields:
            yield f"    /// <summary>{self.text(f.doc)}</summary>"
            yield f"    public {f.type} {pascal(f.name)} {{ get; set; }}"
        yield f"    internal Internal.{struct} Native => new Internal.{struct} {{ {', '.join(f'{f.name} = {pascal(f.name)}' for f, _ in self.sizes)} }};"
        yield "    internal void Check() {"
        yield from (f'      RequireRange("{camel(name)}.{pascal(f.name)}", {pascal(f.name)}, {value});' for f, value in self.sizes)
        yield "    }"
        yield f"    internal {name} Copy() => ({name})MemberwiseClone();"
        yield f"    internal static {name} Checked({name} {camel(name)}) {{"
        yield f'      if ({camel(name)} == null) throw new System.ArgumentNullException("{camel(name)}");'
        yield f"      {camel(name)}.Check();"
        yield f"      return {camel(name)};"
        yield "    }"
        yield ""

    def lines(self):
        for own in self.written("csharp"):
            self.known = set()
            kind = "readonly partial struct" if own.base == "View" else "sealed unsafe partial class" if own.base else "static partial class"
            if own.doc:
                yield f"  /// <summary>{self.text(own.doc)}</summary>"
            access = "internal" if not own.base else "public"
            yield f"  {access} {kind} {self.type_of(own.name)}{' : NativeObject' if own.base == 'NativeObject' else ''} {{"
            if own.base == "NativeObject" and own.name != "Context":
                yield f"    static readonly System.Func<long, int> release = RawPINVOKE.sg_{own.name.lower()}_release;"
            if own.base == "View":
                yield from self.view()
            if own.base in self.model.structs:
                yield from self.struct()
            for member in self.methods:
                yield from self.method(member)
            yield "  }"
            yield ""
