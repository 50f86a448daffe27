#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C++ header from the public headers and what is written by hand. cpp.py OUTPUT TEMPLATE HEADER...

A function sg_x_y whose first parameter is a handle x is the method y of the class x, others are functions of the namespace; what it
gives back by pointers is returned. The kinds of parameters, by their C types, are all that this knows: no function has a rule of its
own but those of BY_HAND, which the template defines."""
import dataclasses
import pathlib
import re
import sys

import calls
import model

BY_HAND = ("sg_job_wait", "sg_job_query", "sg_job_wait_all", "sg_job_wait_any", "sg_job_on_complete", "sg_event_on_complete",
           "sg_queue_next_batch", "sg_context_create", "sg_host_alloc", "sg_host_alloc_near", "sg_host_free", "sg_last_error", "sg_last_error_message",
           "sg_last_error_marked", "sg_struct_init")
STATUS = ("sg_context_device_status",)  # the status that these return is their result
NOT_YET = {"_query": "SG_STATUS_NOT_READY", "_supports": "SG_STATUS_UNSUPPORTED"}  # that a test did not find
KEYWORDS = {"export": "exported"}
TEMPLATE_MEMBERS = {
    "context": """  /** Opens a device, by its name; "auto": the best one there is. */
  static result<context> create(const std::string &device = "auto", context_options options = {});
#ifndef STREAMGEMM_NO_EXCEPTIONS
  explicit context(const std::string &device = "auto", const context_options &options = {});
#endif
""",
    "job": """  result<void> wait() const;                                   /**< Until it has completed. Throws its failure. */
  result<bool> wait_for(std::chrono::nanoseconds timeout) const; /**< The same; false: the time passed. */
  bool done() const noexcept;
  sg_status status() const noexcept; /**< SG_STATUS_NOT_READY until it has completed. */
  /** Calls function(status) once, when it has completed, on the library's thread of callbacks; it may not throw. */
  template <class Function>
  result<void> on_complete(Function &&function) const;
#ifndef STREAMGEMM_NO_EXCEPTIONS
  std::future<void> as_future() const;
#endif
  class job_awaiter operator co_await() const noexcept;
""",
    "event": """  /** As job::on_complete, with the status of the work that the event is behind. */
  template <class Function>
  result<void> on_complete(Function &&function) const;
""",
    "queue": """  /** Up to `most` completions: at least one, unless the time passes. */
  result<std::vector<completion>> next_batch(std::size_t most = 64, std::chrono::nanoseconds timeout = forever) const;
