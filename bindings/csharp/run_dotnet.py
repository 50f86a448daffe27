#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program on .NET: on the `dotnet` of PATH, or on that of the package dotnetcore2 (PyPI) in SG_TEST_PACKAGES; without one the status
is 77, by which Meson skips a test.

usage: run_dotnet.py [--beside ASSEMBLY.dll NATIVE-FOLDER[:FOLDER]] PROGRAM.exe ARGUMENT...

--beside runs a copy of the program, since .NET wants an assembly beside it. A program without a .runtimeconfig.json of its own takes any .NET from Core 3.1
on.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

CONFIGURATION = {"runtimeOptions": {
    "rollForward": "LatestMajor", "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
    "configProperties": {"System.Globalization.Invariant": True}}}


def dotnet():
    """The command; None: there is none."""
    return shutil.which("dotnet", path=os.pathsep.join([os.environ["PATH"], os.path.join(os.environ.get("SG_TEST_PACKAGES", "/absent"), "dotnetcore2/bin")]))


def run(program, arguments, folder, environment):
    """The program's status; a configuration is put into a folder."""
    configuration = pathlib.Path(program).with_suffix(".runtimeconfig.json")
    if not configuration.exists():
        configuration = folder / "runtimeconfig.json"
        configuration.write_text(json.dumps(CONFIGURATION))
    return subprocess.run([dotnet(), "exec", "--runtimeconfig", configuration, program, *arguments], env=environment, check=False).returncode


def main():
    arguments = sys.argv[1:]
    environment = {**os.environ, "DOTNET_CLI_TELEMETRY_OPTOUT": "1"}
    if not dotnet():
        print("there is no dotnet on PATH, and no package dotnetcore2 in SG_TEST_PACKAGES")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if arguments[0] != "--beside":
            return run(arguments[0], arguments[1:], folder, environment)
        _, assembly, environment["LD_LIBRARY_PATH"], program, *arguments = arguments
        for file in (assembly, program):
            shutil.copy(file, folder)
        return run(folder / pathlib.Path(program).name, arguments, folder, environment)


if __name__ == "__main__":
    status = main()
    if status < 0:  # ends by the same signal
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)
