#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Java of the public headers, comments included: enums, the classes of info and option structs, Submit, the layouts of
structs, and each operation's methods of Layers with the class of its options. What a header gains comes to Java by itself.

usage: java.py OUTPUT-FOLDER HEADER...

A struct that calls fill in (sg_x *out_...) becomes an immutable class with an accessor for each field; so does a struct that such a
struct has an array of, which is a list there. One that is called sg_..._options becomes a class with a setter for each field.
"""
import pathlib
import re
import sys

import calls
from calls import is_switch, kind_of
from managed import VIEWS, Managed, camel, pascal
from model import Model
from names import prose

CLASSES = {"sg_dtype": "DType", "sg_context_flags": "ContextFlag", "sg_submit_flags": "SubmitFlag", "sg_gather_flags": "GatherFlag"}
NUMBERS = {"int32_t": "int", "int64_t": "long", "uint32_t": "int", "uint64_t": "long", "size_t": "long", "double": "double"}
DIMENSIONS = {"heads": ("batch", "heads", "tokens", "width"), "images": ("memory.rows", "channels", "height", "width"),
              "sequence": ("steps", "batch", "memory.cols")}
INLINE = ("softmax", "norm", "gather")  # whose options are arguments
# What the class of an operation's options is made with, and its setters of several fields.
CONSTRUCTED = {"conv2d": ["windows"], "recurrent": ["cell", "w_ih", "w_hh"]}
SETTERS = {
    "attention": {"causal": ["mask_offset"]},
    "axpby": {"with": ["alpha", "beta"]},
    "rotary": {"tables": ["cos", "sin"]},
    "recurrent": {"biases": ["bias_ih", "bias_hh"], "start": ["h0", "c0"], "end": ["hn", "cn"]},
    "recurrent gradients": {"end": ["dhn", "dcn"], "weights": ["dw_ih", "dw_hh"], "biases": ["dbias_ih", "dbias_hh"],
                            "start": ["dh0", "dc0"]},
}
PREFIX = "// SPDX-License-Identifier: Apache-2.0\n// Written by bindings/api/java.py from the public headers.\npackage org.streamgemm;\n"


def class_name(c_name):
    return CLASSES.get(c_name) or "".join(w.capitalize() for w in c_name.split("_")[1:])


def plain(name):
    """x_y as xY."""
    first, *others = name.split("_")
    return first + "".join(o.capitalize() for o in others)


def javadoc(indent, text, tags=()):
    lines = [text, *([""] if tags else []), *tags]
    return "\n".join([f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in lines), f"{indent} */"])


class Java(Managed):
    any_type = "null"
    case = staticmethod(camel)
    method = staticmethod(plain)

    def __init__(self, model):
        super().__init__(model)
        self.constants = {v.name: f"{class_name(e.name)}.{self.member(e, v)}" for e in model.enums.values() for v in e.values}
        for call in self.calls:
            moved = [f for f in call.arguments if f != "gradients" and f.name in CONSTRUCTED.get(call.owner, ()) and call.owner in self.options]
            call.arguments = [a for a in call.arguments if a not in moved]
            call.options = moved + call.options
        self.options = calls.options_of(self.calls)

    @staticmethod
    def escape(text):
        return re.sub(r"`([^`]*)`", r"{@code \1}", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;"))

    @staticmethod
    def member(enum, value):
        """A Java name does not begin with a digit: 3XTF32 becomes TF32X3."""
        return re.sub(r"^(\d+)X(\w+)", r"\2X\1", value.name[len(enum.prefix):])

    def option_name(self, field):
        return camel(field.name)

    # Enums and structs.

    def enum(self, enum):
        name = class_name(enum.name)
        constants = ",\n".join(f"  /** {self.text(v.doc)} */\n  {self.member(enum, v)}({v.value})" for v in enum.values)
        return f"""
/** {self.text(enum.doc)} */
public enum {name} {{
{constants};

