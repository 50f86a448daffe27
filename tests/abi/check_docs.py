#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public name is documented, and every function states its result, whether it blocks and its threads. What is newer than the
first release says "Since" and its own, and so does a member that is newer than its type.

usage: check_docs.py INCLUDE [FROZEN-FOLDER...], the first release first
"""
import pathlib
import re
import sys

import abi_dump
import public_api

FACTS = {
    "whether it blocks": r"[Bb]locks?\b",
    "its threads": r"\bAny thread\b|\bthreads?\b",
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


def releases_of(items, releases, coming):
    """The release of each item, by its kind, owner and name. `releases`: pairs of a version and its items; `coming`: of the headers."""
    found = {}
    for version, present in [*releases, (coming, items)]:
        for item in present:
            found.setdefault(identity(item), version)
    return found


def identity(item):
    return item.kind, owner_of(item), item.name


def owner_of(item):
    """The type of a member."""
    return item.text.partition(":")[0] if item.kind in ("field", "enumerator") else ""


def since_problems(items, releases, coming):
    """Items whose comment does not name their release, or names one that is implied."""
    found = releases_of(items, releases, coming)
    of_types = {item.name: found[identity(item)] for item in items if item.kind in ("struct", "enum")}
    first = releases[0][0] if releases else coming
    for item in items:
        of = found[identity(item)]
        implied = of == of_types.get(owner_of(item), first)
        wanted, said = (None if implied else "{}.{}".format(*of)), item.since
        if said != wanted and not item.name.endswith("_INIT"):
            yield f"{item.kind} {owner_of(item)} {item.name}: its comment says {says(said)}, and must say {says(wanted)}"


def says(release):
    return f'"Since {release}."' if release else 'no "Since"'


def read(include):
    """The items of headers, without the interface of plugins, which has versions of its own."""
    return [item for path in public_api.headers(include) if path.name != "backend.h" for item in public_api.parse(path.read_text())]


def main():
    include, *frozen = map(pathlib.Path, sys.argv[1:])
    releases = [(abi_dump.version_of(folder), read(folder / "streamgemm")) for folder in frozen]
    found = list(problems(public_api.parse_folder(include)))
    found += since_problems(read(include), releases, abi_dump.version_of(include.parent))
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
