#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the public C# enumerations and the classes over info and option structs from the public headers, comments included.

usage: declarations.py OUT.cs HEADER...

Rules, not lists, so that what a header gains comes to C# by itself:

- `typedef enum sg_x` is an enum X, each SG_X_SOME_NAME a member SomeName; one whose name ends in _flags is [Flags]
- a struct that such a struct has an array of is a class with properties to read, and the array is a list; its count is none
- a struct that begins with struct_size and is only ever filled in by the library is a class with properties to read;
  one that is only ever read by the library is a class with properties to set. A struct that holds handles or other
  structs has no such class: the idiomatic layer speaks for it.
- a comment /** above or /**< behind a declaration is its documentation
"""
import pathlib
import re
import sys
from xml.sax.saxutils import escape

WORDS = {"dtype": "DType"}
NUMBERS = {"int32_t": "int", "int64_t": "long", "double": "double", "float": "float"}
UNSIGNED = {"uint32_t": ("int", "uint"), "uint64_t": ("long", "ulong"), "size_t": ("long", "ulong")}


def pascal(name):
    """sg_memory_kind -> MemoryKind, 3XTF32 -> Tf32x3."""
    words = name.removeprefix("sg_").lower().split("_")
    words = [re.sub(r"^(\d+)x(\w+)$", r"\2x\1", w) for w in words]
    return "".join(WORDS.get(w, w[:1].upper() + w[1:]) for w in words)


def summary(comment, indent):
    text = " ".join(line.strip().lstrip("*").strip() for line in comment.strip().splitlines()).strip()
    text = re.sub(r"\s+", " ", re.sub(r"@\w+(\[[\w,]+\])?", "", text)).strip()
    return f"{indent}/// <summary>{escape(text)}</summary>"


COMMENT_ABOVE = r"/\*\*(?!<)((?:(?!\*/).)*)\*/\s*"
COMMENT_BEHIND = r"/\*\*<((?:(?!\*/).)*)\*/"


def enums_of(text):
    for comment, body, name in re.findall(COMMENT_ABOVE + r"typedef enum \w+ \{(.*?)\} (\w+);", text, flags=re.S):
        members = re.findall(r"(SG_\w+)\s*=\s*(-?\w+)\s*,?\s*" + COMMENT_BEHIND, body, flags=re.S)
        if len(members) != len(re.findall(r"\bSG_\w+\s*=", body)):
            sys.exit(f"{name}: an enumerator has no comment behind it, or a value that is no number")
        prefix = members[0][0]
        while not all(m[0].startswith(prefix) for m in members) or not prefix.endswith("_"):
            prefix = prefix[:-1]
        yield summary(comment, "  ")
        if name.endswith("_flags"):
            yield "  [System.Flags]"
        yield f"  public enum {pascal(name)} {{"
        for member, value, doc in members:
            yield summary(doc, "    ")
            yield f"    {pascal(member[len(prefix):])} = {value},"
        yield "  }"
        yield ""


def property_of(kind, name, array, comment, enums):
    """C# type, expression that reads and statement that writes a member; None for other members than numbers, text and enumerators."""
    native = f"native.{name}"
    flags = re.match(r"(sg_\w+_flags)\b", comment)
    if kind == "const char *" or kind == "char" and array:
        return "string", native, f"{native} = value"
    if array and kind.startswith("sg_"):
        one = name.removesuffix("s")
        return (f"System.Collections.Generic.IReadOnlyList<{pascal(kind)}>",
                f"{pascal(kind)}.Each(native.{one}_count, native.{one}, native)", None)
    if array:
        return None
    if flags:
        return pascal(flags[1]), f"({pascal(flags[1])}){native}", f"{native} = (uint)value"
    if kind in enums:
        return pascal(kind), f"({pascal(kind)}){native}", f"{native} = (int)value"
    if kind == "int32_t" and comment.startswith("1: "):
        return "bool", f"{native} != 0", f"{native} = value ? 1 : 0"
    if kind in UNSIGNED:
        public, proxy = UNSIGNED[kind]
        return public, f"checked(({public}){native})", f"{native} = checked(({proxy})value)"
    return (NUMBERS[kind], native, f"{native} = value") if kind in NUMBERS else None


