# SPDX-License-Identifier: Apache-2.0
"""The public headers as one model, which everything that reads them reads: the rules for SWIG, the emitters of the
languages, the ABI tests. The headers keep a few habits (tests/abi asserts them):

- `typedef struct sg_x sg_x;` without a body is a handle
- a struct that begins with struct_size has an initial value, SG_X_INIT
- sg_x_async(context, const sg_x_desc *, submit, job) submits the operation x
- a comment /** before, or /**< behind, a declaration is its documentation
- the comment of an operand begins with a marker, which says what C cannot:

      [in]  [out]  [inout]           read, written, both
      [in optional]                  may be left out
      [in for dw]                    read for the result dw only
      [out: batch x hidden]          its shape, by fields of the struct and by symbols; the first operand that is given
                                     determines a size, the others are checked
      [in: op_w(in x out)]           its shape, transposed where that field says so
      [in: gates*hidden of f32]      its type, if it has none of its own: a field of the struct, or a type
      [in: queries x keys of i8]     of sg_heads: scores, which any stride of 0 repeats
      [in: batch x hidden by stride] the field that is the distance of its rows, in elements
"""
import dataclasses
import functools
import pathlib
import re

TOKEN = re.compile(
    r'(?P<behind>/\*\*<.*?\*/)|(?P<before>/\*\*.*?\*/)|(?P<comment>/\*.*?\*/|//[^\n]*)'
    r'|(?P<directive>^[ \t]*#(?:[^\n]*\\\n)*[^\n]*)|(?P<code>"(?:\\.|[^"\\])*"|\w+|\S)', re.S | re.M)
MARKER = re.compile(
    r"\[(?P<access>in|out|inout)(?P<optional> optional)?(?: for (?P<needed_for>\w+))?(?:: (?P<shape>[^\]]*?))??"
    r"(?: of (?P<dtype>\w+))?(?: by (?P<stride>\w+))?\]\s*")
SCALARS = {"char": 1, "int32_t": 4, "uint32_t": 4, "float": 4, "int64_t": 8, "uint64_t": 8, "size_t": 8, "double": 8}
PLUMBING = ("struct_size", "reserved")


def words_of(comment):
    """A comment's words on one line, without its stars."""
    inside = re.sub(r"^/\*\*?<?|\*/$", "", comment)
    return " ".join(re.sub(r"^\s*\*", "", line).strip() for line in inside.splitlines()).strip()


@dataclasses.dataclass
class Marker:
    """What the marker of an operand says."""

    access: str
    optional: bool
    needed_for: str | None
    shape: tuple[str, ...]
    dtype: str | None
    stride: str | None
    op: str | None  # the field that transposes it
    zeros: bool  # may be left out even where it is needed

    @property
    def written(self):
        return self.access != "in"


@dataclasses.dataclass
class Item:
    """One declaration: a struct, enum, enumerator, field, type, macro or function."""

    kind: str
    name: str
    doc: str
    text: str = ""  # the declaration itself
    exported: bool = False  # functions: marked SG_API
    value: str = ""  # enumerators: as written

    @property
    def since(self):
        """The release that it came with, as "0.10"; None: the first one, or that of its type."""
        found = re.search(r"\bSince (\d+\.\d+)\.", self.doc)
        return found and found[1]


@dataclasses.dataclass
class Field(Item):
    """A member of a struct."""

    type: str = ""  # without const, pointers and array
    pointer: str = ""  # "", "*", "*const *"
    const: bool = False
    array: str = ""
    marker: Marker | None = None
    init: object = None  # of the struct's SG_X_INIT: text, or a list of a struct's
    offset: int = 0


@dataclasses.dataclass
class Struct(Item):
    fields: list = dataclasses.field(default_factory=list)
    size: int = 0
    align: int = 1

    def __getitem__(self, name):
        return next(f for f in self.fields if f.name == name)

    @property
    def sized(self):
        """Whether it begins with its size, so that fields can be added."""
        return bool(self.fields) and self.fields[0].name == "struct_size"

    @property
    def earlier_ends(self):
        """The fields where it ended in earlier releases: behind the last one that such a release had. Newer ones before that one have
        taken the place of reserved bytes."""
        releases = [[int(part) for part in (field.since or "0").split(".")] for field in self.fields]
        lengths = {max(i for i, each in enumerate(releases) if each <= release) + 1 for release in releases}
        return [self.fields[length].name for length in sorted(lengths) if length < len(self.fields)]

    @property
    def own(self):
        """The fields that mean something."""
        return [f for f in self.fields if f.name not in PLUMBING]