  private static final java.util.Map<Integer, {name}> BY_VALUE = new java.util.HashMap<>();

  static {{
    for ({name} each : values()) BY_VALUE.put(each.value, each);
  }}

  final int value;

  {name}(int value) {{
    this.value = value;
  }}

  /**
   * The constant's value in the C interface.
   *
   * @return the value
   */
  public int value() {{
    return value;
  }}

  /**
   * The constant of a value.
   *
   * @param value a value of the C interface
   * @return the constant
   * @throws IllegalArgumentException if there is none
   */
  public static {name} of(int value) {{
    {name} found = BY_VALUE.get(value);
    if (found == null) throw new IllegalArgumentException(value + " is not a {name}");
    return found;
  }}
}}
"""

    def java_type(self, field):
        if field.type == "char":
            return "String"
        if field.array:
            return f"java.util.List<{class_name(field.type)}>"
        return NUMBERS.get(field.type) or class_name(field.type)

    def read(self, struct, field):
        """The expression that reads a field of a struct at `at`."""
        at = f"at + {field.offset}"
        if field.type == "char":
            return f"s.text({at})"
        if field.array and field.type in self.model.structs:
            count = struct[field.name.removesuffix("s") + "_count"]
            return f"{class_name(field.type)}.each(s, {at}, s.getInt(at + {count.offset}))"
        if field.type in self.model.enums:
            return f"{class_name(field.type)}.of(s.getInt({at}))"
        return f"s.get{NUMBERS[field.type].capitalize()}({at})"

    def info(self, struct, is_entry):
        name = class_name(struct.name)
        arrays = {f.name.removesuffix("s") + "_count" for f in struct.fields if f.array and f.type in self.model.structs}
        each = [(self.java_type(f), plain(f.name), self.read(struct, f), self.text(f.doc)) for f in struct.own if f.name not in arrays]
        made = f"""
  /** The entries of an array. */
  static java.util.List<{name}> each(Scratch s, int first, int count) {{
    java.util.List<{name}> all = new java.util.ArrayList<>();
    for (int i = 0; i < count; ++i) all.add(new {name}(s, first + i * {struct.size}));
    return java.util.List.copyOf(all);
  }}""" if is_entry else f"""
  /** Reads the struct that a call fills at an address. */
  static {name} from(java.util.function.LongConsumer call) {{
    Scratch s = Scratch.get();
    int at = s.push({struct.size});
    try {{
      s.putLong(at, {struct.size});
      call.accept(s.address(at));
      return new {name}(s, at);
    }} finally {{
      s.pop(at);
    }}
  }}"""
        holders = "\n".join(f"  private final {kind} {field};" for kind, field, _, _ in each)
        reads = "\n".join(f"    {field} = {read};" for _, field, read, _ in each)
        accessors = "\n".join(f"\n{javadoc('  ', doc, ['@return the value'])}\n  public {kind} {field}() {{\n    return {field};\n  }}"
                              for kind, field, _, doc in each)
        shown = " + \", ".join(f'{field}=" + {field}' for _, field, _, _ in each)
        return f"""
/** {self.text(struct.doc)} */
public final class {name} {{
{holders}

  private {name}(Scratch s, int at) {{
{reads}
  }}
{made}
{accessors}