def properties_of(members, enums):
    members = [(k.strip(), n, a, " ".join(doc.split())) for k, n, a, doc in members if n != "reserved"]
    counts = {n.removesuffix("s") + "_count" for k, n, a, _ in members if a and k.startswith("sg_")}
    return [(n, property_of(k, n, a, doc, enums), doc) for k, n, a, doc in members if n not in counts]


def entries_of(text, everything, enums):
    """The structs that another one has an array of."""
    entries = set(re.findall(r"\b(sg_\w+) \w+\[\w+\];", everything))
    for comment, body, name in re.findall(COMMENT_ABOVE + r"typedef struct \w+ \{(.*?)\n\} (\w+);", text, flags=re.S):
        if name not in entries:
            continue
        found = properties_of(re.findall(r"\s*([^;]*?)(\w+)(\[\w+\])?;\s*" + COMMENT_BEHIND, body, flags=re.S), enums)
        yield summary(comment, "  ")
        yield f"  public sealed class {pascal(name)} {{"
        for member, (kind, _, _), doc in found:
            yield summary(doc, "    ")
            yield f"    public {kind} {pascal(member)} {{ get; }}"
        yield f"    internal {pascal(name)}(Internal.{name} native) {{"
        for member, (_, read, _), _ in found:
            yield f"      {pascal(member)} = {read};"
        yield "    }"
        yield f"    internal static {pascal(name)}[] Each(int count, System.Func<int, Internal.{name}> at, object owner) {{"
        yield f"      var all = new {pascal(name)}[count];"
        yield f"      for (int i = 0; i < count; ++i) all[i] = new {pascal(name)}(at(i));"
        yield "      System.GC.KeepAlive(owner);"
        yield "      return all;"
        yield "    }"
        yield "  }"
        yield ""


def structs_of(text, everything, enums):
    sized = COMMENT_ABOVE + r"typedef struct \w+ \{\s*size_t struct_size;\s*" + COMMENT_BEHIND + r"(.*?)\} (\w+);"
    for comment, _, body, name in re.findall(sized, text, flags=re.S):
        members = re.findall(r"\s*([^;]*?)(\w+)(\[\w+\])?;\s*" + COMMENT_BEHIND, body, flags=re.S)
        properties = properties_of(members, enums)
        if not all(p for _, p, _ in properties):
            continue
        filled_in = re.search(rf"(?<!const )\b{name} \*out_", everything)
        yield summary(comment, "  ")
        yield f"  public sealed class {pascal(name)} {{"
        yield f"    internal readonly Internal.{name} native = new Internal.{name}();"
        if filled_in:
            yield f"    internal {pascal(name)}() {{ }}"
        for member, (kind, read, write), doc in properties:
            setter = "" if filled_in else f" set {{ {write}; }}"
            yield summary(re.sub(r"^sg_\w+_flags\b", "Flags", doc), "    ")
            yield f"    public {kind} {pascal(member)} {{ get {{ return {read}; }}{setter} }}"
        yield "  }"
        yield ""


def main():
    output, *headers = map(pathlib.Path, sys.argv[1:])
    texts = [h.read_text() for h in sorted(headers) if h.name not in ("streamgemm.h", "backend.h")]
    everything = "\n".join(texts)
    enums = set(re.findall(r"typedef enum \w+ \{.*?\} (\w+);", everything, flags=re.S))
    for text in texts:
        made = sum(line.startswith("  public enum") for line in enums_of(text))
        if made != text.count("typedef enum"):
            sys.exit("an enumeration has no comment above it")
    lines = ["// Made from the public headers by declarations.py.", "namespace StreamGemm {"]
    for text in texts:
        lines += enums_of(text)
        lines += entries_of(text, everything, enums)
        lines += structs_of(text, everything, enums)
    output.write_text("\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
