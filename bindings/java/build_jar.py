#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the Java layer and packs a jar with the native code inside.

usage: build_jar.py --jar OUT.jar --version V [--sources DIR] [--native NAME=PATH]... [--meta FILE]...
    [--header H]... [--module MODULE-INFO] [--native-image JSON] [--classpath CP] JAVA-FILE...

--header     the public headers, from which bindings/api/java.py writes further sources
--meta       a file for META-INF, such as the licence
--module     module-info.java
--native     a file to put into the jar, by its name there
--native-image  what GraalVM's native-image cannot find by itself: its reachability metadata
--sources    also leaves all sources but module-info.java, in their packages, in this folder, for javadoc
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile


def package_of(source):
    found = re.search(r"^package ([\w.]+);", source.read_text(), flags=re.M)
    return found[1].replace(".", "/") if found else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jar", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--javac", default="javac")
    parser.add_argument("--classpath", default="")
    parser.add_argument("--meta", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--module", type=pathlib.Path)
    parser.add_argument("--native-image", type=pathlib.Path)
    parser.add_argument("--sources", type=pathlib.Path)
    parser.add_argument("--native", action="append", default=[])
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=options.jar.parent) as name:
        work = pathlib.Path(name)
        written, sources, classes = work / "written", work / "sources", work / "classes"
        written.mkdir()
        own = options.files
        if options.header:
            completed = [f for f in own if package_of(f) == "org/streamgemm"]
            subprocess.run([sys.executable, pathlib.Path(__file__).parents[1] / "api/java.py", written, *options.header, *completed], check=True)
            own = [f for f in own if f not in completed]
        for source in [*own, *sorted(written.glob("*.java"))]:
            folder = sources / package_of(source)
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder)
        subprocess.run([options.javac, "--release", "11", "-encoding", "UTF-8", "-Xlint:all,-options", "-d", classes,
                        *(["-cp", options.classpath] if options.classpath else []), *sorted(sources.rglob("*.java")),
                        *([options.module] if options.module else [])], check=True)
        with zipfile.ZipFile(options.jar, "w", zipfile.ZIP_DEFLATED) as jar:

            def put(inside, content):
                entry = zipfile.ZipInfo(inside)  # the same date each time, so that the same sources give the same jar
                entry.compress_type = zipfile.ZIP_DEFLATED
                jar.writestr(entry, content)

            put("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n"
                f"Implementation-Title: StreamGEMM\r\nImplementation-Version: {options.version}\r\n\r\n")
            for meta in options.meta:
                put(f"META-INF/{meta.name}", meta.read_bytes())
            if options.native_image:
                put("META-INF/native-image/org.streamgemm/streamgemm/reachability-metadata.json", options.native_image.read_bytes())
            for compiled in sorted(classes.rglob("*.class")):
                put(compiled.relative_to(classes).as_posix(), compiled.read_bytes())
            for native in options.native:
                inside, file = native.split("=", 1)
                put(inside, pathlib.Path(file).read_bytes())
        if options.sources:
            shutil.rmtree(options.sources, ignore_errors=True)
            shutil.copytree(sources, options.sources)


if __name__ == "__main__":
    main()
