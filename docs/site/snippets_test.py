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
    if not block.language:
        return "the block names no language"
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


UNITS = {"us": 1e6, "ms": 1e3, "s": 1}


def wrong_figures(root):
    """Figures of the decision tables that are not those of the records that their rows name."""
    columns = "| if | use | time | instead of | time | record, case |"
    in_table = False
    for number, line in enumerate(pathlib.Path(root, "docs/choosing.md").read_text().split("\n"), 1):
        where = f"docs/choosing.md:{number}"
        if line.startswith("| if "):
            in_table = True
            if line != columns:
                yield f"{where}: the columns are not {columns}"
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            yield from (f"{where}: {complaint}" for complaint in wrong_row(root, line))


def wrong_row(root, line):
    _, _, use, time, other, other_time, source, _ = (cell.strip() for cell in line.split("|"))
    record, *cases = re.findall(r"`([^`]+)`", source) or [""]
    file = pathlib.Path(root, "bench/results", record)
    if not record.endswith(".json") or not file.is_file():
        yield f"the last column names no record under bench/results/: {source}"
        return
    rows = json.loads(file.read_text())["rows"]
    for form, figure, case in ((use, time, cases[0]), (other, other_time, cases[-1])):
        variant = re.findall(r"`([^`]+)`", form)[-1]
        found = [row for row in rows if row["case"] == case and row["variant"] == variant]
        if not found:
            yield f"{record} has no row '{case}', '{variant}'"
            continue
        number, unit = figure.split()
        measured = found[0]["seconds"] / (found[0].get("products") or 1) * UNITS[unit]
        if f"{measured:.3g}" != number:
            yield f"'{variant}' of '{case}' takes {measured:.3g} {unit}, not {figure}"


def check_all(root):
    blocks, complaints = pages.all_blocks(root)
    for block in blocks:
        why = untestable(block, root)
        if why:
            complaints.append(f"{block.name}: {why}")
    complaints += [*missing_statuses(root), *wrong_figures(root)]
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
    """`...` is any text; spaces at the ends of lines do not count."""
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
