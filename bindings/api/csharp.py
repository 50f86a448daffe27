#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C# of the public headers, comments included: enums, the classes of info and option structs, submit options, blittable
descriptors, and each operation's methods of GemmContext and GemmGraph. What a header gains comes to C# by itself.

usage: csharp.py OUT.cs HEADER...

- `typedef enum sg_x` is an enum X, each SG_X_SOME_NAME a member SomeName; one whose name ends in _flags is [Flags]
- a struct that such a struct has an array of is a class with properties to read, and the array is a list; its count is none
- a struct that begins with its size and is only ever filled in by the library is a class with properties to read; one that is
  only ever read by the library is a class with properties to set. One that holds handles or other structs has no such class.
- a descriptor is a blittable struct of the same name, which a method fills in from views and options (calls.py)
"""
import pathlib
import re
import sys

import calls
from calls import is_switch, kind_of
from csharp_members import CSharpMembers
from csharp_values import NUMBERS, CSharpValues, word
from managed import VIEWS
from model import Model
from names import camel, pascal

DIMENSIONS = {"heads": ("Batch", "Count", "Tokens", "Width"), "images": ("Count", "Channels", "Height", "Width"),
              "sequence": ("Steps", "Batch", "Values")}
CANCEL = "CancellationToken cancellationToken = default(CancellationToken)"


class CSharp(CSharpValues):
    # Options.

    def option(self, field):
        """C# type, initial value, and expression of an option in a descriptor, where `{}` is its value."""
        flags = calls.flags_type(self.model, field)
        if field.marker:
            return VIEWS[kind_of(field)], "", ""
        if flags:
            return pascal(flags), "", "(uint){}"
        if field.type == "sg_scalar":
            return "System.Numerics.Complex", " = System.Numerics.Complex.One;" if field.init[0] == "1.0" else "", "Native.Scalar({})"
        if is_switch(field):
            return "bool", "", "{} ? 1 : 0"
        kind = pascal(field.type) if field.type in self.model.enums else NUMBERS[field.type]
        form = f'(long)Native.Size({{}}, "options.{self.option_name(field)}")' if field.type == "uint64_t" and not field.name.endswith("_id") else "{}"
        return kind, "" if self.is_zero(field) else f" = {self.constants.get(field.init, field.init)};", form

    def gemm_options(self):
        """GemmOptions, and what stores them in a descriptor."""
        fields = calls.options_of_gemm(self.model)
        bias = self.model.structs["sg_gemm_desc"]["bias"]
        yield "  /// <summary>A GEMM's scalars, operations and batch, and the options of its submission.</summary>"
        yield "  public sealed partial class GemmOptions : SubmitOptions {"
        yield from self.fields_of_class([*fields, bias], "GemmOptions")
        yield "  internal static partial class Native {"
        yield "    static void Store(ref sg_gemm_desc d, GemmOptions o) {"
        yield from (f"      d.{f.name} = {self.option(f)[2].format('o.' + pascal(f.name))};" for f in fields)
        yield "    }"
        yield "  }"
        yield ""

    def option_classes(self):
        yield from self.gemm_options()
        for owner, fields in self.options.items():
            of = next(c for c in self.calls if c.owner == owner)
            yield f"  /// <summary>Options of {self.text(calls.about(of.operation).split(':')[0].split('.')[0])}, and of its submission.</summary>"
            yield f"  public sealed partial class {pascal(owner)}Options : SubmitOptions {{"
            yield from self.fields_of_class(fields, f"{pascal(owner)}Options")
        for call in (c for c in self.calls if c.gradients):
            yield "  /// <summary>The gradients of a layer, given ones and results. A given one that is left out is zeros, a result that is left out is not computed.</summary>"
            yield f"  public sealed partial class {pascal(call.owner)}Gradients {{"
            yield from self.fields_of_class(call.gradients, f"{pascal(call.owner)}Gradients")

    def fields_of_class(self, fields, owner):
        for field in fields:
            kind, start, _ = self.option(field)
            yield self.summary(calls.sentence(self.option_doc(field)), "    ", "left out")
            yield f"    public {kind} {self.option_name(field)} {{ get; set; }}{start}"
        yield f"    internal {owner} Copy() => ({owner})MemberwiseClone();"
        yield "  }"
        yield ""

    def submit_options(self):
        """The options of every submission, and how a call gets them."""
        pins, sets = [], []
        yield "  public partial class SubmitOptions {"
        for field in self.model.structs["sg_submit"].own:
            name = pascal(field.name)
            if field.name in ("queue", "tag", "graph", "after_count"):
                continue
            doc = self.summary(re.sub(r"^sg_\w+_flags\b", "Flags", field.doc), "    ")
            if field.pointer == "*const *":
                kind, value = "System.Collections.Generic.IReadOnlyList<GemmJob>", f"(long){field.name}"
                pins.append((f"long[] {field.name}_tokens = Tokens({name}, \"{name}\");", f"fixed (long* {field.name} = {field.name}_tokens)"))
                sets.append(f"{field.name}_count = {field.name}_tokens == null ? 0 : {field.name}_tokens.Length")
            elif field.type == "char":
                kind, value = "string", f"(long){field.name}"
                pins.append(("", f"fixed (byte* {field.name} = utf8_{field.name})"))
                yield f"    byte[] utf8_{field.name};  // with its NUL; null: none"
                yield f"    string text_{field.name};"
                yield doc
                yield f"    public string {name} {{"
                yield f"      get {{ return text_{field.name}; }}"
                yield f"      set {{ utf8_{field.name} = Utf8(value, \"{name}\"); text_{field.name} = value; }}"
                yield "    }"
                doc = None
            elif field.type in self.model.handles:
                kind, value = f"Gemm{name}", f"{name} == null ? 0 : {name}.Handle.Token"
            elif field.type in self.model.structs:
                kind, value = pascal(field.type), f"{name} == null ? 0 : (long)Internal.{field.type}.getCPtr({name}.native).Handle"
            elif field.name.endswith("_ns"):
                name = pascal(field.name.removesuffix("_ns"))
                kind, value = "System.TimeSpan?", f"Nanoseconds({name}, \"{name}\")"
                doc = doc.replace("Nanoseconds from the submission; 0: none.", "Time from the submission; null: none.")
            else:
                kind, _, form = self.option(field)
                value = form.format(name)
            if field.name == "flags":
                value = f"({value}) | submission.Flags"
            sets.append(f"{field.name} = {value}")
            if doc:
                yield doc
                yield f"    public {kind} {name} {{ get; set; }}"
        yield ""
        yield "    /// <summary>Makes a call with these options (calls.h).</summary>"
        yield "    internal unsafe int Run(int call, long on, void* desc, in Submission submission) {"
        yield from (f"      {make}" for make, _ in pins if make)
        yield from (f"      {fix}" for _, fix in pins)
        yield "      {"
        yield f"        var submit = new sg_submit {{ struct_size = {self.model.structs['sg_submit'].size}, queue = submission.Queue, tag = submission.Tag, graph = submission.Graph,"
        yield f"          {', '.join(sets)} }};"
        yield "        int status = Errors.Noted(call, RawPINVOKE.sg_call(call, on, (long)desc, (long)&submit, (long)submission.Job));"
        yield "        System.GC.KeepAlive(this);"
        yield "        return status;"
        yield "      }"
        yield "    }"
        yield "  }"
        yield ""

    # Methods.

    def is_given(self, call, field):
        return f"{self.place(call, field)[0]}.DType != 0"

    def place(self, call, field):
        """The expression of what a caller gives, and its name in messages."""
        where = call.place(field)
        if where == "arguments":
            return word(camel(field.name)), camel(field.name)
        name = self.option_name(field)
        return (f"gradients.{name}", f"gradients.{name}") if where == "gradients" else (f"how.{name}", f"options.{name}")

    is_given = staticmethod("{}.DType != 0".format)
    type_of_operand = staticmethod("{}.DType".format)

    def side(self, view, name):
        return f"{view}.{pascal(name)}"

    def dimension_of(self, view, kind, at):
        return f"{view}.{DIMENSIONS[kind][at]}"

    def dimension_name(self, operand, kind, at):
        return f"{operand}.{DIMENSIONS[kind][at]}"

    def component_name(self, operand, component):
        return f"{operand}.{pascal(component)}"

    def refuse_missing(self, name):
        return f'if ({name} == null) throw new System.ArgumentNullException("{name.replace("how", "options")}");'

    def write_checks(self, call):
        for f in call.operands:
            if f.marker.written:
                yield '{0}.RequireWritable("{1}");'.format(*self.place(call, f))

    def checked_windows(self, call, unless):
        yield f"windows = {unless + ' ? new Windows(1, 1) : ' if unless else ''}Windows.Checked(windows);"

    def store(self, field, value):
        return f"d.{word(field.name)} = {value};"

    def store_windows(self, field, value):
        return f"d.{field.name} = {value}.Native;"

    def store_operand(self, call, field, at):
        address = kind_of(field) in ("flat", "indices")
        value = f"pins.Take({at}{'.Memory' if kind_of(field) == 'indices' else ''})" if address else f"{at}.In(pins)"
        condition = self.guard(call, field)
        yield (f"if ({condition}) " if condition else "") + f"d.{field.name} = {value};"

    def store_option(self, of_class, field, at):
        yield f"d.{field.name} = {self.option(of_class)[2].format(at)};"

    def parameters(self, call, by_value=False):
        """Declarations and names of a method's parameters without the last one."""
        declared, named = [], []
        for i, argument in enumerate(call.arguments):
            if argument == "gradients":
                declared.append(f"{pascal(call.owner)}Gradients gradients")
                named.append("gradients")
                continue
            rest = [a for a in call.arguments[i:] if a != "gradients"]
            may_end = len(rest) == len(call.arguments[i:]) and all(self.may_be_left_out(a) for a in rest) and not call.needs_options
            name = word(camel(argument.name))
            if argument.marker:
                kind = VIEWS[kind_of(argument)]
                declared.append(f"{kind} {name} = default({kind})" if may_end and not by_value else f"{'' if by_value else 'in '}{kind} {name}")
            elif argument.type == "sg_windows":
                declared.append(f"Windows {name}")
            else:
                kind = self.option(argument)[0]
                declared.append(f"{kind} {name} = {'false' if kind == 'bool' else 'default(' + kind + ')'}" if may_end and not by_value else f"{kind} {name}")
            named.append(name)
        return declared, named

    def may_be_left_out(self, argument):
        return argument.marker.optional if argument.marker else is_switch(argument)

    def options_type(self, call):
        return f"{pascal(call.owner)}Options" if call.owner in self.options else "SubmitOptions"

    def documented(self, call, first, indent, cancels):
        yield f"{indent}/// <summary>{first}</summary>"
        for argument in call.arguments:
            if argument == "gradients":
                yield f'{indent}/// <param name="gradients">Those of the results, and the results.</param>'
                continue
            doc = calls.operand_doc(argument) if argument.marker else argument.doc
            yield f'{indent}/// <param name="{camel(argument.name)}">{self.text(calls.sentence(doc), "left out")}</param>'
        default = "" if call.needs_options else "; null: the defaults"
        yield f'{indent}/// <param name="options">Options of the operation, order and priority{default}.</param>'
        if cancels:
            yield f'{indent}/// <param name="cancellationToken">Cancels the job.</param>'

    def methods(self):
        yield "  public sealed unsafe partial class GemmContext {"
        for call in self.calls:
            name, options = pascal(call.name), self.options_type(call)
            default = "" if call.needs_options else " = null"
            declared, named = self.parameters(call)
            how = "options" if call.needs_options or options == "SubmitOptions" else f"options ?? new {options}()"
            request = f"{name}Call({', '.join(named)}{'' if options == 'SubmitOptions' else ', ' + how})"
            about = self.text(calls.about(call.operation), "left out")
            yield from self.documented(call, f"Submits {about} Returns at once.", "    ", True)
            yield f"    public Task {name}Async({', '.join(declared)}, {options} options{default}, {CANCEL}) =>"
            yield f"      Layer(options, cancellationToken, {request});"
            yield ""
            yield from self.documented(call, f"Computes {about} Blocks until the results are complete.", "    ", False)
            yield f"    public void {name}({', '.join(declared)}, {options} options{default}) =>"
            yield f"      LayerAndWait(options, {request});"
            yield ""
            values, _ = self.parameters(call, True)
            if options != "SubmitOptions":
                values.append(f"{options} how")
            yield f"    internal static LayerCall {name}Call({', '.join(values)}) {{"
            yield from (f"      {line}" for line in self.checks(call))
            yield "      return (pins, submission) => {"
            yield f"        sg_{call.operation.name}_desc d = sg_{call.operation.name}_desc.Initial;"
            yield from (f"        {line}" for line in self.stores(call))
            yield f"        return submission.Run(Call.{pascal(call.operation.name)}, &d);"
            yield "      };"
            yield "    }"
            yield ""
        yield "  }"
        yield ""
        yield from self.of_each("public sealed unsafe partial class GemmGraph", "int Record", "RecordLayer(options, {})",
                                '    /// <summary>Records <see cref="GemmContext.{0}"/> instead of running it.</summary>\n    /// <returns>Its index.</returns>')
        yield "  /// <summary>Makes descriptions of operations, with the arguments of the methods of <see cref=\"GemmContext\"/> that compute them.</summary>"
        yield from self.of_each("public static partial class Operations", "static OperationDesc ", "new OperationDesc({})",
                                '    /// <summary>What <see cref="GemmContext.{0}"/> computes.</summary>', False)

    def of_each(self, owner, head, body, about, submits=True):
        """A class with a method for each operation, which makes its call: at once, or later, with copies of what the caller may change."""
        yield f"  {owner} {{"
        for call in self.calls:
            name, options = pascal(call.name), self.options_type(call)
            has_options = submits or options != "SubmitOptions"
            declared, named = self.parameters(call)
            copy = "" if submits else "?.Copy()"
            named = [f"{n}{copy}" if a == "gradients" or not a.marker and a.type == "sg_windows" else n for n, a in zip(named, call.arguments)]
            how = [] if options == "SubmitOptions" else [f"options{copy}" if call.needs_options else f"options{copy} ?? new {options}()"]
            taken = declared + ([f"{options} options{'' if call.needs_options else ' = null'}"] if has_options else [])
            yield about.replace("{0}", name)
            yield f"    public {head}{name}({', '.join(taken)}) =>"
            yield f"      {body.format(f'GemmContext.{name}Call(' + ', '.join(named + how) + ')')};"
            yield ""
        yield "  }"
        yield ""

    def names(self):
        """The names of fields of descriptors in messages, by the number of a call."""
        names = self.message_names()
        yield "  internal sealed class Table : System.Collections.Generic.Dictionary<string, string> { }"
        yield ""
        yield "  internal static partial class Names {"
        yield "    static readonly Table[] tables = {"
        yield f"      {', '.join(['null'] * len(calls.SPECIAL))},  // GEMMs, and calls without a descriptor"
        for operation in self.model.operations:
            pairs = ", ".join(f'{{ "{field}", "{name}" }}' for field, name in names.get(operation.name, {}).items())
            yield f"      {f'new Table {{ {pairs} }}' if pairs else 'null'},  // {operation.name}"
        yield "    };"
        yield "  }"

    def file(self):
        yield "// Made from the public headers by bindings/api/csharp.py."
        yield "#pragma warning disable 169, 414, 649  // fields of descriptors that C reads and C# does not set"
        yield "using System.Threading;"
        yield "using System.Threading.Tasks;"
        yield "using StreamGemm.Internal;"
        yield ""
        yield "namespace StreamGemm {"
        for part in (self.enums, self.exceptions, self.entries, self.structs, self.option_classes, self.submit_options, self.methods, self.names,
                     CSharpMembers(self).lines):
            yield from part()
        yield "}"
        yield ""
        yield "namespace StreamGemm.Internal {"
        yield from self.descriptors()
        yield "}"


def main():
    output, *headers = map(pathlib.Path, sys.argv[1:])
    output.write_text("\n".join(CSharp(Model(headers)).file()) + "\n")


if __name__ == "__main__":
    main()
