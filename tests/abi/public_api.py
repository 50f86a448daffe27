# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers: declarations, and the comment of each."""
import dataclasses
import pathlib
import re

BLOCK = re.compile(r"/\*(?!\*<)(\*?)(.*?)\*/", re.S)


@dataclasses.dataclass
class Item:
    """One declaration: a function, type, enumerator, field or macro."""

    kind: str
    name: str
    doc: str
    text: str = ""  # the declaration itself
    exported: bool = False  # functions: marked SG_API
    value: str = ""  # enumerators: as written


def squeeze(text):
    """A comment's words on one line, without its stars."""
    return " ".join(re.sub(r"^\s*\*", "", line).strip() for line in text.splitlines()).strip()


def headers(folder):
    return sorted(pathlib.Path(folder).glob("*.h"))


def members(body, kind):
    """Fields or enumerators of a type, each with the comment before or behind it."""
    items = []
    separator = "," if kind == "enumerator" else ";"
    # Comments hold separators too, so they are taken out first and remembered by number.
    comments = []

    def remember(match):
        comments.append(squeeze(match.group(2)))
        return f"@{'<' if match.group(1) == '<' else '>'}{len(comments) - 1}@"

    marked = re.sub(r"/\*\*(<?)(.*?)\*/", remember, body, flags=re.S)
    # A trailing comment stands behind the separator of its member: move it before.
    marked = re.sub(rf"{separator}(\s*)(@<\d+@)", rf"\2{separator}", marked)
    depth, piece, pieces = 0, "", []
    for character in marked:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == separator and depth == 0:
            pieces.append(piece)
            piece = ""
        else:
            piece += character
    pieces.append(piece)
    for piece in pieces:
        doc = " ".join(comments[int(n)] for n in re.findall(r"@[<>](\d+)@", piece))
        text = re.sub(r"@[<>]\d+@", "", piece).strip()
        if not text:
            continue
        if kind == "enumerator":
            name, _, value = (part.strip() for part in text.partition("="))
            items.append(Item(kind, name, doc, text, value=value))
            continue
        pointer = re.search(r"\(\*(\w+)\)", text)
        names = [pointer.group(1)] if pointer else re.findall(r"(\w+)\s*(?:\[\w+\])?\s*(?:,|$)", text)
        items.extend(Item(kind, name, doc, re.sub(r"\s+", " ", text)) for name in names)
    return items


def parse(text):
    """Everything that a header declares."""
    items = []
    doc_before = r"(?:/\*\*(?!<)(?P<doc>(?:(?!\*/).)*)\*/\s*)?"
    # Types first; they are then blanked, so that their insides are not taken for functions.
    record = re.compile(
        doc_before + r"typedef\s+(?P<kind>struct|enum)\s+\w+\s*\{(?P<body>.*?)\}\s*(?P<name>\w+)\s*;", re.S
    )
    for match in record.finditer(text):
        kind = match["kind"]
        items.append(Item(kind, match["name"], squeeze(match["doc"] or "")))
        inner = members(match["body"], "enumerator" if kind == "enum" else "field")
        items.extend(dataclasses.replace(item, text=f"{match['name']}: {item.text}") for item in inner)
    text = record.sub("", text)
    simple = re.compile(doc_before + r"typedef\s+(?P<text>[^;{}]*?);", re.S)
    for match in simple.finditer(text):
        pointer = re.search(r"\(\*(\w+)\)", match["text"])
        name = pointer.group(1) if pointer else match["text"].split()[-1]
        items.append(Item("type", name, squeeze(match["doc"] or ""), squeeze(match["text"])))
    text = simple.sub("", text)
    macro = re.compile(doc_before + r"(?:#if[^\n]*\n)?#define\s+(?P<name>\w+)(?P<text>[^\n]*)", re.S)
    for match in macro.finditer(text):
        if not match["name"].endswith("_H"):
            items.append(Item("macro", match["name"], squeeze(match["doc"] or ""), match["text"].strip()))
    text = re.sub(r"#define(?:[^\n]*\\\n)*[^\n]*", "", text)
    function = re.compile(
        doc_before + r"(?P<text>[\w\s\*]+?\b(?P<name>sg_\w+)\s*\([^;{}]*\)\s*;)", re.S
    )
    for match in function.finditer(text):
        items.append(
            Item("function", match["name"], squeeze(match["doc"] or ""), squeeze(match["text"]), "SG_API" in match["text"])
        )
    return items


def parse_folder(folder):
    return [item for path in headers(folder) for item in parse(path.read_text())]


def exported_functions(folder):
    return {item.name for item in parse_folder(folder) if item.kind == "function" and item.exported}
