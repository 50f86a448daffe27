# SPDX-License-Identifier: Apache-2.0
"""How the blocks of each language are compiled and run. Each runner takes (blocks, settings) and yields
(block, device, success, output)."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DEVICES = ("cpu", "sim:h200")
LIMIT = 300  # seconds for one block

# Programs of Mono 6.8 that await twice inside `using` rarely end so, also without this library (some of 400 starts).
MONO_DEFECT = "An attempt was made to transition a task to a final state when it had already completed"

C_PROGRAM = """#include "check.h"
#include <string.h>
int main(void) {{
  sg_context *context = open_context(1, NULL);
  {{
{body}
  }}
  sg_context_release(context);
  return 0;
}}
"""
JAVA_PROGRAM = """{imports}
import java.nio.*;
import java.nio.file.Path;
import java.util.*;
import java.util.concurrent.*;
import org.streamgemm.*;
public class {name} {{
  public static void main(String[] arguments) throws Exception {{
{body}
  }}
}}
"""
CSHARP_PROGRAM = """using System;
using System.Threading;
using System.Threading.Tasks;
{usings}
static class Block {{
  static async Task Run() {{
{body}
  }}
  static void Main() {{
    Run().GetAwaiter().GetResult();
  }}
}}
"""


def execute(command, folder, device="", **variables):
    """(success, output) of a command."""
    environment = {**os.environ, **variables}
    if device:
        environment["SG_DEVICE"] = device
    try:
        run = subprocess.run(command, cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=LIMIT)
    except subprocess.TimeoutExpired as late:
        return False, f"{late.stdout or ''}\n-- took longer than {LIMIT} s"
    return run.returncode == 0, run.stdout


def with_setup(block):
    return block.markers.get("with", "") + "\n" + block.text


def take_lines(text, pattern):
    """(lines that match, the others)."""
    lines = text.split("\n")
    return "\n".join(x for x in lines if re.match(pattern, x)), "\n".join(x for x in lines if not re.match(pattern, x))


def run_c(blocks, settings):
    compiler = settings["cc"] + ["-std=c99", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L", *(f"-I{x}" for x in settings["include"]),
                                 f"-I{settings['root']}/examples"]
    library = pathlib.Path(settings["library"]).parent
    link = [f"-L{library}", "-lstreamgemm", f"-Wl,-rpath,{library}", "-lm", "-pthread"]
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks:
            header = block.markers.get("needs")
            text = with_setup(block)
            program = text if "#include" in text else C_PROGRAM.format(body=text)
            file = pathlib.Path(folder, re.sub(r"\W", "_", block.name) + ".c")
            file.write_text(program)
            if header and not execute([*settings["cc"], "-E", "-include", header, "-xc", "/dev/null"], folder)[0]:
                yield block, f"(not compiled: no {header})", True, ""
                continue
            command = [*settings["cc"], "-c", str(file)] if header else [*compiler, str(file), "-o", "program", *link]
            ok, text = execute(command, folder)
            if not ok or header:
                yield block, "compiled", ok, text
                continue
            for device in DEVICES:
                yield block, device, *execute(["./program"], folder, device)


PYTHON_RUNNER = r"""
import ast, asyncio, contextlib, importlib.util, inspect, io, json, sys, traceback
for name, needs, text in json.load(open("blocks.json")):
    output, ok = io.StringIO(), True
    try:
        code = compile(text, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if not needs or importlib.util.find_spec(needs):
            with contextlib.redirect_stdout(output):
                result = eval(code, {"__name__": "__main__"})
                if inspect.iscoroutine(result):
                    async def run():
                        await result
                    asyncio.run(run())
    except BaseException:
        ok = False
        output.write(traceback.format_exc())
    print(json.dumps([name, ok, output.getvalue()]), flush=True)
"""


def run_python(blocks, settings):
    """All blocks of one device in one process, each in a namespace of its own. A block that needs a module is compiled only where it is
    not installed."""
    import json
    by_name = {block.name: block for block in blocks}
    for device in DEVICES:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "blocks.json").write_text(json.dumps([[b.name, b.markers.get("needs"), with_setup(b)] for b in blocks]))
            ok, printed = execute([settings["python"], "-c", PYTHON_RUNNER], folder, device, PYTHONPATH=settings["python_path"],
                                  PYTHONDONTWRITEBYTECODE="1")
        seen = set()
        for line in printed.splitlines():
            if line.startswith('["'):
                name, good, text = json.loads(line)
                seen.add(name)
                yield by_name[name], device, good, text
        for name in set(by_name) - seen:
            yield by_name[name], device, False, f"exit {ok}: {printed}"


def java_name(block):
    public = re.search(r"^(?:public )?(?:final )?class (\w+)", block.text, re.MULTILINE)
    return public[1] if public else "Block"


def run_java(blocks, settings):
    """One compilation of all blocks, each in a package of its own; a VM for each."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, block in enumerate(blocks):
            text = with_setup(block)
            if java_name(block) == "Block":
                imports, body = take_lines(text, r"import .*;$")
                text = JAVA_PROGRAM.format(imports=imports, body=body, name="Block")
            file = pathlib.Path(folder, f"block{number}", java_name(block) + ".java")
            file.parent.mkdir()
            file.write_text(f"package block{number}; {text}")
            files.append(str(file))
        path = f"{settings['jar']}:{folder}/classes"
        compiler = [settings["javac"], "-encoding", "UTF-8", "-Xlint:all,-try", "-Werror", "-d", f"{folder}/classes", "-cp", settings["jar"]]
        ok, text = execute([*compiler, *files], folder)
        if not ok:
            broken = [block for number, block in enumerate(blocks) if f"/block{number}/" in text]
            yield from ((block, "compiled", False, text) for block in broken or blocks)
            return
        machine = [settings["java"], "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-ea", "-cp", path]
        for number, block in enumerate(blocks):
            yield block, "cpu", *execute([*machine, f"block{number}.{java_name(block)}"], folder, "cpu")


def run_csharp(blocks, settings):
    """By the line of docs/csharp.md that compiles a program."""
    def one(block):
        text = with_setup(block)
        if not re.search(r"static .*\bMain\(", text):
            usings, body = take_lines(text, r"using [\w.]+;$")
            usings = "\n".join(x for x in usings.split("\n") if x not in ("using System;", "using System.Threading;", "using System.Threading.Tasks;"))
            text = CSHARP_PROGRAM.format(usings=usings, body=body)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(settings["assembly"], folder)
            pathlib.Path(folder, "Hello.cs").write_text(text)
            page = pathlib.Path(settings["root"], "docs/csharp.md").read_text()
            line = re.search(r"^(mcs .*)$", page, re.MULTILINE)[1]
            ok, printed = execute(["sh", "-c", line], folder, "cpu", STREAMGEMM_CSHARP=settings["csharp_library"])
            for _ in range(3):
                if ok or MONO_DEFECT not in printed:
                    break
                ok, printed = execute(["mono", "Hello.exe"], folder, "cpu", STREAMGEMM_CSHARP=settings["csharp_library"])
            return block, "cpu", ok, printed
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from pool.map(one, blocks)


def run_sh(blocks, settings):
    """In a folder with three matrices, `streamgemm` on the path. Lines that begin with `$ ` are commands, others of such a block output."""
    sys.path.insert(0, str(pathlib.Path(settings["root"], "tests/tools")))
    import npy
    program = str(pathlib.Path(settings["program"]).parent)
    for block in blocks:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a", "b"):
                pathlib.Path(folder, f"{name}.npy").write_bytes(npy.encode([[float(i + j) for j in range(64)] for i in range(64)]))
            pathlib.Path(folder, "bias.npy").write_bytes(npy.encode([[1.0] * 64]))
            lines = with_setup(block).split("\n")
            if any(x.startswith("$ ") for x in lines):
                lines = [x[2:] for x in lines if x.startswith("$ ")]
            # XDG_CACHE_HOME: nothing is left in the user's cache.
            yield block, "cpu", *execute(["sh", "-ec", "\n".join(lines)], folder, "cpu", PATH=f"{program}:{os.environ['PATH']}",
                                         XDG_CACHE_HOME=f"{folder}/cache", LD_LIBRARY_PATH=str(pathlib.Path(settings["library"]).parent))


RUNNERS = {"c": run_c, "python": run_python, "java": run_java, "csharp": run_csharp, "sh": run_sh}