  @Override
  public String toString() {{
    return "{name}[{shown} + "]";
  }}
}}
"""

    def write(self, struct, field, value, at="at"):
        """The statement that writes a field of a struct; `value` is an expression."""
        to = f"{at} + {field.offset}"
        if field.type == "char":
            return f's.putLong({to}, s.utf8("{plain(field.name)}", {value}));'
        if field.type in self.model.enums:
            return f"s.putInt({to}, {value}.value);"
        return f"s.put{NUMBERS[field.type].capitalize()}({to}, {value});"

    def options_struct(self, struct):
        """The class of an options struct."""
        name = class_name(struct.name)
        holders, methods = [], []
        for f in struct.own:
            java, own, flags = self.java_type(f), plain(f.name), calls.flags_type(self.model, f)
            taken = f"{class_name(flags)}... {own}" if flags else f"{java} {own}"
            is_enum = f.type in self.model.enums
            holders.append(f"  private {java} {own}{f' = {java}.of(0)' if is_enum else ''};")
            stored = f"java.util.Objects.requireNonNull({own}, \"{own}\")" if is_enum else own
            stores = (f"    this.{own} = 0;\n    for ({class_name(flags)} each : {own}) this.{own} |= each.value;" if flags else f"    this.{own} = {stored};")
            doc = self.text(f.doc)
            methods.append(f"{javadoc('  ', doc, [f'@param {own} the value', '@return these options'])}\n  public {name} {own}({taken}) {{\n{stores}\n    return this;\n  }}\n")
            methods.append(f"{javadoc('  ', doc, ['@return the value'])}\n  public {java} {own}() {{\n    return {own};\n  }}\n")
        writes = "\n".join(f"      {self.write(struct, f, plain(f.name))}" for f in struct.own)
        copies = "\n".join(f"    copy.{plain(f.name)} = {plain(f.name)};" for f in struct.own)
        return f"""
/** {self.text(struct.doc)} Read when they are given to a call; not safe to change on one thread while another uses them. */
public final class {name} {{
{chr(10).join(holders)}

  /** All defaults. */
  public {name}() {{}}

{chr(10).join(methods)}
  /**
   * The same options once more.
   *
   * @return a copy
   */
  public {name} copy() {{
    {name} copy = new {name}();
{copies}
    return copy;
  }}

  /** Passes a call the address of a struct with these options, and returns its result. */
  long with(java.util.function.LongUnaryOperator call) {{
    Scratch s = Scratch.get();
    int at = s.push({struct.size});
    try {{
      s.putLong(at, {struct.size});
{writes}
      return call.applyAsLong(s.address(at));
    }} finally {{
      s.pop(at);
    }}
  }}
}}
"""

    def layouts(self):
        """Offsets of the structs that this package fills in or reads."""
        yield "\n/** The layouts of the library's structs, and the numbers of its calls (calls.h). */\nfinal class Structs {\n  private Structs() {}\n"
        for number, name in enumerate([*calls.SPECIAL, *(o.name for o in self.model.operations)]):
            yield f"  static final int CALL_{name.upper()} = {number};"
        for struct in self.model.structs.values():
            if struct.name.endswith(("_desc", "_operand")) or struct.name in ("sg_stage", "sg_weight", "sg_completion"):
                yield f"\n  static final class {struct.name} {{\n    static final int SIZE = {struct.size};"
                yield from (f"    static final int {f.name} = {f.offset};" for f in struct.fields)
                yield "  }"
        yield "}"

    # Submit.

    def submit(self):
        struct = self.model.structs["sg_submit"]
        members, methods, before, writes, after, fences = [], [], [], [], [], []

        def setter(own, taken, stores, doc):
            methods.append(f"{javadoc('  ', doc, [f'@param {own} the value', '@return these options'])}\n  public Submit {own}({taken}) {{\n{stores}\n    return this;\n  }}\n")

        for f in struct.own:
            own, to, doc = plain(f.name), f"order + {f.offset}", self.text(re.sub(r"^sg_\w+_flags\b", "Flags, in place of those set before", f.doc))
            if f.name in ("queue", "tag", "graph"):
                writes.append(f"s.putLong({to}, {own});")
            elif f.pointer == "*const *":
                members.append(f"private Job<?>[] {own} = {{}};")
                before.append(f"long[] {own}Held = Job.retain({own});")
                writes.append(f"s.putLong({to}, s.longs({own}Held));\n      s.putInt(order + {struct[f.name + '_count'].offset}, {own}Held.length);")
                after.append(f"Job.release({own}Held);")
                setter(own, f"Job<?>... {own}", f"    for (Job<?> job : {own}) java.util.Objects.requireNonNull(job, \"{own}\");\n    this.{own} = {own}.clone();", doc)
            elif f.name.endswith("_count"):
                continue
            elif f.type == "char":
                members += [f"private byte[] {own}; // UTF-8; null: none", f'private String {own}Text = "";']
                writes.append(f"s.putLong({to}, s.text({own}));")
                setter(own, f"String {own}", f"    this.{own} = Names.utf8(\"{own}\", {own});\n    this.{own}Text = Names.text(this.{own});", doc)
                methods.append(f"  String {own}Text() {{\n    return {own}Text;\n  }}\n")
            elif f.type in self.model.handles or f.type in self.model.structs:
                members.append(f"private {class_name(f.type)} {own};")
                writes.append(f"s.putLong({to}, {own} == null ? 0 : {own}.handle());" if f.type in self.model.handles else f"s.putLong({to}, chosen);")
                fences.append(f"java.lang.ref.Reference.reachabilityFence({own});")
                setter(own, f"{class_name(f.type)} {own}", f"    this.{own} = {own};", doc)
            elif f.name.endswith("_ns"):
                own = own.removesuffix("Ns")
                members.append(f"private long {own}; // nanoseconds; 0: none")
                writes.append(f"s.putLong({to}, {own});")
                setter(own, f"java.time.Duration {own}", f"    this.{own} = Times.limit(\"{own}\", {own});", doc.replace("Nanoseconds from the submission; 0: none.", "Time from the submission; null: none."))
            else:
                flags, java = calls.flags_type(self.model, f), self.java_type(f)
                members.append(f"private {java} {own};")
                writes.append(self.write(struct, f, f"{own} | more" if flags else own, "order"))
                taken = f"{class_name(flags)}... {own}" if flags else f"{java} {own}"
                setter(own, taken, f"    this.{own} = 0;\n    for ({class_name(flags)} each : {own}) this.{own} |= each.value;" if flags else f"    this.{own} = {own};", doc)
        return f"""
