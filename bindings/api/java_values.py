# SPDX-License-Identifier: Apache-2.0
"""Java's enums, exceptions, layouts and classes of structs; see java.py."""
import re

import calls
from managed import Managed
from names import camel, pascal

CLASSES = {"sg_dtype": "DType", "sg_context_flags": "ContextFlag", "sg_submit_flags": "SubmitFlag", "sg_gather_flags": "GatherFlag"}
NUMBERS = {"int32_t": "int", "int64_t": "long", "uint32_t": "int", "uint64_t": "long", "size_t": "long", "double": "double"}
PREFIX = "// SPDX-License-Identifier: Apache-2.0\n// Written by bindings/api/java.py from the public headers.\npackage org.streamgemm;\n"
EXCEPTION = '''
import java.util.concurrent.CancellationException;

/**
 * A failure that the library reports, with its status and message. Each status has a class of its own below. Two of
 * them are standard Java exceptions: a wrong argument is an {@link IllegalArgumentException}, and a cancelled job fails
 * with a {@link CancellationException}, as futures do.
 */
public class StreamGemmException extends RuntimeException implements StreamGemmFailure {
  private static final long serialVersionUID = 1;

  /** The status. */
  private final Status status;
  /** The whole message, which a job has when the program asks for its outcome; null: the one given at first. */
  private volatile String whole;

  /**
   * A failure.
   *
   * @param status its status
   * @param message its message
   */
  protected StreamGemmException(Status status, String message) {
    super(message);
    this.status = status;
  }

  @Override
  public Status status() {
    return status;
  }

  @Override
  public String getMessage() {
    return whole == null ? super.getMessage() : whole;
  }

  /** Replaces a message that was cut. */
  final void complete(String text) {
    whole = text;
  }

  /**
   * The exception of a status.
   *
   * @param status a failure
   * @param message its message
   * @return a {@link CancellationException} for {@link Status#CANCELLED}, an {@link InvalidArgument} for {@link
   *     Status#INVALID_ARGUMENT}, else an exception of this class
   */
  public static RuntimeException of(Status status, String message) {
    switch (status) {
CASES
      default:
        return new StreamGemmException(status, message);
    }
  }

  /**
   * The exception of a failed call.
   *
   * @param status a failure
   * @param text its message, with the names of C marked
   * @param call the number of the call, whose arguments are named; negative: of no operation
   * @return the same as of a status and a message
   */
  public static RuntimeException of(Status status, String text, int call) {
    return of(status, Names.inJava(text, call));
  }

  /** An argument is wrong; the message names it. */
  public static final class InvalidArgument extends IllegalArgumentException implements StreamGemmFailure {
    private static final long serialVersionUID = 1;

    InvalidArgument(String message) {
      super(message);
    }

    @Override
    public Status status() {
      return Status.INVALID_ARGUMENT;
    }
  }

CLASSES
}
'''


def class_name(c_name):
    return CLASSES.get(c_name) or "".join(w.capitalize() for w in c_name.split("_")[1:])


def plain(name):
    """x_y as xY."""
    first, *others = name.split("_")
    return first + "".join(o.capitalize() for o in others)


def javadoc(indent, text, tags=()):
    lines = [text, *([""] if tags else []), *tags]
    return "\n".join([f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in lines), f"{indent} */"])


class JavaValues(Managed):
    any_type = "null"
    case = staticmethod(camel)
    method = staticmethod(plain)

    def __init__(self, model):
        super().__init__(model)
        self.constants = {v.name: f"{class_name(e.name)}.{self.member(e, v)}" for e in model.enums.values() for v in e.values}

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
            stored = f"java.util.Objects.requireNonNull({own}, \"{own}\")" if is_enum else f'Names.requireSize("{own}", {own})' if f.type == "uint64_t" else own
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
                is_enum = f.type in self.model.enums
                members.append(f"private {java} {own}{f' = {java}.of(0)' if is_enum else ''};")
                stored = f"java.util.Objects.requireNonNull({own}, \"{own}\")" if is_enum else own
                writes.append(self.write(struct, f, f"{own} | more" if flags else own, "order"))
                taken = f"{class_name(flags)}... {own}" if flags else f"{java} {own}"
                setter(own, taken, f"    this.{own} = 0;\n    for ({class_name(flags)} each : {own}) this.{own} |= each.value;" if flags else f"    this.{own} = {stored};", doc)
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

    def exceptions(self):
        """A class for each failure; Java has its own for a cancelled job."""
        failures = [(v, v.name.removeprefix("SG_STATUS_")) for v in self.model.enums["sg_status"].values if v.value.startswith("-")]
        names = {member: "CancellationException" if member == "CANCELLED" else pascal(member) for _, member in failures}
        cases = "\n".join(f"      case {member}:\n        return new {name}(message);" for member, name in names.items())
        classes = "\n".join(f"""
  /** {self.text(value.doc)} */
  public static final class {names[member]} extends StreamGemmException {{
    private static final long serialVersionUID = 1;

    {names[member]}(String message) {{
      super(Status.{member}, message);
    }}
  }}""" for value, member in failures if member not in ("CANCELLED", "INVALID_ARGUMENT"))
        return EXCEPTION.replace("CASES", cases).replace("CLASSES", classes.removeprefix("\n"))
