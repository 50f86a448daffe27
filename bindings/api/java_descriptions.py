# SPDX-License-Identifier: Apache-2.0
"""Java's class Operations."""
import calls
from calls import kind_of
from java_values import javadoc, plain
from managed import VIEWS
from names import camel, pascal


class JavaDescriptions:
    """The part of Java's emitter that describes operations for plans and graphs."""

    @staticmethod
    def stored_names(field):
        """The fields of a class that have an option's value."""
        return [camel(field.name), f"{camel(field.name)}Im"] if field.type == "sg_scalar" else [camel(field.name)]

    @staticmethod
    def copy_method(name, constructed, fields):
        stores = "\n".join(f"    made.{n} = {n};" for n in fields)
        return f"\n  {name} copy() {{\n    {name} made = new {name}({', '.join(constructed)});\n{stores}\n    return made;\n  }}"

    def copied(self, type, name):
        """An argument as a description keeps it, whatever the caller changes later."""
        if type.endswith("..."):
            return f"{name}.clone()"
        changes = type == "Windows" or type.endswith("Gradients") or type in map(pascal, self.options)
        return f'Objects.requireNonNull({name}, "{name}").copy()' if changes else name

    def descriptions(self):
        """The methods of Operations: each makes a call."""
        for call in self.calls:
            result = call.results[0] if call.results else None
            kind = VIEWS[kind_of(result)] if result else "Void"
            name, parameters = plain(call.name), self.signature(call)
            flags = [(self.option_type(f), camel(f.name), self.doc_of(f)) for f in call.options if self.is_inline(call) and calls.flags_type(self.model, f)]
            full, short = [p[:3] for p in parameters] + flags, [p[:3] for p in parameters if p[3] is None]
            about = self.text(calls.sentence(calls.about(call.operation)))
            forms = [(full, f"Layers.{name}Call({', '.join(self.copied(t, n) for t, n, _ in full)})")]
            if len(short) < len(parameters) and not call.gradients:
                forms.append((short, f"{name}({', '.join(n if value is None else value for _, n, _, value in parameters)})"))
            for taken, made in forms:
                tags = [f"@param {n} {doc}" for _, n, doc in taken] + ["@return its description"]
                yield f"{javadoc('  ', about, tags)}\n  public static OperationDesc<{kind}> {name}({', '.join(f'{t} {n}' for t, n, _ in taken)}) {{\n    return {made};\n  }}\n"

    def operations(self):
        return f"""
import java.util.List;
import java.util.Objects;

/** Descriptions of the operations that {{@link Layers}} and {{@link Context}} compute, for plans and graphs. */
public final class Operations {{
  private Operations() {{}}

  /**
   * GEMMs of different shapes, types and scalars as one job.
   *
   * @param products at least one; no C overlaps another's operands
   * @return their description
   */
  public static OperationDesc<List<Gemm>> gemmGroup(List<Gemm> products) {{
    return LayerCall.group(products);
  }}

  /**
   * A copy.
   *
   * @param to the destination
   * @param from the source, alike in type, layout and size
   * @return its description
   */
  public static OperationDesc<Matrix> copy(Matrix to, Matrix from) {{
    return Context.copyCall(to, to, from);
  }}

  /**
   * An all-reduce.
   *
   * @param operands as of {{@link Context#allReduce}}
   * @return its description
   */
  public static OperationDesc<Void> allReduce(List<Matrix> operands) {{
    return AllReduce.call(operands);
  }}

{chr(10).join(self.descriptions())}}}
"""