@dataclasses.dataclass
class Enum(Item):
    values: list = dataclasses.field(default_factory=list)

    @property
    def prefix(self):
        """SG_DTYPE_ of sg_dtype, but SG_MEMORY_ of sg_memory_kind."""
        own = self.name.upper() + "_"
        return own if all(v.name.startswith(own) for v in self.values) else re.match(r"SG_[A-Z0-9]+_", self.values[0].name)[0]


@dataclasses.dataclass
class Function(Item):
    parameters: list = dataclasses.field(default_factory=list)  # declarations


@dataclasses.dataclass
class Operation:
    """An operation: sg_NAME_async and its descriptor."""

    name: str
    desc: Struct
    function: Function
    number: str | None  # SG_OPERATION_NAME; None: it is recorded as another one


def declarator(text):
    """Name of what a declaration declares, and whether it is a pointer to a function."""
    pointer = re.search(r"\(\*(\w+)\)", text)
    return pointer[1] if pointer else re.search(r"(\w+)\s*(?:\[\w+\])?$", text)[1]


def field_of(name, doc, text):
    found = Field("field", name, doc, text)
    marked = MARKER.match(doc)
    if marked:
        turned = re.fullmatch(r"(\w+)\((.*)\)", marked["shape"] or "")
        shape = tuple((turned[2] if turned else marked["shape"] or "").split(" x ")) if marked["shape"] else ()
        found.marker = Marker(marked["access"], bool(marked["optional"] or marked["needed_for"]), marked["needed_for"], shape,
                              marked["dtype"], marked["stride"], turned and turned[1], bool(marked["optional"]))
        found.doc = doc[marked.end():]
    plain = re.match(r"(const )?(\w+) ?((?:\* ?(?:const )?)*)" + name + r"(?:\[(\w+)\])?$", text)
    if plain:
        found.const, found.type, found.pointer, found.array = bool(plain[1]), plain[2], plain[3].strip(), plain[4] or ""
    return found


WIDTH_OF_ENUMS = ("SG_ENUM_INT", "SG_ENUM_CHECK")  # words for compilers


class Parser:
    """The declarations of one header, in order."""

    def __init__(self, text):
        self.text = text
        self.tokens = [(m.lastgroup, m.group(), m.start(), m.end()) for m in TOKEN.finditer(text) if m.lastgroup != "comment" and m.group() not in WIDTH_OF_ENUMS]
        self.at = 0

    def until(self, separator, closing=None):
        """The declaration up to a separator outside of brackets: its text, its tokens, and the comments before and behind."""
        first, last, depth, docs, tokens = None, None, 0, [], []
        while self.at < len(self.tokens):
            kind, text, start, end = self.tokens[self.at]
            if kind == "code" and depth == 0 and (text == separator or text == closing):
                self.at += text == separator
                break
            self.at += 1
            if kind == "code":
                depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(text, 0)
                first = start if first is None else first
                last = end
                tokens.append((text, self.at))
            elif depth == 0:
                docs.append(words_of(text))
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "behind" and tokens:
            docs.append(words_of(self.tokens[self.at][1]))
            self.at += 1
        return (re.sub(r"\s+", " ", self.text[first:last]) if tokens else "", tokens, " ".join(docs))

    def members(self, separator):
        """Of a body in braces, whose first brace has been read: declarations and their comments."""
        while self.tokens[self.at][1] != "}":
            text, _, doc = self.until(separator, "}")
            if text:
                yield text, doc
        self.at += 1

    def declarations(self):
        doc = ""
        while self.at < len(self.tokens):
            kind, text, _, _ = self.tokens[self.at]
            if kind in ("before", "behind"):
                doc = words_of(text)
            elif kind == "directive":
                macro = re.match(r"\s*#\s*define\s+(\w+)(.*)", text, re.S)
                if macro and not macro[1].endswith("_H"):
                    value = re.sub(r"\s+", " ", macro[2].replace("\\\n", " "))
                    yield Item("macro", macro[1], doc, re.sub(r"\s*/\*.*?\*/", "", value).strip())
                if not text.lstrip().startswith("#if"):
                    doc = ""
            elif text not in ("SG_BEGIN_DECLS", "SG_END_DECLS"):
                yield self.declaration(doc)
                doc = ""
                continue
            self.at += 1

    def declaration(self, doc):
        ahead = [text for _, text, _, _ in self.tokens[self.at:self.at + 4]]
        if ahead[0] == "typedef" and ahead[1] in ("struct", "enum") and ahead[3] == "{":
            self.at += 4
            name = ahead[2]
            if ahead[1] == "enum":
                found = Enum("enum", name, doc)
                for text, comment in self.members(","):
                    value, _, number = (part.strip() for part in text.partition("="))
                    found.values.append(Item("enumerator", value, comment, text, value=number))
            else:
                found = Struct("struct", name, doc)
                for text, comment in self.members(";"):
                    names = [declarator(text)] if "(" in text else re.findall(r"(\w+)\s*(?:\[\w+\])?\s*(?:,|$)", text)
                    found.fields += [field_of(n, comment, text) for n in names]
            self.until(";")
            return found
        text, tokens, _ = self.until(";")
        if text.startswith("typedef"):
            text = text.removeprefix("typedef").strip()
            return Item("type", declarator(text) if "(*" in text else text.split()[-1], doc, text)
        name = re.search(r"\b(sg_\w+)\s*\(", text)
        parameters = re.search(r"\((.*)\)", text)[1].split(",")
        return Function("function", name[1], doc, text + ";", "SG_API" in text, "", [p.strip() for p in parameters])


