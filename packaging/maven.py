#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the jar of a build as a Maven repository: streamgemm with the classes, their sources, their Javadoc, and the native code as a classifier;
streamgemm-platform, which depends on all of it; descriptions and checksums. `cuda` writes streamgemm-cuda, the CUDA plugin as a classifier, which
depends on the others. The same jars give the same bytes.

usage: maven.py STREAMGEMM.jar SOURCES VERSION REPOSITORY [OTHER.jar...]     SOURCES: the folder that build_jar.py wrote beside the jar
OTHER: the same jar for another platform, of which the native code alone is taken
"""
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.sax.saxutils
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUP, NAME = "org.streamgemm", "streamgemm"
NATIVE = "META-INF/native/"
CHECKSUMS = ("md5", "sha1", "sha256")
POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 http://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{name}</artifactId>
  <version>{version}</version>
  <packaging>{packaging}</packaging>
  <name>StreamGEMM</name>
  <description>{description}</description>
  <url>{homepage}</url>
  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
      <distribution>repo</distribution>
    </license>
  </licenses>
  <developers>
    <developer>
      <name>{author}</name>
      <url>{homepage}</url>
    </developer>
  </developers>
  <scm>
    <connection>scm:git:{source}.git</connection>
    <url>{source}</url>
  </scm>{dependencies}
</project>
"""
DEPENDENCY = """
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{name}</artifactId>
      <version>{version}</version>{more}
    </dependency>"""
NATIVES = """
      <classifier>{}</classifier>
      <scope>runtime</scope>"""
PARENT = """
      <type>pom</type>"""


def description():
    """What pyproject.toml says of the project."""
    text = (ROOT / "pyproject.toml").read_text()
    keys = {"description": "description", "homepage": "Homepage", "source": "Source"}
    found = {name: re.search(rf'^{key} = "(.*)"$', text, re.MULTILINE)[1] for name, key in keys.items()}
    found["author"] = re.search(r'^authors = \[\{ name = "(.*?)"', text, re.MULTILINE)[1]
    return {name: xml.sax.saxutils.escape(value) for name, value in found.items()}


def write_jar(path, files):
    """`files`: contents by name. The manifest comes first, as readers of jars expect."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        for name in sorted(files, key=lambda name: (name != "META-INF/MANIFEST.MF", name)):
            entry = zipfile.ZipInfo(name)  # the same date each time
            entry.compress_type = zipfile.ZIP_DEFLATED
            jar.writestr(entry, files[name])


def below(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def reference(sources):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["javadoc", "-quiet", "-notimestamp", "-public", "-sourcepath", sources, "-d", folder, GROUP], check=True, stdout=subprocess.DEVNULL)
        return below(pathlib.Path(folder))


def content_of(jar):
    with zipfile.ZipFile(jar) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def main(jar, sources, version, repository, *others):
    content = content_of(jar)
    for other in others:
        content |= {name: data for name, data in content_of(other).items() if name.startswith(NATIVE)}
    common = {name: content[name] for name in ("META-INF/MANIFEST.MF", "META-INF/LICENSE", "META-INF/NOTICE")}
    module = {"module-info.java": (ROOT / "bindings/java/src/module-info.java").read_bytes()}
    jars = {
        "": {name: data for name, data in content.items() if not name.startswith(NATIVE)},
        "-sources": common | module | below(pathlib.Path(sources)),
        "-javadoc": common | reference(sources),
    }
    for name, data in content.items():
        if name.startswith(NATIVE):
            platform = name[len(NATIVE) :].split("/")[0]
            jars.setdefault(f"-{platform}", dict(common))[name] = data

    write_artifact(repository, NAME, version, jars)
    platforms = [classifier[1:] for classifier in jars if classifier not in ("", "-sources", "-javadoc")]
    write_artifact(repository, f"{NAME}-platform", version, {}, [(NAME, ""), *((NAME, NATIVES.format(each)) for each in sorted(platforms))])


def cuda(plugin, platform, version, repository):
    """streamgemm-cuda, of the file `plugin`."""
    name = f"{NAME}-cuda"
    files = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n", f"{NATIVE}{platform}/libstreamgemm-cuda.so": plugin.read_bytes()}
    files |= {f"META-INF/{each}": (ROOT / each).read_bytes() for each in ("LICENSE", "NOTICE")}
    write_artifact(repository, name, version, {f"-{platform}": files}, [(f"{NAME}-platform", PARENT), (name, NATIVES.format(platform))])


def write_artifact(repository, name, version, jars, dependencies=()):
    """`jars`: files by classifier; `dependencies`: (name, what its element holds besides). Without a jar of no classifier it is a pom."""
    folder = pathlib.Path(repository, *GROUP.split("."), name, version)
    folder.mkdir(parents=True, exist_ok=True)
    for classifier, files in jars.items():
        write_jar(folder / f"{name}-{version}{classifier}.jar", files)
    elements = "".join(DEPENDENCY.format(group=GROUP, name=other, version=version, more=more) for other, more in dependencies)
    listed = f"\n  <dependencies>{elements}\n  </dependencies>" if elements else ""
    pom = POM.format(group=GROUP, name=name, version=version, packaging="jar" if "" in jars else "pom", dependencies=listed, **description())
    (folder / f"{name}-{version}.pom").write_text(pom)
    for path in [*folder.glob("*.jar"), *folder.glob("*.pom")]:
        for kind in CHECKSUMS:
            path.with_name(f"{path.name}.{kind}").write_text(hashlib.new(kind, path.read_bytes()).hexdigest())


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
