#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public name is documented, and every function states its result, whether it blocks, its threads and its first version. So does
each member of a struct or enum that is newer than its type.

usage: check_docs.py INCLUDE MEMBERS      MEMBERS: a file with how many members each type had in the first version
"""
import collections
import pathlib
import re
import sys

import abi_dump
import public_api

FACTS = {
    "whether it blocks": r"[Bb]locks?\b",
    "its threads": r"\bAny thread\b|\bthreads?\b",
    "since when it exists": r"\bSince \d+\.\d+",
}


def problems(items):
    """Missing documentation, one sentence each."""
    documented = {(item.kind, item.name) for item in items if item.doc}
    for item in items:
        if (item.kind, item.name) not in documented:
            yield f"{item.kind} {item.name} ({item.text}) has no documentation"
        if item.kind != "function" or not item.doc:
            continue
        returns_status = re.match(r"(SG_API\s+)?sg_status\b", item.text)
        if returns_status and not re.search(r"@return\b", item.doc):
            yield f"{item.name} returns a status and does not say which"
        for fact, pattern in FACTS.items():
            if not re.search(pattern, item.doc):
                yield f"{item.name} does not say {fact}"
        for name in re.findall(r"\*\*\s*(out_\w+)", item.text):
            explained = re.search(rf"@param\S*\s+\S*{name}\b", item.doc) or "As sg_" in item.doc
            if not explained:
                yield f"{item.name} does not explain {name}"


def since(doc):
    """The version that a comment names, or None."""
    named = re.search(r"\bSince (\d+)\.(\d+)", doc)
    return named and tuple(map(int, named.groups()))


def since_problems(items, version, members):
    """Versions that cannot be, and members without one. `version`: of the headers; `members`: the number of each first type."""
    types = {item.name: since(item.doc) for item in items if item.kind in ("struct", "enum")}
    undated = collections.Counter()
    for item in items:
        first = since(item.doc)
        owner = item.text.partition(":")[0] if item.kind in ("field", "enumerator") else ""
        if first and not (types.get(owner) or (0, 0)) <= first <= version:
            yield f"{item.kind} {owner} {item.name}: {first[0]}.{first[1]} is newer than the headers or older than its type"
        undated[owner] += first is None
    for name, count in members.items():
        if undated[name] != count:
            yield f"{name}: {undated[name]} members do not say since when they exist, and {count} are of the first version"


def main():
    include, members = sys.argv[1:]
    items = public_api.parse_folder(include)
    rows = [line.split() for line in pathlib.Path(members).read_text().splitlines() if not line.startswith("#")]
    found = list(problems(items)) + list(since_problems(items, abi_dump.version_of(pathlib.Path(include).parent), {name: int(count) for name, count in rows}))
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
