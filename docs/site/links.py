#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links of built HTML that lead nowhere: files and anchors; addresses of other sites are not opened.  links.py FOLDER"""
import html.parser
import pathlib
import sys
import urllib.parse

OTHER_SITES = ("http:", "https:", "mailto:", "javascript:", "data:")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.anchors, self.links = {"", "top"}, []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            if name in ("href", "src") and value is not None:
                self.links.append(value)


def read(file):
    page = Page()
    page.feed(file.read_text(errors="replace"))
    return page


def dead(folder):
    """One sentence for each dead link."""
    folder = pathlib.Path(folder).resolve()
    pages = {file: read(file) for file in sorted(folder.rglob("*.html"))}
    found = []
    for file, page in pages.items():
        for link in page.links:
            if link.startswith(OTHER_SITES):
                continue
            path, _, anchor = link.partition("#")
            target = file
            if path:
                target = (file.parent / urllib.parse.unquote(path.partition("?")[0])).resolve()
            where = f"{file.relative_to(folder)}: {link}"
            if not target.exists() or folder not in (target, *target.parents):
                found.append(f"{where}: no such file")
            elif target.is_dir():
                found.append(f"{where}: a folder")
            elif anchor and target in pages and not {anchor, urllib.parse.unquote(anchor)} & pages[target].anchors:
                found.append(f"{where}: no such anchor")
    return found


if __name__ == "__main__":
    sentences = dead(sys.argv[1])
    print(*sentences, f"{len(sentences)} dead links", sep="\n")
    sys.exit(1 if sentences else 0)
