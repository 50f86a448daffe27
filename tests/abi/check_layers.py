#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes point only to the same or a lower layer of the library and never form a cycle, of files or of folders; the drop-in BLAS
includes its own files and the public API; a backend includes backend.h, its own files and those of backends/common only. Few files include the context, or the descriptor of a
GEMM; no file of the library is long."""
import collections
import pathlib
import posixpath
import re
import sys

LAYERS = [
    "base", "model", "ops", "plan/schedule", "plan/form", "plan/gemm", "plan/layers", "plan", "trace", "devices",
    "run/memory", "run/program", "run/job", "run/order", "run/dispatch", "run/objects", "run/pipeline",
    "run", "api", "blas",
]
# Headers and the number of files that may include them.
MOST_INCLUDERS = {"run/context.hpp": 8}
MOST_LINES, MOST_LINES_OF_PAIR = 350, 500
# The public headers that a layer may include; the others describe objects of higher layers.
CORE = {"export.h", "status.h", "types.h", "version.h"}
PUBLIC = {"ops": CORE | {"backend.h"}, "devices": CORE | {"backend.h"}}
PUBLIC |= {layer: CORE for layer in LAYERS if layer in ("base", "trace") or layer.startswith(("plan", "model"))}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(streamgemm/[^>]+)>)', re.M)
# Where folders form no cycle.
ROOMS = re.compile(r"api|run|trace|plan|backends/\w+")
# The headers of a GEMM's descriptor, and of types that hold one. Of the operations only GEMMs and linear layers are made of it.
DESCRIPTORS = {
    "plan/gemm/resident/problem.hpp", "plan/gemm/resident/gemm_builder.hpp", "plan/gemm/gemm_form.hpp", "plan/layers/linear.hpp", "api/gemm/problem_of.hpp",
}
MADE_OF_GEMMS = re.compile(r"api/gemm/|api/operations/linear\.|ops/gemm\.|plan/layers/linear")
OTHERS = re.compile(r"(?:api|run|trace|ops|plan/layers)/")
# The one header of a backend that the registry includes.
ENTRY = re.compile(r"backends/\w+/\w+_backend\.hpp")


def layer_of(path):
    """The layer of a file of lib/, or "backends/<name>"."""
    two = "/".join(path.parts[:2])
    return two if path.parts[0] == "backends" or two in LAYERS else path.parts[0]


def allowed(home, target):
    """May a file of layer `home` include `target`, as written?"""
    if home == "blas":  # a library of its own, over the public API
        return "/" not in target or target.startswith("streamgemm/") and target != "streamgemm/backend.h"
    if target.startswith("streamgemm/"):
        header = target.removeprefix("streamgemm/")
        if home.startswith("backends/"):
            return header in CORE | {"backend.h"}
        return header in PUBLIC[home] if home in PUBLIC else True
    first = layer_of(pathlib.PurePath(target))
    if "/" not in target:
        return True  # in the same folder
    if home.startswith("backends/"):
        return target.startswith((home + "/", "backends/common/"))
    if first.startswith("backends"):
        return home == "devices" and bool(ENTRY.fullmatch(target))
    return first in LAYERS and LAYERS.index(first) <= LAYERS.index(home)


def lib_problems(files):
    """`files`: pairs of a path relative to lib/ and its text."""
    for path, text in files:
        home = layer_of(path)
        if not home.startswith("backends/") and home not in LAYERS:
            yield f"{path}: is in no layer"
            continue
        for quoted, angled in INCLUDE.findall(text):
            if not allowed(home, quoted or angled):
                yield f"{path}: includes {quoted or angled}"
        if path.suffix in {".cu", ".cuh"} and re.search(r"^\s*namespace\s*{", text, re.M):
            yield f"{path}: has an anonymous namespace, which nvcc names after the file's path: two builds would differ"
        if ".." in "".join(quoted for quoted, _ in INCLUDE.findall(text)):
            yield f"{path}: includes by '..'"


def outside_problems(files):
    """Tools, examples and public headers use the public API only. Paths are relative to the root."""
    for path, text in files:
        for quoted, angled in INCLUDE.findall(text):
            leaves = posixpath.normpath(path.parent / quoted).split("/")[0] != path.parts[0]
            if quoted.split("/")[0] in [*LAYERS, "backends", "lib"] or leaves:
                yield f"{path}: includes {quoted}"
            if path.parts[0] != "include" and angled == "streamgemm/backend.h":
                yield f"{path}: includes {angled}"


def cycles(files):
    """Include cycles. `files`: pairs of a path relative to lib/ and its text."""
    texts = {str(path): text for path, text in files}
    targets = {
        path: [t for t in (t if t in texts else str(pathlib.PurePath(path).parent / t)
                           for t, _ in INCLUDE.findall(text)) if t in texts]
        for path, text in texts.items()
    }
    done, way = set(), []

    def visit(path):
        if path in way:
            yield " -> ".join([*way[way.index(path):], path])
        elif path not in done:
            way.append(path)
            for target in targets[path]:
                yield from visit(target)
            way.pop()
            done.add(path)

    for path in texts:
        yield from visit(path)


def room_cycles(files):
    """Cycles of folders below each match of ROOMS."""
    texts = {str(path): text for path, text in files}
    edges = collections.defaultdict(dict)  # from folder to folder, with an example
    for path, text in texts.items():
        top, home = ROOMS.match(path), posixpath.dirname(path)
        for target, _ in INCLUDE.findall(text) if top else ():
            room = posixpath.dirname(target)
            if target in texts and room != home and f"{room}/".startswith(f"{top[0]}/"):
                edges[home].setdefault(room, f"{path} includes {target}")

    def reached(start):
        seen, left = set(), [start]
        while left:
            for room in edges[left.pop()]:
                if room not in seen:
                    seen.add(room)
                    left.append(room)
        return seen

    reach = {room: reached(room) for room in list(edges)}
    rings = {tuple(sorted(other for other in reach[room] if room in reach.get(other, ()))) for room in reach
             if room in reach[room]}
    for ring in sorted(rings):
        examples = [edges[one][other] for one in ring for other in ring if other in edges[one]]
        yield f"a cycle of folders: {'; '.join(examples)}"


def descriptors_elsewhere(files):
    """Files that include the descriptor of a GEMM although they are no part of a GEMM."""
    for path, text in files:
        included = {target for target, _ in INCLUDE.findall(text)}
        if OTHERS.match(str(path)) and not MADE_OF_GEMMS.match(str(path)) and not DESCRIPTORS.isdisjoint(included):
            yield f"{path}: includes the descriptor of a GEMM"


def included_too_often(files):
    for header, most in MOST_INCLUDERS.items():
        knowing = [str(path) for path, text in files if any(quoted == header for quoted, _ in INCLUDE.findall(text))]
        if len(knowing) > most:
            yield f"{header}: {len(knowing)} files include it, {most} at most may: {', '.join(knowing)}"


def too_long(files):
    pairs = collections.Counter()
    for path, text in files:
        lines = text.count("\n")
        pairs[path.with_suffix("")] += lines
        if lines > MOST_LINES:
            yield f"{path}: {lines} lines, {MOST_LINES} at most"
    for pair, lines in pairs.items():
        if lines > MOST_LINES_OF_PAIR:
            yield f"{pair}: header and source have {lines} lines, {MOST_LINES_OF_PAIR} at most"


def sources(root, folder):
    base = root / folder
    for path in sorted(base.rglob("*")):
        if path.suffix in {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"}:
            yield path, path.read_text()


def main():
    root = pathlib.Path(sys.argv[1])
    lib = [(path.relative_to(root / "lib"), text) for path, text in sources(root, "lib")]
    outside = [
        (path.relative_to(root), text)
        for folder in ("include", "tools", "examples")
        for path, text in sources(root, folder)
    ]
    wrappers = [(path.relative_to(root / "bindings"), text) for path, text in sources(root, "bindings")]
    found = [
        *lib_problems(lib), *outside_problems(outside), *cycles(lib), *cycles(wrappers), *included_too_often(lib),
        *too_long(lib), *room_cycles(lib), *descriptors_elsewhere(lib),
    ]
    if not lib:
        found.append("nothing was read")
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
