#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program on .NET, with the assembly beside it as .NET wants it.

usage: run_dotnet.py DOTNET ASSEMBLY.dll NATIVE-FOLDER[:FOLDER] PROGRAM.exe ARGUMENT...

The program has no .deps.json and no .runtimeconfig.json of its own: any .NET from Core 3.1 on will do.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CONFIGURATION = {"runtimeOptions": {
    "rollForward": "LatestMajor", "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
    "configProperties": {"System.Globalization.Invariant": True}}}


def main():
    dotnet, assembly, natives, program, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for file in (assembly, program):
            (root / pathlib.Path(file).name).write_bytes(pathlib.Path(file).read_bytes())
        configuration = root / "runtimeconfig.json"
        configuration.write_text(json.dumps(CONFIGURATION))
        environment = {**os.environ, "LD_LIBRARY_PATH": natives, "DOTNET_CLI_TELEMETRY_OPTOUT": "1"}
        command = [dotnet, "exec", "--runtimeconfig", configuration, root / pathlib.Path(program).name, *arguments]
        sys.exit(subprocess.run(command, env=environment).returncode)


if __name__ == "__main__":
    main()
