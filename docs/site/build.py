#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site: the Markdown pages and the reference of C and Python by Sphinx, that of Java by Javadoc, that of C# by Doxygen.
Every warning is an error, and so is a link to nothing.

usage: build.py [--test | --missing] SETTINGS.json [OUTPUT-FOLDER]     --test: exit 77, which Meson takes for a skip, where a tool is missing;
--missing: names the missing tools, and builds nothing
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

import links
import stage

HERE = pathlib.Path(__file__).resolve().parent


def missing(settings):
    """Tools that are not there, for a person to install; tools/setup has their packages."""
    for key, name in {"doxygen": "Doxygen (doxygen)", "javadoc": "a JDK with javadoc and the Java package", "assembly": "the C# package",
                      "python": "the Python package"}.items():
        if not settings[key]:
            yield name
    modules = {"sphinx": "Sphinx (python3-sphinx)", "myst_parser": "MyST-Parser (python3-myst-parser)", "breathe": "Breathe (python3-breathe)",
               "furo": "Furo (furo)"}
    for module, name in modules.items():
        if settings["python"] and subprocess.run([settings["python"], "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode:
            yield f"{name} for {settings['python']}"


def start(command, **variables):
    return subprocess.Popen([str(x) for x in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **variables})


def doxygen(settings, work, language, inputs, **options):
    configuration = (HERE / "Doxyfile.in").read_text()
    for name, value in {"LANGUAGE": language, "VERSION": settings["version"], "OUTPUT": work, "INPUT": " ".join(map(str, inputs))}.items():
        configuration = configuration.replace(f"@{name}@", str(value))
    work.mkdir(parents=True)
    (work / "Doxyfile").write_text(configuration + "".join(f"{key} = {value}\n" for key, value in options.items()))
    return start([settings["doxygen"], work / "Doxyfile"])


def split_parameters(folder):
    """`@param a,b TEXT` is one item with two names in Doxygen's XML; Sphinx's C domain takes one name an item."""
    for file in folder.glob("*.xml"):
        tree = xml.parse(file)
        changed = False
        for parent in tree.iter("parameterlist"):
            for item in list(parent):
                names = item.findall("parameternamelist/parametername")
                for name in names[1:]:
                    item.find("parameternamelist").remove(name)
                    copy = xml.fromstring(xml.tostring(item))
                    copy.find("parameternamelist/parametername").text = name.text
                    parent.insert(list(parent).index(item) + 1, copy)
                    changed = True
        if changed:
            tree.write(file)


def finish(name, process, complaints, quiet=False):
    """Any output of a tool is a complaint."""
    output = process.communicate()[0].strip()
    if process.returncode or (output and not quiet):
        complaints.append(f"-- {name}: exit {process.returncode}\n{output}")


def undocumented(settings, output):
    """Public names of the Python package that its page does not have."""
    page = (output / "api/python.html").read_text()
    names = subprocess.run([settings["python"], "-c", "import streamgemm; print(*streamgemm.__all__)"], text=True, check=True,
                           stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": settings["python_path"]}).stdout.split()
    stub = pathlib.Path(settings["python_path"], "streamgemm/torch.pyi").read_text()
    names += [f"torch.{name}" for name in re.findall(r"^def (\w+)", stub, re.MULTILINE)]
    return [f"docs/site/api/python.md: nothing about {name}" for name in names if f'id="streamgemm.{name}"' not in page]


def build(settings, output):
    root, work = pathlib.Path(settings["root"]), output.with_name(output.name + "-work")
    for folder in (work, output):
        shutil.rmtree(folder, ignore_errors=True)
    complaints = []
    headers = sorted((root / "include/streamgemm").glob("*.h"))
    in_c = doxygen(settings, work / "c", "C", headers, OPTIMIZE_OUTPUT_FOR_C="YES", TYPEDEF_HIDES_STRUCT="YES", GENERATE_HTML="NO", GENERATE_XML="YES",
                   ALIASES='"deprecated=@attention Deprecated."')
    csharp = [root / "bindings/csharp/src", settings["csharp_declarations"], HERE / "csharp.dox"]
    in_csharp = doxygen(settings, work / "csharp", "C#", csharp, FILE_PATTERNS="*.cs *.dox", OPTIMIZE_OUTPUT_JAVA="YES", WARN_IF_UNDOCUMENTED="NO", SHOW_FILES="NO", DISABLE_INDEX="NO", HIDE_UNDOC_CLASSES="YES",
                        HIDE_UNDOC_MEMBERS="YES", EXCLUDE_SYMBOLS="StreamGemm.Internal*", VERBATIM_HEADERS="NO")
    complaints += stage.stage(root, work / "pages", headers)
    finish("Doxygen, C", in_c, complaints)
    back = '<a href="{@docRoot}/../index.html">StreamGEMM</a>'
    in_java = start([settings["javadoc"], "-quiet", "-Xdoclint:all", "-Werror", "-public", "-notimestamp", "-header", back,
                     "-sourcepath", settings["java_sources"], "-d", work / "java", "org.streamgemm"])
    split_parameters(work / "c/xml")
    sphinx = start([settings["python"], "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html", "-c", HERE, "-d", work / "doctrees",
                    "-D", f"version={settings['version']}", "-D", f"release={settings['version']}",
                    "-D", f"breathe_projects.c={work / 'c/xml'}", work / "pages", output], PYTHONPATH=settings["python_path"], SG_DEVICE="cpu",
                   PYTHONWARNINGS="ignore")  # of Sphinx about its extensions' future
    finish("Sphinx", sphinx, complaints)
    finish("Doxygen, C#", in_csharp, complaints)
    finish("Javadoc", in_java, complaints)
    if not complaints:
        shutil.copytree(work / "csharp/html", output / "csharp")
        shutil.copytree(work / "java", output / "java")
        complaints += [*links.dead(output), *undocumented(settings, output)]
    return complaints


def main():
    arguments = [x for x in sys.argv[1:] if x not in ("--test", "--missing")]
    settings = json.loads(pathlib.Path(arguments[0]).read_text())
    absent = list(missing(settings))
    if "--missing" in sys.argv:
        print(", ".join(absent))
        return 0
    if absent:
        print("the site is not built; missing:", *absent, sep="\n  ")
        return 77 if "--test" in sys.argv else 1
    output = pathlib.Path(arguments[1] if len(arguments) > 1 else settings["build"] + "/site").resolve()
    begin = time.monotonic()
    complaints = build(settings, output)
    print(*complaints, f"{output}/index.html: {len(complaints)} complaints, {time.monotonic() - begin:.0f} s", sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
