#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Java enums and value classes that follow the public headers, with the headers' comments as Javadoc: a new
enum, enumerator, struct or field comes to Java by itself.

usage: values.py OUTPUT-FOLDER HEADER...

An enum becomes an enum of org.streamgemm. A struct that calls fill in (sg_x *out_...) becomes an immutable class with an accessor
for each field; so does a struct that such a struct has an array of, which is a list there. One that is called sg_..._options becomes a class with a setter for each field. The fields' C types say the Java
types.
"""
import pathlib
import re
import sys

NAMES = {"sg_dtype": "DType", "sg_context_flags": "ContextFlag", "sg_submit_flags": "SubmitFlag", "sg_gather_flags": "GatherFlag"}  # the others: sg_job_x is JobX
NUMBERS = {"int32_t": "int", "int64_t": "long", "uint32_t": "int", "uint64_t": "long", "size_t": "long", "double": "double"}
LEFT_OUT = ("struct_size", "reserved")
PREFIX = "// SPDX-License-Identifier: Apache-2.0\n// Written by values.py from the public headers.\npackage org.streamgemm;\n\n"


def prose(comment):
    """A C comment's text as Javadoc."""
    text = " ".join(re.sub(r"^[ \t]*\*(?!/)", "", comment, flags=re.M).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"`([^`]*)`", r"{@code \1}", re.sub(r"\bNULL\b", "null", text))


def camel(name):
    first, *others = name.split("_")
    return first + "".join(o.capitalize() for o in others)


def class_name(c_name):
    return NAMES.get(c_name) or "".join(word.capitalize() for word in c_name.split("_")[1:])


def described(text, kind, name):
    """The comment and the body of a typedef."""
    found = re.search(r"/\*\*((?:(?!\*/).)*)\*/\s*typedef " + kind + " " + name + r" \{(.*?)\n\} " + name + ";", text, flags=re.S)
    if not found:
        sys.exit(f"values.py: no documented {kind} {name} in the headers")
    return prose(found[1]), found[2]


def fields(body):
    """(C type, name, comment) of each field; an array of char is "char[]", one of structs "sg_x[]"; its count is no field."""
    for kind, star, name, array, comment in re.findall(
            r"^\s*(?:const )?(\w+) (\*?)(\w+)(\[\w+\])?;\s*/\*\*<((?:(?!\*/).)*)\*/", body, flags=re.M | re.S):
        if name not in LEFT_OUT and not re.search(r"\bsg_\w+ " + name.removesuffix("_count") + r"s\[", body):
            yield ("char[]" if kind == "char" and (array or star) else kind + "[]" if array else kind), name, prose(comment)


def enum_class(text, c_name, name):
    about, body = described(text, "enum", c_name)
    found = re.findall(r"^\s*(SG_\w+) = -?\d+,?\s*/\*\*<((?:(?!\*/).)*)\*/", body, flags=re.M | re.S)
    own = c_name.upper() + "_"  # SG_DTYPE_F32 of sg_dtype, but SG_MEMORY_PINNED of sg_memory_kind
    common = own if all(value.startswith(own) for value, _ in found) else re.match(r"SG_[A-Z0-9]+_", found[0][0])[0]
    constants = ",\n".join(
        f"  /** {prose(comment)} */\n  {constant_name(value[len(common):])}(RawConstants.{value})" for value, comment in found)
    return f"""import org.streamgemm.internal.RawConstants;

/** {about} */
public enum {name} {{
{constants};

  private static final java.util.Map<Integer, {name}> BY_VALUE = new java.util.HashMap<>();

  static {{
    for ({name} each : values()) BY_VALUE.put(each.value, each);
  }}

  final int value;

  {name}(long value) {{
    this.value = (int) value;
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


def constant_name(name):
    """A Java name does not begin with a digit: 3XTF32 becomes TF32X3."""
    return re.sub(r"^(\d+)X(\w+)", r"\2X\1", name)


def java_type(kind):
    if kind.endswith("[]") and kind != "char[]":
        return f"List<{class_name(kind[:-2])}>"
    return "String" if kind == "char[]" else NUMBERS.get(kind) or class_name(kind)


def reader(enums, c_name, kind, field):
    """The expression that reads a field of the struct."""
    read = f"Native.{c_name}_{field}_get(struct)"
    one = field.removesuffix("s")
    if kind.endswith("[]") and kind != "char[]":
        return f"{class_name(kind[:-2])}.each(Native.{c_name}_{one}_count_get(struct), i -> Native.{c_name}_{one}(struct, i))"
    return f"{class_name(kind)}.of({read})" if kind in enums else read


def info_class(text, c_name, name):
    about, body = described(text, "struct", c_name)
    enums = re.findall(r"\ntypedef enum (sg_\w+) \{", text)
    is_entry = "size_t struct_size;" not in body
    each = [(java_type(kind), camel(field), reader(enums, c_name, kind, field), comment) for kind, field, comment in fields(body)]
    imports = "".join(f"import {i};\n" for i in (
        *(["java.util.ArrayList", "java.util.List", "java.util.function.IntToLongFunction"] if is_entry else []),
        *(["java.util.List"] if not is_entry and any(kind.startswith("List") for kind, *_ in each) else []),
        *([] if is_entry else ["java.util.function.LongConsumer"]), "org.streamgemm.internal.Native"))
    made = f"""
  /** The entries of an array in a struct, whose addresses a function gives. */
  static List<{name}> each(int count, IntToLongFunction at) {{
    List<{name}> all = new ArrayList<>();
    for (int i = 0; i < count; ++i) all.add(new {name}(at.applyAsLong(i)));
    return List.copyOf(all);
  }}""" if is_entry else f"""
  /** Reads the struct that a call fills at an address. */
  static {name} from(LongConsumer call) {{
    long struct = Native.new_{c_name}();
    if (struct == 0) throw new OutOfMemoryError("{c_name}");
    try {{
      call.accept(struct);
      return new {name}(struct);
    }} finally {{
      Native.delete_{c_name}(struct);
    }}
  }}"""
    holders = "\n".join(f"  private final {kind} {field};" for kind, field, _, _ in each)
    reads = "\n".join(f"    {field} = {read};" for _, field, read, _ in each)
    accessors = "\n".join(f"""
  /**
   * {comment}
   *
   * @return the value
   */
  public {kind} {field}() {{
    return {field};
  }}""" for kind, field, _, comment in each)
    shown = " + \", ".join(f'{field}=" + {field}' for _, field, _, _ in each)
    return f"""{imports}
