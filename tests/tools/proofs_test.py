#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each defect that is planted in the library has a row in tests/proofs.txt, and each row names a test that plants it and must notice it.
The tests themselves are run by Meson.

usage: proofs_test.py SOURCE-FOLDER BUILD-FOLDER MESON...
"""
import json
import pathlib
import re
import subprocess
import sys

SOURCE, BUILD, *MESON = sys.argv[1:]
SHIM = "tests/api/planted/planted.c"
sys.path.insert(0, str(pathlib.Path(SOURCE, "tests/api/planted")))
sys.dont_write_bytecode = True
import planted_test  # noqa: E402


def introspect(what):
    return json.loads(subprocess.run([*MESON, "introspect", BUILD, what], check=True, capture_output=True, text=True).stdout)


def problems(rows, planted, tests):
    """`planted`: the file of each defect; `tests`: of each test, the defect that it plants and must notice, or None."""
    for defect in sorted(planted.keys() - {defect for defect, _, _ in rows}):
        yield f"{defect}, planted in {planted[defect]}, has no row"
    for defect, file, test in rows:
        if planted.get(defect) != file:
            yield f"{defect} is not planted in {file}"
        elif " / " in test and tests.get(test) != defect:
            yield f"{defect}: there is no test \"{test}\" that plants it and must notice it"
        elif " / " not in test and (file != SHIM or len(test.split()) != 2):
            yield f"{defect}: \"{test}\" is neither a topic with a filter nor SUITE / TEST"
    if len({defect for defect, _, _ in rows}) != len(rows):
        yield "a defect has two rows"


def main():
    rows = planted_test.rows(pathlib.Path(SOURCE, "tests/proofs.txt"))
    planted = {name: SHIM for name in re.findall(r'planted\("([\w-]+)"\)', pathlib.Path(SOURCE, SHIM).read_text())}
    sources = {}
    for target in introspect("--targets"):
        command = target["target_sources"][0]["compiler"] if target["type"] == "custom" else []
        if any(word.endswith("/plant.py") for word in command):
            (sources[target["name"]],) = target["target_sources"][0]["sources"]
    for name, source in sources.items():
        while pathlib.Path(source).stem in sources:  # the source with another defect
            source = sources[pathlib.Path(source).stem]
        planted[name.removeprefix("planted_")] = str(pathlib.Path(source).relative_to(SOURCE))
    tests = {}
    for test in introspect("--tests"):
        notices = "random_test" in " ".join(test["cmd"]) or any("planted_test.py" in word for word in test["cmd"])
        defect = test["env"].get("SG_PLANTED") if notices else test["env"].get("PLANTED_DEFECT")
        tests[f"{test['suite'][0].split(':')[-1]} / {test['name']}"] = defect
    if "component" not in planted:  # without CUDA's headers no GPU is emulated
        rows = [row for row in rows if row[0] not in ("component", "ignores-info")]
        planted.pop("ignores-info", None)
    found = list(problems(rows, planted, tests))
    # The test is tested: a row less, and a row whose test plants another defect.
    assert list(problems(rows[1:], planted, tests)) != found and list(problems([*rows[:-1], (*rows[-1][:2], "unit / planner")], planted, tests)) != found
    print(*found, f"{len(rows)} rows, {len(found)} problems", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
