# SPDX-License-Identifier: Apache-2.0
"""The source of the site: the project's Markdown pages in the folders that they have in the project, so that links between them hold
on a code host and on the site. Links to headers lead to the reference, those to other files to copies, and a folder without a page of
its own is no link; a link whose text is a page's file name has the page's title instead. The same code in several languages becomes tabs, and so
do sections that are named by languages. `<!-- site: chart NAME -->`, `overlap` and `hello` are replaced by pictures (pictures.py) and by the
programs of the quick start."""
import os
import pathlib
import re
import shutil

import pages
import pictures

LANGUAGES = {"c": "C", "python": "Python", "java": "Java", "csharp": "C#"}
PLACE = re.compile(r"<!-- site: (\w+) ?(\w*) -->$")
LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(([^)\s]+)\)")
OUTSIDE = ("http:", "https:", "mailto:", "#")


def relative(target, page):
    return os.path.relpath(target, page.parent)


def fence_of(line):
    found = re.match(r"(```+)\s*(\S*)", line)
    return found and (found[1], found[2])


def code_blocks(lines):
    """(start, end, language) of the blocks at the margin; end is behind the closing fence."""
    at, found = 0, []
    while at < len(lines):
        fence = fence_of(lines[at])
        end = at + 1
        if fence:
            while end < len(lines) and lines[end] != fence[0]:
                end += 1
            end = min(end + 1, len(lines))
            found.append((at, end, fence[1]))
        at = end
    return found


def in_tabs(tabs):
    """The lines of one group of tabs: (title, lines) each."""
    out = ["``````{tabs}"]
    for title, lines in tabs:
        out += [f"`````{{tab}} {title}", *lines, "`````"]
    return [*out, "``````"]


def tab_blocks(lines):
    """Blocks of several languages that only blank lines, comments and their outputs separate become one group of tabs."""
    groups, group = [], []
    for start, end, language in code_blocks(lines):
        between = [x for x in lines[group[-1][1]:start] if x.strip() and not x.startswith("<!-- ")] if group else []
        if group and between:
            groups, group = [*groups, group], []
        if language in LANGUAGES:
            if language in {x[2] for x in group}:
                groups, group = [*groups, group], []
            group.append((start, end, language))
        elif group and language == "text" and any(x.startswith("<!-- test: output") for x in lines[group[-1][1]:start]):
            group[-1] = (group[-1][0], end, group[-1][2])
        elif group:
            groups, group = [*groups, group], []
    for each in reversed([*groups, group]):
        if len(each) > 1:
            lines[each[0][0]:each[-1][1]] = in_tabs([(LANGUAGES[language], lines[start:end]) for start, end, language in each])
    return lines


def tab_sections(lines):
    """Sections named by languages that follow each other become one group of tabs."""
    fenced = {x for start, end, _ in code_blocks(lines) for x in range(start, end)}
    heads = [(i, lines[i][3:]) for i, line in enumerate(lines) if i not in fenced and line.startswith("## ")] + [(len(lines), "")]
    spans = [(at, heads[i + 1][0], title) for i, (at, title) in enumerate(heads[:-1])]
    run = [x for x in spans if x[2] in LANGUAGES.values()]
    if len(run) > 1 and all(one[1] == other[0] for one, other in zip(run, run[1:])):
        lines[run[0][0]:run[-1][1]] = in_tabs([(title, lines[start + 1:end]) for start, end, title in run])
    return lines


class Stager:
    def __init__(self, root, folder, traces=None):
        self.root, self.folder, self.traces = root, folder, traces
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
        if file in self.pages and re.fullmatch(r"`?[\w/.-]+\.md`?", text):
            text = self.title(file)
        if file.parts[:2] == ("include", "streamgemm"):
            file = pathlib.Path("api/c", file.stem + ".md" if file.suffix else "index.md")
        elif file in self.pages and file.parts[:2] == ("docs", "site"):
            file = file.relative_to("docs/site")
        elif (self.root / file).is_dir():
            file /= "README.md"
            if file not in self.pages:
                return text if text.startswith("`") else f"`{text}`"
        elif file not in self.pages:
            self.copy(page, path)
            return f"{{download}}`{text.strip('`')} <{path}>`"
        return f"[{text}]({relative(file, page)}{hash_sign}{anchor})"

    def title(self, page):
        return next((line[2:] for line in (self.root / page).read_text().split("\n") if line.startswith("# ")), str(page))

    def place(self, page, what, name):
        """What a comment `<!-- site: WHAT NAME -->` stands for."""
        if what == "chart" and name in pictures.CHARTS:
            picture, complaints = pictures.chart(self.root, name)
            self.complaints += complaints
            return [picture]
        if what == "overlap" and self.traces:
            return [pictures.overlap(self.traces)]
        if what == "hello":
            lines = (self.root / "docs/quickstart.md").read_text().split("\n")
            first = {}
            for start, end, language in code_blocks(lines):
                first.setdefault(language, lines[start:end])
            return in_tabs([(title, first[language]) for language, title in LANGUAGES.items()])
        self.complaints.append(f"{page}: nothing is known to stand in place of <!-- site: {what} {name} -->")
        return []

    def copy(self, page, path):
        file = pathlib.Path(os.path.normpath(page.parent / path))
        if not (self.root / file).is_file():
            self.complaints.append(f"{page}: there is no {path}")
            return
        (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.root / file, self.folder / file)

    def page(self, page):
        """Makes tabs, rewrites the links outside code blocks, and fills in pictures."""
        out, open_fences = [], []  # (fence, whether code is in it): tabs hold text
        own = page.parts[:2] == ("docs", "site")  # its links are those of the site
        for line in tab_sections(tab_blocks((self.root / page).read_text().split("\n"))):
            mark = re.match(r"\s*(```+)\s*(\S*)", line)
            if mark and open_fences and (mark[1], mark[2]) == (open_fences[-1][0], ""):
                open_fences.pop()
            elif mark and not any(code for _, code in open_fences):
                open_fences.append((mark[1], mark[2] not in ("{tabs}", "{tab}")))
            in_code = bool(mark) or any(code for _, code in open_fences)
            if line.lstrip().startswith("<!-- test:"):
                continue
            place = PLACE.match(line)
            if place and not in_code:
                out += self.place(page, place[1], place[2])
            else:
                out.append(line if in_code or own else LINK.sub(lambda found: self.link(page, found), line))
        target = self.folder / (page.relative_to("docs/site") if own else page)
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


def stage(root, folder, headers, traces):
    """Writes the source of the site; complaints about links. `traces`: the folder of the gallery."""
    folder.mkdir(parents=True)
    stager = Stager(root, folder, traces)
    for page in sorted(stager.pages):
        stager.page(page)
    records = sorted(page.stem for page in stager.pages if page.parts[:2] == ("docs", "design") and page.stem != "README")
    with open(folder / "docs/design/README.md", "a") as contents:
        print("\n```{toctree}\n:hidden:\n", *records, "```", sep="\n", file=contents)
    reference_of_c(folder / "api/c", headers)
    return stager.complaints
