#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an operation (sample.h, sample.py) and a submit option that statistics repeat (sample_id) add to that which is written of
the public headers, compared with the files in golden/. No file of the wrappers knows either.

usage: golden_test.py [--update]
"""
import difflib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
API, ROOT = HERE.parent, HERE.parents[2]
EMITTERS = {"csharp": "csharp.py", "java": "java.py", "python": "python.py", "swig": "swig.py", "calls": "operations.py"}

def written(language, folder):
    """Everything that a language's emitter writes, as lines."""
    to = folder / language
    to.mkdir()
    inputs = [folder / "operations.py", ROOT / "bindings/python/stubs.pyi"] if language == "python" else []
    many = language in ("java", "python")
    headers = sorted((folder / "headers").glob("*.h"))
    subprocess.run([sys.executable, API / EMITTERS[language], to if many else to / "out", *inputs, *headers], check=True)
    files = [(f"{file.name}: " if many else "", file) for file in sorted(to.iterdir())]
    return [prefix + line for prefix, file in files for line in file.read_text().splitlines()]


def with_operation(folder):
    (folder / "headers/sample.h").write_text((HERE / "sample.h").read_text())
    method = (HERE / "sample.py").read_text().partition("class Context:\n")[2]
    definitions = folder / "operations.py"
    definitions.write_text(definitions.read_text().replace("\n\n\nclass Plan:", f"\n\n{method}\n\nclass Plan:", 1))


def with_option(folder):
    header = folder / "headers/job.h"
    text = header.read_text()
    field = "  uint64_t sample_id; /**< Of the request that it serves, in traces. Default: 0. */\n"
    for struct in ("sg_submit", "sg_job_statistics"):
        text = re.sub(rf"(?=^}} {struct};)", field, text, flags=re.M)
        text = re.sub(rf"(#define {struct.upper()}_INIT(?:[^\n]*\\\n)*[^\n}}]*)", r"\1, 0", text)
    header.write_text(text)


def main():
    failed = False
    with tempfile.TemporaryDirectory() as top:
        every = {}
        for name, change in (("before", None), ("operation", with_operation), ("option", with_option)):
            folder = pathlib.Path(top) / name
            shutil.copytree(ROOT / "include/streamgemm", folder / "headers")
            shutil.copy(ROOT / "bindings/python/operations.py", folder)
            if change:
                change(folder)
            every[name] = {language: written(language, folder) for language in EMITTERS}
        for name in ("operation", "option"):
            for language, lines in every[name].items():
                old = set(every["before"][language])
                added = [f"{line}\n" for line in lines if line not in old]
                if (name, language) == ("option", "python"):  # every method has it; that of copies stands for all
                    added = [line for line in added if re.search("def copy|^order.h| sample_id: int$", line)]
                golden = HERE / "golden" / f"{name}_{language}.txt"
                if "--update" in sys.argv:
                    golden.write_text("".join(added))
                expected = golden.read_text().splitlines(True)
                sys.stdout.writelines(difflib.unified_diff(expected, added, str(golden), "written"))
                failed = failed or added != expected
    return failed


if __name__ == "__main__":
    sys.exit(main())