def parse(text):
    """Everything that a header declares."""
    return list(Parser(text).declarations())


def flat(items):
    """The same with the members of structs and enums behind each."""
    for item in items:
        yield item
        for member in getattr(item, "fields", []) + getattr(item, "values", []):
            marker = "" if getattr(member, "marker", None) is None else member.doc or "."
            yield Item(member.kind, member.name, marker or member.doc, f"{item.name}: {member.text}", value=member.value)


def headers_in_order(paths):
    """The headers, each after those that it includes; without the umbrella and the interface of plugins."""
    texts = {p.name: p.read_text() for p in map(pathlib.Path, paths) if p.name not in ("streamgemm.h", "backend.h")}
    done = []

    def visit(name):
        for included in re.findall(r"#include <streamgemm/([\w.]+)>", texts[name]):
            if included in texts and included not in done:
                visit(included)
        if name not in done:
            done.append(name)

    for name in sorted(texts):
        visit(name)
    return {name: texts[name] for name in done}


class Model:
    """The headers of applications."""

    def __init__(self, paths):
        self.texts = headers_in_order(paths)
        self.items = {name: parse(text) for name, text in self.texts.items()}
        every = [item for items in self.items.values() for item in items]
        self.macros = {i.name: i for i in every if i.kind == "macro"}
        self.enums = {i.name: i for i in every if i.kind == "enum"}
        self.structs = {i.name: i for i in every if i.kind == "struct"}
        self.functions = {i.name: i for i in every if i.kind == "function"}
        self.handles = {i.name: i for i in every if i.kind == "type" and "(" not in i.text}
        self.callbacks = {i.name: i for i in every if i.kind == "type" and "(" in i.text}
        for struct in self.structs.values():
            self.lay_out(struct)
            if struct.name.upper() + "_INIT" in self.macros:
                for field, value in zip(struct.fields, self.initial(struct.name)):
                    field.init = value

    @functools.cached_property
    def operations(self):
        numbers = {v.name for v in self.enums["sg_operation"].values}
        found = []
        for name, function in self.functions.items():
            short = name.removeprefix("sg_").removesuffix("_async")
            takes = [p.split("*")[0].strip() for p in function.parameters]
            if short == "operation":
                continue  # any of the others
            if name.endswith("_async") and takes == ["sg_context", f"const sg_{short}_desc", "const sg_submit", "sg_job"]:
                number = f"SG_OPERATION_{short.upper()}"
                found.append(Operation(short, self.structs[f"sg_{short}_desc"], function, number if number in numbers else None))
        return found

    def extent(self, field):
        """Bytes and alignment of one element of a field."""
        if field.pointer or field.type in self.callbacks:
            return 8, 8
        if field.type in self.structs:
            struct = self.structs[field.type]
            if not struct.size:
                self.lay_out(struct)
            return struct.size, struct.align
        size = 4 if field.type in self.enums else SCALARS[field.type]
        return size, size

    def lay_out(self, struct):
        """Offsets as on every 64-bit system of the library; the wrappers' C compiler checks them."""
        at, struct.align = 0, 1
        for field in struct.fields:
            size, align = self.extent(field)
            at = -(-at // align) * align
            field.offset = at
            at += size * (self.constant(field.array) if field.array else 1)
            struct.align = max(struct.align, align)
        struct.size = -(-at // struct.align) * struct.align

    def constant(self, text):
        return int(text) if text.isdigit() else self.constant(self.macros[text].text)

    def initial(self, name):
        """The values of SG_X_INIT: texts, and lists of those of structs."""
        tokens = re.findall(r'"[^"]*"|\([^()]*\)|[{},]|[^\s{},()]+', self.macros[name.upper() + "_INIT"].text)
        stack, before = [[]], ""
        for token in [*tokens, ""]:
            if token in ("{", "}", ",", "") and before:
                known = re.fullmatch(r"SG_\w+_INIT", before)
                stack[-1].append(self.initial(before.removesuffix("_INIT").lower()) if known else before)
                before = ""
            if token == "{":
                stack.append([])
            elif token == "}":
                stack[-2].append(stack.pop())
            elif token != ",":
                before += token
        return stack[0][0]
