#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Java of the public headers, comments included: enums, the classes of info and option structs, Submit, the layouts of
structs, and each operation's methods of Layers with the class of its options. What a header gains comes to Java by itself.

usage: java.py OUTPUT-FOLDER FILE...

The files are the headers, and classes by hand, which are completed (java_members.py).

A struct that calls fill in (sg_x *out_...) becomes an immutable class with an accessor for each field; so does a struct that such a
struct has an array of, which is a list there. One that is called sg_..._options becomes a class with a setter for each field.
"""
import pathlib
import re
import sys

import calls
from calls import is_switch, kind_of
from java_descriptions import JavaDescriptions
from java_members import JavaMembers
from java_values import NUMBERS, PREFIX, JavaValues, class_name, javadoc, plain
from managed import VIEWS
from model import Model
from names import camel, pascal

DIMENSIONS = {"heads": ("batch", "heads", "tokens", "width"), "images": ("memory.rows", "channels", "height", "width"),
              "sequence": ("steps", "batch", "memory.cols")}
INLINE = ("softmax", "norm", "gather", "scatter_add")  # whose options are arguments
# What the class of an operation's options is made with, and its setters of several fields.
CONSTRUCTED = {"conv2d": ["windows"], "recurrent": ["cell", "w_ih", "w_hh"]}
SETTERS = {
    "attention": {"causal": ["mask_offset"], "causal_from_end": ["mask_offset"]},
    "axpby": {"with": ["alpha", "beta"]},
    "rotary": {"tables": ["cos", "sin"]},
    "recurrent": {"biases": ["bias_ih", "bias_hh"], "start": ["h0", "c0"], "end": ["hn", "cn"]},
    "recurrent gradients": {"end": ["dhn", "dcn"], "weights": ["dw_ih", "dw_hh"], "biases": ["dbias_ih", "dbias_hh"],
                            "start": ["dh0", "dc0"]},
}
MASKS = {"causal": "CAUSAL", "causalFromEnd": "CAUSAL_FROM_END"}  # of those setters


class Java(JavaDescriptions, JavaValues):
    def __init__(self, model):
        super().__init__(model)
        for call in self.calls:
            moved = [f for f in call.arguments if f != "gradients" and f.name in CONSTRUCTED.get(call.owner, ()) and call.owner in self.options]
            call.arguments = [a for a in call.arguments if a not in moved]
            call.options = moved + call.options
        self.options = calls.options_of(self.calls)

    # Options of operations.

    def is_inline(self, call):
        return call.owner in INLINE

    def option_type(self, field):
        if field.marker:
            return VIEWS[kind_of(field)]
        flags = calls.flags_type(self.model, field)
        if flags:
            return f"{class_name(flags)}..."
        if field.type == "sg_windows":
            return "Windows"
        return "boolean" if is_switch(field) else NUMBERS.get(field.type) or class_name(field.type)

    def initial(self, field):
        kind = self.option_type(field)
        if field.marker or kind in ("Windows", "boolean"):
            return ""
        if field.type in self.model.enums:
            return f" = {self.constants.get(field.init, f'{kind}.of(0)')}"
        return "" if self.is_zero(field) else f" = {field.init}"

    def option_classes(self):
        for owner, fields in self.options.items():
            if owner not in INLINE:
                call = next(c for c in self.calls if c.owner == owner)
                about = calls.about(call.operation).split(":")[0].split(".")[0]
                yield pascal(owner), self.option_class(pascal(owner), fields, f"Options of {self.text(about)}.", CONSTRUCTED.get(owner, []), SETTERS.get(owner, {}))
        for call in self.calls:
            if call.gradients:
                name = f"{pascal(call.owner)}Gradients"
                doc = "The gradients of a layer, given ones and results. A given one that is null is zeros; a result that is null is not computed."
                yield name, self.option_class(name, call.gradients, doc, [], SETTERS.get(f"{call.owner} gradients", {}))

    def option_class(self, name, fields, doc, constructed, groups):
        of, grouped = {f.name: f for f in fields}, {n: g for g, names in groups.items() for n in names}
        parts = [f"\n/** {doc} Read during the call only. */\npublic final class {name} {{"]
        parts += [self.declared(f, "final " if f.name in constructed else "") for f in fields]
        taken = [of[n] for n in constructed]
        tags = [f"@param {camel(f.name)} {self.doc_of(f)}" for f in taken]
        parts.append("\n" + javadoc("  ", "Initial values are the library's.", tags))
        parts.append(f"  public {name}({', '.join(f'{self.option_type(f)} {camel(f.name)}' for f in taken)}) {{")
        parts += [f'    this.{camel(f.name)} = java.util.Objects.requireNonNull({camel(f.name)}, "{camel(f.name)}");' for f in taken] + ["  }"]
        parts.append(self.copy_method(name, [camel(f.name) + (".copy()" if f.type == "sg_windows" else "") for f in taken],
                                      [n for f in fields if f.name not in constructed for n in self.stored_names(f)]))
        for setter, group in [*groups.items(), *((f.name, [f.name]) for f in fields if f.name not in constructed and f.name not in grouped)]:
            if setter == "mask" and "causal" in groups:
                continue
            parts += self.setters(name, camel(setter), [of[n] for n in group])
        return "\n".join([*parts, "}", ""])

    def gemm_members(self):
        """The fields of a Gemm that a caller sets, the methods that return a changed copy, and what stores them."""
        fields = calls.options_of_gemm(self.model)
        own = [*fields, self.model.structs["sg_gemm_desc"]["bias_shape"]]
        yield "\n".join(self.declared(f) for f in own)
        names = [n for f in own for n in self.stored_names(f)]
        yield "\n".join(["  private void copyOptions(Gemm from) {", *(f"    {n} = from.{n};" for n in names), "  }"])
        self.operation = "gemm"
        stores = [line for f in own for line in self.store_option(f, f, camel(f.name))]
        yield "\n".join(["  private void writeOptions(Scratch d, int to) {", *(f"    {line}" for line in stores), "  }"])
        of = {f.name: f for f in fields}
        for group in (["alpha", "beta"], ["op_a", "op_b"], ["compute"], ["activation"]):
            yield "\n".join(self.setters("Gemm", "with", [of[n] for n in group], "made")).lstrip("\n")

    def declared(self, f, final=""):
        """The declaration of an option's field."""
        if f.type == "sg_scalar":
            return f"  double {camel(f.name)} = {f.init[0]};\n  double {camel(f.name)}Im;"
        kind = self.option_type(f).replace("...", "")
        return f"  {final}{kind} {camel(f.name)}{'' if final else self.initial(f)};"

    def setters(self, name, setter, fields, of="this"):
        begin, told = ([f"    {name} {of} = copy();"], "@return a changed copy") if of != "this" else ([], "@return this")
        if fields[0].type == "sg_scalar":
            plain_names, parts = [camel(f.name) for f in fields], [f"{camel(f.name)}{p}" for f in fields for p in ("Re", "Im")]
            tags = [f"@param {n} {self.doc_of(f)}" for n, f in zip(plain_names, fields)] + [told]
            yield "\n" + javadoc("  ", "Sets the scalars.", tags)
            yield f"  public {name} {setter}({', '.join(f'double {n}' for n in plain_names)}) {{\n    return {setter}({', 0, '.join(plain_names)}, 0);\n  }}"
            yield "\n" + javadoc("  ", "Sets complex scalars; the imaginary parts are ignored for real types.", [f"@param {p} a part" for p in parts] + [told])
            yield f"  public {name} {setter}({', '.join(f'double {p}' for p in parts)}) {{"
            yield from begin
            yield from (f"    {of}.{n} = {n}Re;\n    {of}.{n}Im = {n}Im;" for n in plain_names)
        else:
            named = [(self.option_type(f), camel(f.name), f) for f in fields]
            tags = [f"@param {n} {self.doc_of(f)}" for _, n, f in named] + [told]
            yield "\n" + javadoc("  ", f"Sets {' and '.join(n for _, n, _ in named)}.", tags)
            yield f"  public {name} {setter}({', '.join(f'{kind} {n}' for kind, n, _ in named)}) {{"
            yield from begin
            if setter in MASKS:
                yield f"    this.mask = Mask.{MASKS[setter]};"
            for kind, n, f in named:
                value = f'java.util.Objects.requireNonNull({n}, "{n}")' if f.type in self.model.enums and not f.marker else n
                value = f'Names.requireSize("{n}", {n})' if f.type == "uint64_t" else value
                yield f"    {of}.{n} = {value};"
        yield f"    return {of};\n  }}"

    def doc_of(self, field):
        return self.text(calls.sentence(self.option_doc(field)))

    # Methods.

    def place(self, call, field):
        where = call.place(field)
        name = camel(field.name)
        return (f"gradients.{name}" if where == "gradients" else f"how.{name}" if where == "options" and not self.is_inline(call) else name), name

    is_given = staticmethod("{} != null".format)
    type_of_operand = staticmethod("{}.dtype()".format)

    def side(self, view, name):
        return f"{view}.{camel(name)}"

    def dimension_of(self, view, kind, at):
        return f"{view}.{DIMENSIONS[kind][at]}"

    def dimension_name(self, operand, kind, at):
        return f"{operand}.{DIMENSIONS[kind][at].removeprefix('memory.')}()"

    def component_name(self, operand, component):
        return f"{operand}.{plain(component)}()"

    def refuse_missing(self, name):
        return f'java.util.Objects.requireNonNull({name}, "{name}");'

    def write_checks(self, call):
        return ()  # LayerCall's

    def checked_windows(self, call, unless):
        if unless:  # their setters have checked them
            yield f"Windows windows = {unless} ? new Windows(1, 1) : {super().windows(call)};"

    def windows(self, call):
        return "windows" if self.needs_no_windows(call) else super().windows(call)

    def store(self, field, value):
        if field.type in self.model.enums:
            value += ".value"
        kind = "Int" if field.type in self.model.enums else NUMBERS[field.type].capitalize()
        return f"d.put{kind}(to + {self.offset(field)}, {value});"

    def offset(self, field):
        return f"Structs.sg_{self.operation}_desc.{field.name}"

    def store_windows(self, field, value):
        return f"{value}.write(d, to + {self.offset(field)});"

    def store_operand(self, call, field, at):
        index = call.operands.index(field)
        address = kind_of(field) in ("flat", "indices")
        statement = f"d.putLong(to + {self.offset(field)}, at[{index}]);" if address else f"{at}.write(d, to + {self.offset(field)}, at[{index}]);"
        condition = self.guard(call, field)
        yield (f"if ({condition}) " if condition else "") + statement

    def store_option(self, of_class, field, at):
        if field.type == "sg_scalar":
            yield f"d.putDouble(to + {self.offset(field)}, {at});"
            yield f"d.putDouble(to + {self.offset(field)} + 8, {at}Im);"
        elif calls.flags_type(self.model, field):
            yield f"for ({self.option_type(field).replace('...', '')} each : {at}) d.putInt(to + {self.offset(field)}, d.getInt(to + {self.offset(field)}) | each.value);"
        else:
            yield self.store(field, f"{at} ? 1 : 0" if is_switch(of_class) else at)

    def initial_values(self, struct, fields, values, at):
        """The statements that write what is not 0 in an initial value."""
        for field, value in zip(fields, values):
            to = f"{at} + Structs.{struct.name}.{field.name}" if struct.name.endswith("_desc") else f"{at} + {field.offset}"
            if field.name == "struct_size":
                yield f"d.putLong({to}, {struct.size});"
            elif isinstance(value, list):
                yield from self.initial_values(self.model.structs[field.type], self.model.structs[field.type].fields, value, to)
            elif value in self.constants:
                number = next(v.value for e in self.model.enums.values() for v in e.values if v.name == value)
                if number != "0":
                    yield f"d.putInt({to}, {number});"
            elif not re.fullmatch(r"NULL|0|0\.0|\(\w+\)0", value):
                yield f"d.put{NUMBERS[field.type].capitalize()}({to}, {value});"

    def signature(self, call):
        """(type, name, doc) of the parameters but the submission's; with defaults for those that may be left out."""
        found = [(VIEWS[kind_of(a)] if a.marker else self.option_type(a), camel(a.name), self.doc_of(a),
                  "null" if a.marker and a.marker.optional else None) for a in call.arguments if a != "gradients"]
        if self.is_inline(call):
            for f in (f for f in call.options if not calls.flags_type(self.model, f)):
                found.append((self.option_type(f), camel(f.name), self.doc_of(f), (self.initial(f) or " = 0").removeprefix(" = ")))
        elif call.options:
            made = None if call.owner in CONSTRUCTED else f"new {pascal(call.owner)}()"
            found.append((pascal(call.owner), "how", "options of the operation", made))
        if call.gradients:
            found.append((f"{pascal(call.owner)}Gradients", "gradients", "those of the results, and the results", None))
        return found

    def methods(self):
        for call in self.calls:
            self.operation = call.operation.name
            result = call.results[0] if call.results else None
            kind = VIEWS[kind_of(result)] if result else "Void"
            name, parameters = plain(call.name), self.signature(call)
            flags = [(self.option_type(f), camel(f.name), self.doc_of(f)) for f in call.options if self.is_inline(call) and calls.flags_type(self.model, f)]
            about = self.text(calls.sentence(calls.about(call.operation)))
            submit = [("Submit", "submit", "order and priority")]

            def method(suffix, text, taken, returns, body):
                tags = [f"@param {n} {doc}" for _, n, doc in taken] + ([f"@return {returns[1]}"] if returns[1] else [])
                return (f"{javadoc('  ', text, tags)}\n  public {returns[0]} {name}{suffix}({', '.join(f'{t} {n}' for t, n, _ in taken)}) {{\n    {body}\n  }}\n")

            three = [p[:3] for p in parameters]
            names = ", ".join(n for _, n, _ in three + flags)
            future = (f"Job<{kind}>", f"a future of {self.place(call, result)[1]}" if result else "a future without a result")
            short = [p[:3] for p in parameters if p[3] is None]
            filled = ", ".join([n if value is None else value for _, n, _, value in parameters])
            if result and (len(short) < len(parameters)) and not call.gradients:
                yield method("Async", about, short, future, f"return {name}Async({filled}, DEFAULTS);")
            elif result and flags:
                yield method("Async", about, short, future, f"return {name}Async({filled}, DEFAULTS);")
            if self.is_inline(call) and len(call.options) > 2:
                last = filled.split(", ")[-1]
                yield method("Async", about, three[:-1] + submit, future, f"return {name}Async({', '.join(n for _, n, _ in three[:-1])}, {last}, submit);")
            yield method("Async", about, three + submit + flags, future, f"return submit({name}Call({names}), submit);")
            blocks = f"{about} Blocks until the results are complete; in a graph it records."
            yield method("", blocks, three + flags, (kind, self.place(call, result)[1]) if result else ("void", ""), f"{'return ' if result else ''}run({name}Call({names}));")
            yield from self.request(call, name, kind, result, three + flags)

    def request(self, call, name, kind, result, taken):
        """The method that checks and describes a call."""
        yield f"  static LayerCall<{kind}> {name}Call({', '.join(f'{t} {n}' for t, n, _ in taken)}) {{"
        yield from ("    " + line.replace("\n", "\n    ") for line in self.checks(call))
        accumulates = next((f for f in call.given if f.name == "accumulate"), None)
        lines = [f"    return new LayerCall<{kind}>({self.place(call, result)[0] if result else 'null'})"]
        for f in call.operands:
            at, its_name = self.place(call, f)
            if f.marker.needed_for:
                at = f"{self.is_given(self.place(call, self.by_name(call, f.marker.needed_for))[0])} ? {at} : null"
            reads_too = "false" if f.marker.access != "inout" else self.place(call, accumulates)[0] if accumulates else "true"
            lines.append(f'        .writes("{its_name}", {at}, {reads_too})' if f.marker.written else f'        .reads("{its_name}", {at})')
        yield "\n".join(lines)
        yield f"        .calls(Structs.CALL_{call.operation.name.upper()}, Structs.{call.desc.name}.SIZE, (d, to, at) -> {{"
        stores = list(self.stores(call))
        stored = {m[1] for m in (re.match(rf"[\w.]+\([^)]*?Structs\.{call.desc.name}\.(\w+)[,)]", line) for line in stores) if m}
        left = [f for f in call.desc.fields if f.name not in stored]
        initial = self.initial_values(call.desc, left, [f.init for f in left], "to")
        yield from (f"          {line}" for line in [*initial, *stores])
        yield "        });\n  }\n"

    def argument_names(self):
        yield "\nimport java.util.Map;\n\n/** The names of fields of descriptors in messages, by the number of a call. */\nfinal class ArgumentNames {"
        yield "  private ArgumentNames() {}\n\n  static Map<String, String> of(int call) {\n    switch (call) {"
        names = self.message_names()
        for number, operation in enumerate(self.model.operations, len(calls.SPECIAL)):
            pairs = ", ".join(f'Map.entry("{field}", "{name}")' for field, name in names.get(operation.name, {}).items())
            if pairs:
                yield f"      case {number}: // {operation.name}\n        return Map.ofEntries({pairs});"
        yield "      default: // a GEMM\n        return Map.of();\n    }\n  }\n}"

    def layers(self):
        return f"""
/**
 * The layers of deep networks and the operations between their GEMMs, as jobs of a context ({{@link Context#layers}}) or recorded
 * in a graph ({{@link Graph#layers()}}). The methods without {{@code Async}} block in a context, and record in a graph, where they
 * return at once. Types are F64, F32, F16 and BF16, the same for all operands if not said otherwise. Operands are in any memory; on a
 * device with memory of its own a job copies those of the host. The result of an operation of elements or rows may be the operand
 * itself, by the same {{@link Matrix}}.
 */
public final class Layers extends LayerMethods {{
  Layers(Context context, Graph graph, Submit recorded) {{
    super(context, graph, recorded);
  }}

{chr(10).join(self.methods())}}}
"""

    def files(self):
        filled = {p for f in self.model.functions.values() for p in f.parameters}
        sized = [s for s in self.model.structs.values() if s.sized]
        infos = [s for s in sized if any(re.fullmatch(s.name + r" \*out_\w+", p) for p in filled) and not any(f.pointer for f in s.fields)]
        entries = {f.type for s in infos for f in s.fields if f.array and f.type in self.model.structs}
        for enum in self.model.enums.values():
            yield class_name(enum.name), self.enum(enum)
        for struct in infos:
            yield class_name(struct.name), self.info(struct, False)
        for name in entries:
            yield class_name(name), self.info(self.model.structs[name], True)
        for struct in (s for s in sized if s.name.endswith("_options")):
            yield class_name(struct.name), self.options_struct(struct)
        yield from self.option_classes()
        yield "StreamGemmException", self.exceptions()
        yield "Submit", self.submit()
        yield "Layers", self.layers()
        yield "Operations", self.operations()
        yield "Structs", "\n".join(self.layouts()) + "\n"
        yield "ArgumentNames", "\n".join(self.argument_names()) + "\n"


def main():
    folder, *files = map(pathlib.Path, sys.argv[1:])
    java = Java(Model(f for f in files if f.suffix == ".h"))
    members = JavaMembers(java)
    for name, text in [*java.files(), *members.files()]:
        (folder / f"{name}.java").write_text(PREFIX + text)
    for source in (f for f in files if f.suffix == ".java"):
        (folder / source.name).write_text(members.completed(source.stem, source.read_text()))


if __name__ == "__main__":
    main()
