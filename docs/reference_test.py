#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Doxygen has nothing to complain of: every public name is documented and every link leads somewhere.
reference_test.py DOXYGEN DOXYFILE"""
import pathlib
import subprocess
import sys
import tempfile


def main():
    doxygen, doxyfile = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        configuration = pathlib.Path(doxyfile).read_text() + f"\nOUTPUT_DIRECTORY = {folder}\n"
        run = subprocess.run([doxygen, "-"], input=configuration, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        page = pathlib.Path(folder, "html", "index.html")
        made = page.exists() and 'href="docs/' not in page.read_text()
    complaints = run.stdout.splitlines()
    print(f"exit {run.returncode}, {len(complaints)} complaints", *complaints, sep="\n")
    return 0 if run.returncode == 0 and made and not complaints else 1


if __name__ == "__main__":
    sys.exit(main())
