# SPDX-License-Identifier: Apache-2.0
"""The source of the site: the project's Markdown pages in the folders that they have in the project, so that links between them hold
on a code host and on the site. Links to headers lead to the reference, those to other files to copies, and a folder without a page of
its own is no link."""
import os
import pathlib
import re
import shutil

import pages

LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(([^)\s]+)\)")
OUTSIDE = ("http:", "https:", "mailto:", "#")


def relative(target, page):
    return os.path.relpath(target, page.parent)


class Stager:
    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.pages = set(pages.find(root))
        self.complaints = []

    def link(self, page, found):
        image, text, target = found.groups()
        path, hash_sign, anchor = target.partition("#")
        if target.startswith(OUTSIDE) or image:
            if image:
                self.copy(page, path)
            return found[0]
        file = pathlib.Path(os.path.normpath(page.parent / path))
        if not (self.root / file).exists():
            self.complaints.append(f"{page}: there is no {target}")
            return found[0]
        if file.parts[:2] == ("include", "streamgemm"):
            file = pathlib.Path("api/c", file.stem + ".md" if file.suffix else "index.md")
        elif (self.root / file).is_dir():
            file /= "README.md"
            if file not in self.pages:
                return text if text.startswith("`") else f"`{text}`"
        elif file not in self.pages:
            self.copy(page, path)
            return f"{{download}}`{text.strip('`')} <{path}>`"
        return f"[{text}]({relative(file, page)}{hash_sign}{anchor})"

    def copy(self, page, path):
        file = pathlib.Path(os.path.normpath(page.parent / path))
        if not (self.root / file).is_file():
            self.complaints.append(f"{page}: there is no {path}")
            return
        (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.root / file, self.folder / file)

    def page(self, page):
        """Rewrites the links outside code blocks."""
        out, fenced = [], False
        for line in (self.root / page).read_text().split("\n"):
            if re.match(r"\s*```", line):
                fenced = not fenced
            if line.lstrip().startswith("<!-- test:"):
                continue
            out.append(line if fenced else LINK.sub(lambda found: self.link(page, found), line))
        target = self.folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(out))


def brief(header):
    found = re.search(r"@brief (.*?)\.?$", header.read_text(), re.MULTILINE)
    return found[1] if found else header.name


def reference_of_c(folder, headers):
    """A page for each public header."""
    folder.mkdir(parents=True)
    names = []
    for header in headers:
        names.append(header.stem)
        label = header.stem.replace("_", "__") + "_8h"  # as Doxygen names the file
        (folder / f"{header.stem}.md").write_text(f"({label})=\n# {header.name}\n\n```{{doxygenfile}} {header.name}\n:project: c\n```\n")
    rows = "\n".join(f"| [{x.name}]({x.stem}.md) | {brief(x)} |" for x in headers)
    listed = "\n".join(names)
    (folder / "index.md").write_text("# C\n\n`#include <streamgemm/streamgemm.h>` includes all but `backend.h`, which is for backends outside this "
                                     "project.\n\n"
                                     f"| header | contents |\n|---|---|\n{rows}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n")


def stage(root, folder, headers):
    """Writes the source of the site; complaints about links."""
    folder.mkdir(parents=True)
    stager = Stager(root, folder)
    for page in sorted(stager.pages):
        if page.parts[:2] == ("docs", "site"):
            continue
        stager.page(page)
    for page in (root / "docs/site").rglob("*.md"):
        target = folder / page.relative_to(root / "docs/site")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, target)
    records = sorted(page.stem for page in stager.pages if page.parts[:2] == ("docs", "design") and page.stem != "README")
    with open(folder / "docs/design/README.md", "a") as contents:
        print("\n```{toctree}\n:hidden:\n", *records, "```", sep="\n", file=contents)
    reference_of_c(folder / "api/c", headers)
    return stager.complaints
