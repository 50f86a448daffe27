#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The root folder has the committed names below and no other: a new one is chosen on purpose, a stray file is not committed. Without a
checkout of git that is skipped. The README fits on a screen and a half.

usage: root_test.py SOURCE-ROOT
"""
import pathlib
import subprocess
import sys

ALLOWED = set(""".ci .clang-format .clang-tidy .editorconfig .gitignore CHANGELOG.md CONTRIBUTING.md LICENSE NOTICE README.md SECURITY.md bench
    bindings docs examples include lib meson.build meson_options.txt packaging pyproject.toml tests tools""".split())
README_LINES = 45


def main():
    lines = len((pathlib.Path(sys.argv[1]) / "README.md").read_text().splitlines())
    if lines > README_LINES:
        print(f"README.md has {lines} lines, and {README_LINES} are a screen and a half")
        return 1
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files"], cwd=sys.argv[1], capture_output=True, text=True)
    if listed.returncode != 0:
        print(f"no checkout: {listed.stderr.strip()}")
        return 77
    found = {line.split("/")[0] for line in listed.stdout.splitlines()}
    for name in sorted(found ^ ALLOWED):
        print(f"{name} is {'not an allowed name of' if name in found else 'missing in'} the root folder")
    return found != ALLOWED


sys.exit(main())
