#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every code block of every page is tested.

usage: snippets_test.py LANGUAGE SETTINGS.json [PART-OF-A-NAME]

LANGUAGE is one of c, python, java, csharp, sh: its blocks are compiled and run. `all` runs nothing: it tests that each block has a
language or a marker by which it is tested (pages.py lists the markers), and the tables that must be complete.
"""
import json
import pathlib
import re
import sys

import languages
import pages

REASON = 15  # a reason not to run a block has at least so many characters


def untestable(block, root):
    """Why a block has no way to be tested; None if it has one."""
    markers = block.markers
    if "not run" in markers:
        return None if len(markers["not run"]) >= REASON else "`not run` needs a reason"
    if "same as" in markers:
        file = pathlib.Path(root, markers["same as"])
        if not file.is_file():
            return f"there is no {file}"
        return None if file.read_text().split("\n", 1)[1] == block.text else f"differs from {markers['same as']} without its first line"
    if block.language == "text":
        return None if "output" in markers else "a text block needs the marker `output` or `not run: REASON`"
    if block.language.startswith("{") and block.page.startswith("docs/site/"):
        return None  # a directive of the site's generator
    if block.language not in languages.RUNNERS:
        return f"no test for blocks of language '{block.language}'; known: {', '.join(languages.RUNNERS)}, text"
    return None


def missing_statuses(root):
    """Statuses of status.h that the page on troubleshooting does not have in a table's first column."""
    header = pathlib.Path(root, "include/streamgemm/status.h").read_text()
    page = pathlib.Path(root, "docs/troubleshooting.md").read_text()
    for status in re.findall(r"^\s+(SG_STATUS_\w+) = ", header, re.MULTILINE):
        if not re.search(rf"^\| `{status}` \|", page, re.MULTILINE):
            yield f"docs/troubleshooting.md: no row for {status}"


def missing_records(root):
    """Rows of the decision table that name no record, or one that is not there."""
    records = pathlib.Path(root, "bench/results")
    for number, line in enumerate(pathlib.Path(root, "docs/choosing.md").read_text().split("\n"), 1):
        if not line.startswith("| ") or line.startswith("| if "):
            continue
        named = re.findall(r"`(\w+\.json)`", line)
        if not named and re.search(r"\d", line):
            yield f"docs/choosing.md:{number}: the row names no record"
        yield from (f"docs/choosing.md:{number}: there is no {records / name}" for name in named if not (records / name).is_file())


def check_all(root):
    blocks, complaints = pages.all_blocks(root)
    for block in blocks:
        why = untestable(block, root)
        if why:
            complaints.append(f"{block.name}: {why}")
    complaints += [*missing_statuses(root), *missing_records(root)]
    ran = sum("not run" not in block.markers for block in blocks)
    print(f"{len(blocks)} blocks, {ran} of them tested; {len(complaints)} complaints", *complaints, sep="\n")
    return 1 if complaints else 0


def runnable(blocks, language):
    return [block for block in blocks if block.language == language and not {"not run", "same as"} & set(block.markers)]


def outputs(blocks):
    """For each block the `text` block of its output, if one follows on its page."""
    wanted = {}
    for block, following in zip(blocks, blocks[1:]):
        if "output" in following.markers and following.page == block.page:
            wanted[block.name] = following.text
    return wanted


def matches(wanted, printed):
    """`...` on a line of its own is any number of lines; spaces at the ends of lines do not count."""
    def strip(text):
        return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))
    pattern = re.escape(strip(wanted)).replace(r"\.\.\.", "(.*?)")
    return re.fullmatch(pattern, strip(printed), re.DOTALL) is not None


def main():
    language, settings = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text())
    root = settings["root"]
    if language == "all":
        return check_all(root)
    blocks, _ = pages.all_blocks(root)
    wanted = outputs(blocks)
    chosen = [block for block in runnable(blocks, language) if len(sys.argv) < 4 or sys.argv[3] in block.name]
    failed = 0
    for block, device, ok, printed in languages.RUNNERS[language](chosen, settings):
        if ok and block.name in wanted and not matches(wanted[block.name], printed):
            ok, printed = False, f"{printed}\n-- differs from the output on the page:\n{wanted[block.name]}"
        failed += not ok
        print(f"{'ok    ' if ok else 'FAILED'} {block.name} {device}")
        if not ok:
            print(*printed.splitlines()[:60], sep="\n")
    print(f"{len(chosen)} blocks, {failed} failures")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
