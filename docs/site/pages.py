# SPDX-License-Identifier: Apache-2.0
"""The project's Markdown pages, and the code blocks in them with their markers.

A marker is an HTML comment on the line before a block, invisible on a code host and on the site:

    <!-- test: same as PATH -->     the block is that file without its licence line; the file is a test of its own
    <!-- test: with CODE -->        CODE comes before the block when it is tested
    <!-- test: needs NAME -->       run where the Python module, or compiled where the C header, is installed
    <!-- test: output -->           a `text` block: what the tested block before it prints; `...` is any text
    <!-- test: not run: REASON -->  the block is not tested

usage: pages.py ROOT     prints the paths of all pages
"""
import dataclasses
import pathlib
import re
import sys

FOLDERS = ("docs", "lib", "bindings", "bench", "examples")
MARKER = re.compile(r"^\s*<!-- test: (same as|with|needs|output|not run:)\s*(.*?)\s*-->$")


@dataclasses.dataclass
class Block:
    page: str  # relative to the project
    line: int  # of its first line of code
    language: str
    text: str
    markers: dict

    @property
    def name(self):
        return f"{self.page}:{self.line}"


def find(root):
    """All pages, relative to the project's root."""
    root = pathlib.Path(root)
    found = sorted(root.glob("*.md"))
    for folder in FOLDERS:
        found += sorted((root / folder).rglob("*.md"))
    return [page.relative_to(root) for page in found]


def parse(page, text):
    """(blocks, complaints) of one page."""
    blocks, complaints, markers = [], [], {}
    lines = text.split("\n")
    index, in_list, previous_blank = 0, False, True
    while index < len(lines):
        line = lines[index]
        index += 1
        fence = re.match(r"^(\s*)(```+|~~~+)\s*(\S*)(.*)$", line)
        marker = MARKER.match(line)
        if fence:
            indent, ticks, language, rest = fence.groups()
            body, first = [], index + 1
            while index < len(lines) and lines[index].strip() != ticks:
                body.append(lines[index].removeprefix(indent))
                index += 1
            if index == len(lines):
                complaints.append(f"{page}:{first - 1}: the block has no end")
            index += 1
            blocks.append(Block(str(page), first, language, "\n".join(body) + "\n", markers))
        elif marker:
            markers = {**markers, marker[1].rstrip(":"): marker[2]}
            continue
        elif line.lstrip().startswith("<!-- test"):
            complaints.append(f"{page}:{index}: not a marker: {line.strip()}")
        elif line.startswith("    ") and previous_blank and not in_list:
            complaints.append(f"{page}:{index}: an indented code block cannot be tested: use a fence and name the language")
            while index < len(lines) and (not lines[index].strip() or lines[index].startswith("    ")):
                index += 1
        if markers and not fence:
            complaints.append(f"{page}:{index}: the marker before this line is followed by no block")
        markers = {}
        previous_blank = not line.strip()
        if line.strip() and not line.startswith(" "):
            in_list = bool(re.match(r"([-*+]|\d+\.) ", line))
    first_of_python = next((block for block in blocks if block.language == "python"), None)
    if first_of_python and "with" in first_of_python.markers:  # what a reader tries first
        complaints.append(f"{first_of_python.name}: the first Python block of a page must be a whole script")
    return blocks, complaints


def all_blocks(root):
    """(blocks, complaints) of all pages."""
    blocks, complaints = [], []
    for page in find(root):
        found, wrong = parse(page, (pathlib.Path(root) / page).read_text())
        blocks += found
        complaints += wrong
    return blocks, complaints


if __name__ == "__main__":
    print(*(pathlib.Path(sys.argv[1], page) for page in find(sys.argv[1])), sep="\n")
