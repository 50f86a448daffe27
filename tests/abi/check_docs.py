#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public name is documented, and every function states its result, whether it blocks, its threads and its first version."""
import re
import sys

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


def main():
    found = list(problems(public_api.parse_folder(sys.argv[1])))
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