/** {about} */
public final class {name} {{
{holders}

  private {name}(long struct) {{
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


def options_class(text, c_name, name):
    about, body = described(text, "struct", c_name)
    parts, writes = [], []
    for kind, field, comment in fields(body):
        java, own = java_type(kind), camel(field)
        flags = kind == "uint32_t" and re.search(r"sg_\w+_flags", comment)
        start = f" = {java}.of(0)" if java not in NUMBERS.values() and java != "String" else ""
        taken = f"{class_name(flags[0])}... {own}" if flags else f"{java} {own}"
        stores = (f"    this.{own} = 0;\n    for ({class_name(flags[0])} each : {own}) this.{own} |= each.value;" if flags
                  else f"    this.{own} = {'java.util.Objects.requireNonNull(' + own + ', ' + chr(34) + own + chr(34) + ')' if start else own};")
        parts.append(f"""
  /**
   * {comment}
   *
   * @param {own} the value
   * @return these options
   */
  public {name} {own}({taken}) {{
{stores}
    return this;
  }}

  /**
   * {comment}
   *
   * @return the value
   */
  public {java} {own}() {{
    return {own};
  }}""")
        parts.insert(len(writes), f"  private {java} {own}{start};")
        value = f"{own}.value" if start else own
        writes.append(f"      Native.{c_name}_{field}_set(struct, {value});")
    holders, methods = "\n".join(parts[:len(writes)]), "\n".join(parts[len(writes):])
    copies = "\n".join(f"    copy.{camel(f)} = {camel(f)};" for _, f, _ in fields(body))
    return f"""import java.util.function.LongUnaryOperator;
import org.streamgemm.internal.Native;

/** {about} Read when they are given to a call; not safe to change on one thread while another uses them. */
public final class {name} {{
{holders}

  /** All defaults. */
  public {name}() {{}}
{methods}

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
  long with(LongUnaryOperator call) {{
    long struct = Native.new_{c_name}();
    if (struct == 0) throw new OutOfMemoryError("{c_name}");
    try {{
{chr(10).join(writes)}
      return call.applyAsLong(struct);
    }} finally {{
      Native.delete_{c_name}(struct);
    }}
  }}
}}
"""


def holds_addresses(text, c_name):
    """Such a struct is for the code of this package."""
    return re.search(r"\bvoid \*", described(text, "struct", c_name)[1]) is not None


def main():
    folder, *headers = map(pathlib.Path, sys.argv[1:])
    text = "\n".join(h.read_text() for h in headers)
    enums = re.findall(r"\ntypedef enum (sg_\w+) \{", text)
    sized = re.findall(r"\ntypedef struct (sg_\w+) \{\s*size_t struct_size;", text)
    infos = [name for name in sized if re.search(r"\b" + name + r" \*out_", text) and not holds_addresses(text, name)]
    entries = [entry for name in infos for entry in re.findall(r"\b(sg_\w+) \w+\[\w+\];", described(text, "struct", name)[1])]
    options = [name for name in sized if name.endswith("_options")]
    for names, write in ((enums, enum_class), (infos + entries, info_class), (options, options_class)):
        for c_name in names:
            (folder / f"{class_name(c_name)}.java").write_text(PREFIX + write(text, c_name, class_name(c_name)))


if __name__ == "__main__":
    main()
