#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Without libstreamgemm.so the exception has the system's text, which names that file.

usage: missing_test.py RUNTIME ASSEMBLY PROGRAM SOVERSION COMPILER...
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

runtime, assembly, program, soversion, *compiler = sys.argv[1:]
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for file in (assembly, program):
        shutil.copy(file, folder)
    (folder / "empty.c").write_text("int sg_empty;\n")
    missing, needed = folder / "gone", f"libstreamgemm.so.{soversion}"
    missing.mkdir()
    build = [*compiler, "-shared", "-fPIC", folder / "empty.c"]
    subprocess.run([*build, "-o", missing / needed, f"-Wl,-soname,{needed}"], check=True)
    subprocess.run([*build, "-o", folder / "libstreamgemm_csharp.so", "-Wl,--no-as-needed", missing / needed], check=True)
    shutil.rmtree(missing)
    environment = {k: v for k, v in os.environ.items() if k not in ("MONO_PATH", "LD_LIBRARY_PATH", "STREAMGEMM_CSHARP")}
    done = subprocess.run([runtime, folder / pathlib.Path(program).name, "cpu", "return"], capture_output=True, text=True, env=environment, timeout=120, check=False)
    said = done.stdout + done.stderr
    if done.returncode == 77:
        print(said)
        sys.exit(77)  # without the runtime
    assert done.returncode != 0, said
    assert f"{needed}: cannot open shared object file" in said, said
