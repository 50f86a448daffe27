#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Maven repository that packaging/maven.py writes: the same bytes each time, what Maven Central asks for, and programs that use
nothing but its jars. With SG_SOAK=1 Maven itself builds and runs one, with Debian's plugins.

usage: maven_test.py STREAMGEMM.jar SOURCES VERSION PLATFORM
"""
import filecmp
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
JAR, SOURCES, VERSION, PLATFORM = sys.argv[1:]
EXEC = pathlib.Path("/usr/share/maven-repo/org/codehaus/mojo/exec-maven-plugin/3.1.0")
SETTINGS = """<settings><localRepository>{folder}/local</localRepository>
  <mirrors><mirror><id>debian</id><mirrorOf>central</mirrorOf><url>file:///usr/share/maven-repo</url></mirror></mirrors></settings>"""
PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>hello</artifactId><version>1</version>
  <properties><maven.compiler.release>11</maven.compiler.release><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
  <repositories><repository><id>here</id><url>file://{repository}</url><releases><checksumPolicy>fail</checksumPolicy></releases></repository></repositories>
  <dependencies><dependency><groupId>org.streamgemm</groupId><artifactId>streamgemm-platform</artifactId><version>{version}</version><type>pom</type></dependency>
  </dependencies></project>"""


def run(*command, **options):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False, **options)
    return done.returncode, done.stdout + done.stderr


class Repository(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(made.cleanup)
        cls.folder = pathlib.Path(made.name)
        with zipfile.ZipFile(cls.folder / "other.jar", "w") as other:  # of another platform
            for name in ("META-INF/native/other/libstreamgemm_java.so", "org/streamgemm/Context.class"):
                other.writestr(name, "other")
        for name in ("first", "second"):
            subprocess.run([ROOT / "packaging/maven.py", JAR, SOURCES, VERSION, cls.folder / name, cls.folder / "other.jar"], check=True)
        cls.artifacts = cls.folder / "first/org/streamgemm/streamgemm" / VERSION
        (cls.folder / "program").mkdir()
        subprocess.run(["javac", "-cp", cls.jar(), "-d", cls.folder / "program", ROOT / "bindings/java/examples/Hello.java"], check=True)

    @classmethod
    def jar(cls, classifier=""):
        return cls.artifacts / f"streamgemm-{VERSION}{classifier}.jar"

    def names(self, classifier=""):
        with zipfile.ZipFile(self.jar(classifier)) as jar:
            return set(jar.namelist())

    def test_native_image_knows_what_native_code_looks_up(self):
        with zipfile.ZipFile(self.jar()) as jar:
            metadata = json.loads(jar.read("META-INF/native-image/org.streamgemm/streamgemm/reachability-metadata.json"))
            inside = jar.namelist()
        source = (ROOT / "bindings/java/java.i").read_text()
        signs = {"I": "int", "J": "long", "[B": "byte[]"}
        wanted = {name.replace("/", "."): [] for name in re.findall(r'FindClass\(jenv, "(.*?)"\)', source)}
        for method, signature in re.findall(r'Get(?:Static)?MethodID\(jenv, \w+, "(\w+)", "\((.*?)\)', source):
            self.assertEqual(len(wanted), 1, "each method has a class")
            next(iter(wanted.values())).append({"name": method, "parameterTypes": [signs[each] for each in re.findall(r"\[?[A-Z]", signature)]})
        self.assertEqual({each["type"]: each["methods"] for each in metadata["jni"]}, wanted)
        self.assertTrue(wanted)
        for name in wanted:
            self.assertIn(name.replace(".", "/") + ".class", inside)
        self.assertEqual(metadata["resources"], [{"glob": "META-INF/native/**"}])
        with zipfile.ZipFile(self.jar(f"-{PLATFORM}")) as natives:
            self.assertTrue(any(name.startswith("META-INF/native/") for name in natives.namelist()))

    def test_the_same_bytes(self):
        files = [path.relative_to(self.folder / "first") for path in (self.folder / "first").rglob("*") if path.is_file()]
        self.assertEqual(len(files), 7 * 4)
        self.assertEqual(filecmp.cmpfiles(self.folder / "first", self.folder / "second", files, shallow=False)[1:], ([], []))

    def test_checksums(self):
        for path in self.artifacts.iterdir():
            if path.suffix in (".jar", ".pom"):
                for kind in ("md5", "sha1", "sha256"):
                    self.assertEqual(path.with_name(f"{path.name}.{kind}").read_text(), hashlib.new(kind, path.read_bytes()).hexdigest())

    def test_contents(self):
        native = {name for name in self.names() if name.startswith("META-INF/native/")}
        self.assertEqual(native, set())
        self.assertLessEqual({"module-info.class", "org/streamgemm/Context.class", "META-INF/LICENSE", "META-INF/NOTICE"}, self.names())
        self.assertLessEqual({"module-info.java", "org/streamgemm/Context.java"}, self.names("-sources"))
        classes = {name.partition("$")[0].removesuffix(".class") for name in self.names() if name.startswith("org/")}
        outer = {name.removesuffix(".java") for name in self.names("-sources") if name.startswith("org/")}
        self.assertEqual(classes, outer - {"org/streamgemm/package-info"})
        self.assertLessEqual({"index.html", "org/streamgemm/Context.html"}, self.names("-javadoc"))
        natives = {pathlib.Path(name).name for name in self.names(f"-{PLATFORM}") if name.startswith(f"META-INF/native/{PLATFORM}/")}
        self.assertEqual({name.partition(".")[0] for name in natives}, {"libstreamgemm", "libstreamgemm_java"})
        self.assertIn("META-INF/native/other/libstreamgemm_java.so", self.names("-other"))
        with zipfile.ZipFile(self.jar()) as jar:
            self.assertNotEqual(jar.read("org/streamgemm/Context.class"), b"other")

    def test_description(self):
        project = xml.etree.ElementTree.parse(self.artifacts / f"streamgemm-{VERSION}.pom").getroot()
        for field in ("name", "description", "url", "licenses/license/name", "licenses/license/url", "developers/developer/name", "scm/connection", "scm/url"):
            self.assertTrue(project.findtext("/".join(f"{{*}}{name}" for name in field.split("/"))), field)
        self.assertEqual([project.findtext(f"{{*}}{name}") for name in ("groupId", "artifactId", "version")], ["org.streamgemm", "streamgemm", VERSION])

    def test_the_platform_has_all(self):
        folder = self.artifacts.parent.with_name("streamgemm-platform") / VERSION
        project = xml.etree.ElementTree.parse(folder / f"streamgemm-platform-{VERSION}.pom").getroot()
        self.assertEqual(project.findtext("{*}packaging"), "pom")
        found = [(each.findtext("{*}artifactId"), each.findtext("{*}version"), each.findtext("{*}classifier")) for each in project.findall(".//{*}dependency")]
        self.assertEqual(found, [("streamgemm", VERSION, classifier) for classifier in (None, PLATFORM, "other")])

    def test_a_program(self):
        jars, program = f"{self.jar()}:{self.jar(f'-{PLATFORM}')}", self.folder / "program"
        self.assertEqual(run("java", "-cp", f"{jars}:{program}", "Hello")[0], 0)
        by_module = ("java", "-p", self.jar(), "--add-modules", "org.streamgemm", "-cp", f"{self.jar(f'-{PLATFORM}')}:{program}", "Hello")
        self.assertEqual(run(*by_module), run("java", "-cp", f"{jars}:{program}", "Hello"))
        code, printed = run("java", "-cp", f"{self.jar()}:{program}", "Hello")
        self.assertEqual(code, 1)
        self.assertIn(f"the jar's META-INF/native/{PLATFORM}/: no libstreamgemm.so", printed)

    @unittest.skipUnless(os.environ.get("SG_SOAK") == "1" and EXEC.is_dir(), "SG_SOAK is not 1, or Debian's plugins of Maven are not installed")
    def test_maven(self):
        project = self.folder / "project"
        (project / "src/main/java").mkdir(parents=True)
        (project / "src/main/java/Hello.java").write_text((ROOT / "bindings/java/examples/Hello.java").read_text())
        (project / "settings.xml").write_text(SETTINGS.format(folder=self.folder))
        (project / "pom.xml").write_text(PROJECT.format(repository=self.folder / "first", version=VERSION))
        code, printed = run("mvn", "-q", "-B", "-s", "settings.xml", "compile", f"org.codehaus.mojo:exec-maven-plugin:{EXEC.name}:java", "-Dexec.mainClass=Hello", cwd=project)
        self.assertEqual(code, 0, printed)
        self.assertIn("[19.0, 22.0, 43.0, 50.0]", printed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
