#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site by Sphinx: the Markdown pages, the reference of C and C# from Doxygen's XML, that of Python by autodoc, the members of
the Java package, whose text is Javadoc's, and a gallery of traces. Every warning is an error, and so are a link to nothing, a public name
without a page and a name that the search does not find.

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
import members
import searched
import stage

HERE = pathlib.Path(__file__).resolve().parent


def missing(settings):
    """Tools that are not there, for a person to install; tools/setup has their packages."""
    for key, name in {"doxygen": "Doxygen (doxygen)", "javadoc": "a JDK with javadoc and the Java package", "assembly": "the C# package",
                      "python": "the Python package"}.items():
        if not settings[key]:
            yield name
    modules = {"sphinx": "Sphinx (python3-sphinx)", "myst_parser": "MyST-Parser (python3-myst-parser)", "breathe": "Breathe (python3-breathe)",
               "furo": "Furo (furo)", "numpy": "NumPy (python3-numpy)"}
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


PUBLIC = """
import streamgemm as sg
print(*sg.__all__, *(f"Context.{name}" for name in dir(sg.Context) if not name.startswith("_")))
"""


def undocumented(settings, output):
    """Public names of the Python package that its pages do not have."""
    pages = "".join(page.read_text() for page in sorted((output / "api/python").glob("*.html")))
    names = subprocess.run([settings["python"], "-c", PUBLIC], text=True, check=True, stdout=subprocess.PIPE,
                           env={**os.environ, "PYTHONPATH": settings["python_path"]}).stdout.split()
    for module in ("torch", "operations"):
        stub = pathlib.Path(settings["python_path"], f"streamgemm/{module}.pyi").read_text()
        names += [f"{module}.{name}" for name in re.findall(r"^def (\w+)", stub, re.MULTILINE)]
    return [f"docs/site/api/python: nothing about {name}" for name in names if not re.search(f'id="(module-)?streamgemm.{name}"', pages)]


def build(settings, output):
    root, work = pathlib.Path(settings["root"]), output.with_name(output.name + "-work")
    for folder in (work, output):
        shutil.rmtree(folder, ignore_errors=True)
    complaints = []
    headers = sorted((root / "include/streamgemm").glob("*.h"))
    in_c = doxygen(settings, work / "c", "C", headers, OPTIMIZE_OUTPUT_FOR_C="YES", TYPEDEF_HIDES_STRUCT="YES", GENERATE_HTML="NO", GENERATE_XML="YES",
                   ALIASES='"deprecated=@attention Deprecated."')
    in_csharp = doxygen(settings, work / "csharp", "C#", [root / "bindings/csharp/src", settings["csharp_declarations"]], FILE_PATTERNS="*.cs",
                        OPTIMIZE_OUTPUT_JAVA="YES", WARN_IF_UNDOCUMENTED="NO", GENERATE_HTML="NO", GENERATE_XML="YES", XML_PROGRAMLISTING="NO",
                        EXCLUDE_SYMBOLS="StreamGemm.Internal*")
    back = '<a href="{@docRoot}/../index.html">StreamGEMM</a>'
    in_java = start([settings["javadoc"], "-quiet", "-Xdoclint:all", "-Werror", "-public", "-notimestamp", "-header", back,
                     "-sourcepath", settings["java_sources"], "-d", work / "java", "org.streamgemm"])
    in_gallery = start([settings["python"], HERE / "pictures.py", root, work / "traces"], PYTHONPATH=settings["python_path"])
    for name, process in {"Doxygen, C": in_c, "Doxygen, C#": in_csharp, "Javadoc": in_java, "traces": in_gallery}.items():
        finish(name, process, complaints)
    if complaints:
        return complaints
    complaints += stage.stage(root, work / "pages", headers, work / "traces")
    members.csharp(work / "csharp/xml", work / "pages/api/csharp")
    members.java(work / "java", work / "pages/api/java")
    split_parameters(work / "c/xml")
    sphinx = start([settings["python"], "-m", "sphinx", "-q", "-j", "auto", "-W", "--keep-going", "-n", "-b", "html", "-c", HERE, "-d", work / "doctrees",
                    "-D", f"version={settings['version']}", "-D", f"release={settings['version']}",
                    "-D", f"breathe_projects.c={work / 'c/xml'}", work / "pages", output], PYTHONPATH=settings["python_path"], SG_DEVICE="cpu",
                   PYTHONWARNINGS="ignore")  # of Sphinx about its extensions' future
    finish("Sphinx", sphinx, complaints)
    if not complaints:
        shutil.copytree(work / "java", output / "java")
        shutil.copytree(work / "traces", output / "traces", ignore=shutil.ignore_patterns("*.json"))
        complaints += [*links.dead(output), *undocumented(settings, output), *searched.not_found(output)]
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
