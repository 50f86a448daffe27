#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first program of docs/csharp.md, compiled and run by the line below it. docs_test.py CSHARP.MD STREAMGEMM.DLL"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# The document's lines are the body of an asynchronous method, and print nothing.
PROGRAM = """{usings}
static class Hello {{
  static async System.Threading.Tasks.Task Run() {{
    {body}
  }}
  static void Main() {{
    Run().GetAwaiter().GetResult();
    System.Console.WriteLine("done");
  }}
}}
"""


def main():
    document, assembly = sys.argv[1:]
    text = pathlib.Path(document).read_text()
    snippet = re.search(r"```csharp\n(.*?)```", text, re.DOTALL).group(1)
    line = re.search(r"^    (mcs .*)$", text, re.MULTILINE).group(1)
    lines = snippet.splitlines()
    usings = [x for x in lines if x.startswith("using ") and x.endswith(";") and "(" not in x]
    program = PROGRAM.format(usings="\n".join(usings), body="\n    ".join(x for x in lines if x not in usings))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(assembly, folder)
        (pathlib.Path(folder) / "Hello.cs").write_text(program)
        run = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300)
    print(f"{line}\n{run.stdout}{run.stderr}")
    return 0 if run.returncode == 0 and run.stdout.endswith("done\n") else 1


if __name__ == "__main__":
    sys.exit(main())