/**
 * {self.text(struct.doc)} Read when they are given to a call; not safe to change on one thread while another uses them.
 */
public final class Submit {{
  private boolean statistics;
  {(chr(10) + "  ").join(members)}

  /** All defaults: run at once, concurrently with jobs whose memory does not overlap. */
  public Submit() {{}}

{chr(10).join(methods)}
  /**
   * Keeps the statistics of the completed job, for {{@link Job#statistics()}}.
   *
   * @return these options
   */
  public Submit statistics() {{
    this.statistics = true;
    return this;
  }}

  boolean wantsStatistics() {{
    return statistics;
  }}

  /** A call with the address of an sg_submit. */
  interface Call {{
    long submit(Scratch s, long order);
  }}

  /** Makes a call with these options. */
  long apply(Call call, long queue, long tag, long graph, int more) {{
    if (plan == null) return apply(call, queue, tag, graph, more, 0);
    return plan.with(chosen -> apply(call, queue, tag, graph, more, chosen));
  }}

  private long apply(Call call, long queue, long tag, long graph, int more, long chosen) {{
    Scratch s = Scratch.get();
    int order = s.push({struct.size});
    {(chr(10) + "    ").join(before)}
    try {{
      s.putLong(order, {struct.size});
      {(chr(10) + "      ").join(writes)}
      return call.submit(s, s.address(order));
    }} finally {{
      {(chr(10) + "      ").join(after)}
      s.pop(order);
      {(chr(10) + "      ").join(fences)}
    }}
  }}
}}
"""

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
        for f in fields:
            final = "final " if f.name in constructed else ""
            for part in ("", "Im") if f.type == "sg_scalar" else ("",):
                kind = "double" if f.type == "sg_scalar" else self.option_type(f).replace("...", "")
                start = f" = {f.init[0]}" if f.type == "sg_scalar" and not part else "" if final or f.type == "sg_scalar" else self.initial(f)
                parts.append(f"  {final}{kind} {camel(f.name)}{part}{start};")
        taken = [of[n] for n in constructed]
        tags = [f"@param {camel(f.name)} {self.doc_of(f)}" for f in taken]
        parts.append("\n" + javadoc("  ", "Initial values are the library's.", tags))
        parts.append(f"  public {name}({', '.join(f'{self.option_type(f)} {camel(f.name)}' for f in taken)}) {{")
        parts += [f'    this.{camel(f.name)} = java.util.Objects.requireNonNull({camel(f.name)}, "{camel(f.name)}");' for f in taken] + ["  }"]
        for setter, group in [*groups.items(), *((f.name, [f.name]) for f in fields if f.name not in constructed and f.name not in grouped)]:
            if setter == "mask" and "causal" in groups:
                continue
            parts += self.setters(name, camel(setter), [of[n] for n in group])
        return "\n".join([*parts, "}", ""])

    def setters(self, name, setter, fields):
        if fields[0].type == "sg_scalar":
            plain_names, parts = [camel(f.name) for f in fields], [f"{camel(f.name)}{p}" for f in fields for p in ("Re", "Im")]
            tags = [f"@param {n} {self.doc_of(f)}" for n, f in zip(plain_names, fields)] + ["@return this"]
            yield "\n" + javadoc("  ", "Sets the scalars.", tags)
            yield f"  public {name} {setter}({', '.join(f'double {n}' for n in plain_names)}) {{\n    return {setter}({', 0, '.join(plain_names)}, 0);\n  }}"
            yield "\n" + javadoc("  ", "Sets complex scalars; the imaginary parts are ignored for real types.", [f"@param {p} a part" for p in parts] + ["@return this"])
            yield f"  public {name} {setter}({', '.join(f'double {p}' for p in parts)}) {{"
            yield from (f"    this.{n} = {n}Re;\n    this.{n}Im = {n}Im;" for n in plain_names)
        else:
            named = [(self.option_type(f), camel(f.name), f) for f in fields]
            tags = [f"@param {n} {self.doc_of(f)}" for _, n, f in named] + ["@return this"]
            yield "\n" + javadoc("  ", f"Sets {' and '.join(n for _, n, _ in named)}.", tags)
            yield f"  public {name} {setter}({', '.join(f'{kind} {n}' for kind, n, _ in named)}) {{"
            if setter == "causal":
                yield "    this.mask = Mask.CAUSAL;"
            for kind, n, f in named:
                value = f'java.util.Objects.requireNonNull({n}, "{n}")' if f.type in self.model.enums and not f.marker else n
                yield f"    this.{n} = {value};"
        yield "    return this;\n  }"

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
        yield f"  private static LayerCall<{kind}> {name}Call({', '.join(f'{t} {n}' for t, n, _ in taken)}) {{"
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

    def layers(self):
        return f"""
/**
 * The layers of deep networks and the operations between their GEMMs, as jobs of a context ({{@link Context#layers}}) or recorded
 * in a graph ({{@link Graph#layers()}}). The methods without {{@code Async}} block in a context, and record in a graph, where they
 * return at once. Types are F64, F32, F16 and BF16, the same for all operands if not said otherwise. On a device with memory of
 * its own, operands are in device memory if not said otherwise. The result of an operation of elements or rows may be the operand
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
        yield "Submit", self.submit()
        yield "Layers", self.layers()
        yield "Structs", "\n".join(self.layouts()) + "\n"


def main():
    folder, *headers = map(pathlib.Path, sys.argv[1:])
    for name, text in Java(Model(headers)).files():
        (folder / f"{name}.java").write_text(PREFIX + text)


if __name__ == "__main__":
    main()