""",
}


@dataclasses.dataclass
class Method:
    """A function in C++: where it is, what it takes, and how it calls C."""

    owner: str  # a class, or "" for the namespace
    name: str
    parameters: list
    defaults: list
    returns: str
    body: list

    def declared(self):
        arguments = ", ".join(p + (f" = {d}" if d else "") for p, d in zip(self.parameters, self.defaults))
        return f"{self.returns} {self.name}({arguments})" + (" const;" if self.owner else ";")

    def defined(self):
        arguments = ", ".join(self.parameters)
        head = f"inline {self.returns} {self.owner + '::' if self.owner else ''}{self.name}({arguments})"
        return "\n".join([head + (" const {" if self.owner else " {"), *("  " + line for line in self.body), "}"])


class Cpp:
    def __init__(self, public):
        self.public = public
        self.names = {name: name.removeprefix("sg_") for name in public.handles}
        # Structs with an initial value, which the derived ones have; views keep C's names.
        self.derived = [s for s in public.structs.values() if s.name.upper() + "_INIT" in public.macros and s.name not in ("sg_matrix", "sg_submit", "sg_operation_desc")]

    def handles(self):
        lines = []
        for raw, name in self.names.items():
            lines += [f"class {name};", f"using {name}_handle = handle<{raw}, {raw}_retain, {raw}_release>;"]
        return "\n".join(lines)

    def structs(self):
        lines = []
        for struct in self.derived:
            name = struct.name.removeprefix("sg_")
            lines += [f"/** As {struct.name}, with its initial values. */", f"struct {name} : {struct.name} {{",
                      f"  {name}() noexcept : {struct.name} {struct.name.upper()}_INIT {{}}",
                      f"  {name}(const {struct.name} &other) noexcept : {struct.name}(other) {{}}", "};"]
        lines += ["", "/** An operation and its descriptor, which has to exist as long as this does; made from any descriptor. */",
                  "struct operation_desc : sg_operation_desc {", "  operation_desc() noexcept : sg_operation_desc SG_OPERATION_DESC_INIT {}"]
        described = [(o.desc.name, o.number) for o in self.public.operations if o.number] + [("sg_copy_desc", "SG_OPERATION_COPY")]
        for desc, number in described:
            lines += [f"  operation_desc(const {desc} &of) noexcept : operation_desc() {{ operation = {number}, desc = &of; }}"]
        lines.append("};")
        return "\n".join(lines)

    def method(self, function):
        """The method of a function, by the kinds of its parameters."""
        rest = [(model.declarator(p), p) for p in function.parameters if p != "void"]
        owner, name = "", function.name.removeprefix("sg_")
        arguments, parameters, defaults, before, results = [], [], [], [], []
        text_ends_with_nul, text_name, timeout = None, None, False
        first = rest[0][1].split("*")[0].strip() if rest else ""
        created = re.match(r"(\w+)_(create|wrap|start)$", name)
        if first in self.names and "**" not in rest[0][1]:
            owner = self.names[first]
            name = name.removeprefix(owner + "_")
            arguments.append("get()")
            rest = rest[1:]
        if created:
            name = f"{created[2]}_{created[1]}"
        name = KEYWORDS.get(name, name)
        skip = 0
        for i, (given, text) in enumerate(rest):
            if skip:
                skip -= 1
                continue
            kind = re.sub(rf"\b{given}$", "", text).strip()
            plain = kind.replace("const", "").replace("*", "").strip()
            behind = [n for n, _ in rest[i + 1:]]
            if plain in ("char", "void") and behind[:2] == ["size", "out_size"]:
                text_ends_with_nul, text_name, skip = plain == "char", given, 2
                arguments.append("text, size, out_size")
            elif kind == "const sg_submit *":
                parameters.append("const submit &options"), defaults.append("{}"), arguments.append("options.get()")
            elif kind == "const sg_operation_desc *":
                parameters.append(f"const operation_desc &{given}"), defaults.append(""), arguments.append(f"&{given}")
            elif kind == "sg_status *":
                arguments.append("nullptr")
            elif kind.endswith("**") and plain in self.names and any("**" in t for _, t in rest[i + 1:]):
                arguments.append("nullptr")  # an array of handles beside the one of all
            elif kind.endswith("**") and plain in self.names:
                before.append(f"{plain} *{given} = nullptr;"), arguments.append(f"&{given}")
                results.append((self.names[plain], f"{self.names[plain]}({given})"))
            elif kind == "void **":
                before.append(f"void *{given} = nullptr;"), arguments.append(f"&{given}"), results.append(("void *", f"static_cast<void *>({given})"))
            elif kind.endswith("*") and plain in self.names:
                parameters.append(f"const {self.names[plain]}_handle &{given}"), defaults.append(""), arguments.append(f"{given}.get()")
            elif plain in self.public.structs and behind[:1] == ["count"]:
                parameters.append(f"descriptors<{plain}> {given}"), defaults.append("")
                arguments.append(f"{given}.data(), std::int32_t({given}.size())")
                skip = 1
            elif plain in self.public.structs and kind.startswith("const"):
                is_options = plain.endswith("_options")
                own = plain.removeprefix("sg_") if any(s.name == plain for s in self.derived) else plain
                parameters.append(f"const {own if is_options else plain} &{given}"), defaults.append("{}" if is_options else "")
                arguments.append(f"&{given}")
            elif plain in self.public.structs:
                made = plain.removeprefix("sg_")
                before.append(f"{made} {given};"), arguments.append(f"&{given}"), results.append((made, f"std::move({given})"))
            elif given.startswith("out_") and kind.endswith("*") and plain != "void":
                before.append(f"{plain} {given}{{}};"), arguments.append(f"&{given}"), results.append((plain, f"std::move({given})"))
            elif given == "timeout_ns":
                timeout = True
                parameters.append("std::chrono::nanoseconds timeout"), defaults.append("forever"), arguments.append("detail::timeout_of(timeout)")
            elif kind == "const char *":
                parameters.append(f"const std::string &{given}"), defaults.append(""), arguments.append(f"{given}.c_str()")
            else:
                parameters.append(text), defaults.append(""), arguments.append(given)
        call = f"{function.name}({', '.join(arguments)})"
        if text_name:
            returns = "result<std::string>"
            capture = "[&](auto *text, std::uint64_t size, std::uint64_t *out_size)"
            body = [f"return detail::text_of({capture} {{ return {call}; }}, {str(text_ends_with_nul).lower()});"]
        elif not function.text.startswith("SG_API sg_status") or function.name in STATUS:
            returns = re.match(r"SG_API (.*?)\b" + function.name, function.text)[1].strip()
            body = [f"return {call};"]
        elif timeout or any(function.name.endswith(end) for end in NOT_YET):
            not_yet = "SG_STATUS_TIMEOUT" if timeout else next(v for k, v in NOT_YET.items() if function.name.endswith(k))
            returns, body = "result<bool>", [f"return detail::give_unless({call}, {not_yet});"]
        elif len(results) == 1:
            returns = f"result<{results[0][0]}>"
            body = [*before, f"const sg_status status = {call};", f"return detail::give(status, {results[0][1]});"]
        elif results:
            raise ValueError(f"{function.name} has several results")
        else:
            returns, body = "result<void>", [f"return detail::give({call});"]
        # Defaults are the last ones only.
        for i in range(len(defaults) - 1, 0, -1):
            if not defaults[i] and defaults[i - 1]:
                defaults[i - 1] = ""
        return Method(owner, name, parameters, defaults, returns, body)

    def by_operands(self, call):
        """The two methods of an operation by its operands, as in the other languages: asynchronous, and one that waits."""
        fields = [f for f in call.arguments if f != "gradients"]
        desc = call.desc.name.removeprefix("sg_")
        pointer = {f.name: f"{'const ' if f.const else ''}{f.type} {f.pointer}{f.name}" if f.pointer else f"const {f.type} &{f.name}" if f.type in self.public.structs
                   else f"{f.type} {f.name}" for f in fields}
        sets = [f"desc.{name} = {value};" for name, value in call.fixed.items()] + [f"desc.{f.name} = {f.name};" for f in fields]
        for suffix, returns in (("_async", "result<job>"), ("", "result<void>")):
            forward = f"return {call.operation.name}{suffix}(static_cast<const {call.desc.name} &>(desc), options);"
            parameters = [*pointer.values(), f"{desc} desc", "const submit &options"]
            yield Method("context", call.name + suffix, parameters, [""] * len(fields) + ["{}", "{}"], returns, [*sets, forward])

    def all_methods(self):
        for function in self.public.functions.values():
            if function.exported and function.name not in BY_HAND and not function.name.endswith(("_retain", "_release")):
                yield self.method(function)
        operations = {o.name: o for o in self.public.operations}
        gemm = operations["gemm"]
        found = calls.calls_of(self.public)
        found.append(calls.Call("gemm", gemm, {}, [gemm.desc[n] for n in "abc"], [], [], False))
        for call in found:
            if call.arguments and "gradients" not in call.arguments:
                yield from self.by_operands(call)

    def text(self, template):
        methods = list(self.all_methods())
        classes = []
        for raw, name in self.names.items():
            own = [m.declared() for m in methods if m.owner == name]
            doc = re.sub(r"\s*Since \d+\.\d+\.", "", self.public.handles[raw].doc)
            classes += [f"/** {doc} */", f"class {name} : public {name}_handle {{", " public:", f"  using {name}_handle::handle;",
                        *([TEMPLATE_MEMBERS[name].rstrip()] if name in TEMPLATE_MEMBERS else []), *("  " + line for line in own), "};", ""]
        free = [m.declared() for m in methods if not m.owner]
        classes += free
        return (template.replace("@HANDLES@", self.handles()).replace("@STRUCTS@", self.structs()).replace("@CLASSES@", "\n".join(classes))
                .replace("@DEFINITIONS@", "\n\n".join(m.defined() for m in methods)))


def main():
    output, template, *headers = sys.argv[1:]
    public = model.Model([h for h in headers if pathlib.Path(h).name != "blas.h"])
    pathlib.Path(output).write_text(Cpp(public).text(pathlib.Path(template).read_text()))


if __name__ == "__main__":
    main()
