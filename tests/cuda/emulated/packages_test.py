#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages of the CUDA plugin for Java and C#, made of the plugin on the emulated GPU: a program whose packages they are has CUDA devices, and says
which file they are of; without them it has none.

usage: packages_test.py PLUGIN FOLDER-OF-THE-EMULATED-LIBRARIES java CLASS-PATH PLATFORM
       packages_test.py PLUGIN FOLDER-OF-THE-EMULATED-LIBRARIES csharp STREAMGEMM.nupkg TESTS.exe PLATFORM MONO DOTNET
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "packaging"))
sys.dont_write_bytecode = True
import maven  # noqa: E402

PLUGIN, LIBRARIES, KIND, *GIVEN = sys.argv[1:]
VERSION = subprocess.run([ROOT / "tools/version.py"], check=True, capture_output=True, text=True).stdout.strip()
ENVIRONMENT = {name: value for name, value in os.environ.items() if name == "SG_TEST_PACKAGES" or not name.startswith(("SG_", "MONO_PATH", "STREAMGEMM_"))} | {"LD_LIBRARY_PATH": LIBRARIES}


class Packages(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)

    def run_program(self, *command, **variables):
        return subprocess.run([str(each) for each in command], env=ENVIRONMENT | variables, capture_output=True, text=True, check=False)

    @unittest.skipUnless(KIND == "java", "of Java")
    def test_maven(self):
        class_path, platform = GIVEN
        maven.cuda(pathlib.Path(PLUGIN), platform, VERSION, self.folder)
        made = self.folder / "org/streamgemm/streamgemm-cuda" / VERSION
        project = xml.etree.ElementTree.parse(made / f"streamgemm-cuda-{VERSION}.pom").getroot()
        dependencies = [[element.text for element in each] for each in project.findall(".//{*}dependency")]
        self.assertEqual(dependencies, [["org.streamgemm", "streamgemm-platform", VERSION, "pom"],
                                        ["org.streamgemm", "streamgemm-cuda", VERSION, platform, "runtime"]])
        (self.folder / "own").mkdir()
        java = ["java", "-Xmx512m", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={self.folder}/own", "-cp"]
        test = ["org.junit.runner.JUnitCore", "org.streamgemm.CustomCudaTest"]
        done = self.run_program(*java, f"{class_path}:{made}/streamgemm-cuda-{VERSION}-{platform}.jar", *test)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("OK (1 test)", done.stdout)
        self.assertEqual(list((self.folder / "own").iterdir()), [], "a copy is left")
        done = self.run_program(*java, class_path, *test)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such plugin", done.stdout)

    def check_published(self, runtime, tests, natives):
        """As published: with the folder of runtimes beside the program, and for one platform, all files in one folder; a plugin that cannot be used says why."""
        for name in ("any", "one"):
            application = self.folder / "published" / pathlib.Path(runtime).name / name
            application.mkdir(parents=True)
            for file in (tests, self.folder / "lib/netstandard2.1/StreamGemm.dll"):
                shutil.copy(file, application)
            if name == "any":
                shutil.copytree(self.folder / "runtimes", application / "runtimes")
            for file in natives.rglob("*.so*") if name == "one" else ():
                shutil.copy(file, application)
            test = [runtime, application / pathlib.Path(tests).name, "cuda:0", "CustomCudaTest"]
            done = self.run_program(*test)
            if done.returncode == 77:
                self.skipTest(done.stdout)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (application / "libstreamgemm-cuda.so").write_bytes(b"none")
        done = self.run_program(*test)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("libstreamgemm-cuda.so: ", done.stdout + done.stderr)

    def check_built(self, dotnet, tests, platform, *packages):
        """As built and not published: .NET finds the files of both packages in the folder of packages."""
        application = self.folder / "built"
        application.mkdir()
        shutil.copy(tests, application)
        target, libraries, listed = ".NETCoreApp,Version=v3.1", {}, {}
        for package in packages:
            name = pathlib.Path(package).stem.lower()
            with zipfile.ZipFile(package) as archive:
                archive.extractall(application / "packages" / name)
                files = archive.namelist()
            libraries[f"{name}/{VERSION}"] = {"type": "package", "serviceable": False, "sha512": "", "path": name}
            listed[f"{name}/{VERSION}"] = {"runtime": {n: {} for n in files if n.endswith("StreamGemm.dll")},
                                           "runtimeTargets": {n: {"rid": platform, "assetType": "native"} for n in files if n.startswith("runtimes/")}}
        program = application / pathlib.Path(tests).name
        program.with_suffix(".deps.json").write_text(json.dumps({"runtimeTarget": {"name": target}, "targets": {target: listed}, "libraries": libraries}))
        program.with_suffix(".runtimeconfig.json").write_text(json.dumps({"runtimeOptions": {
            "rollForward": "LatestMajor", "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
            "configProperties": {"System.Globalization.Invariant": True}, "additionalProbingPaths": [str(application / "packages")]}}))
        done = self.run_program(dotnet, program, "cuda:0", "CustomCudaTest")
        if done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipUnless(KIND == "csharp", "of C#")
    def test_nuget(self):
        package, tests, platform, mono, dotnet = GIVEN
        own = self.folder / "own.nupkg"
        subprocess.run([ROOT / "bindings/csharp/nuget/pack.py", "--cuda", own, VERSION, ROOT / "LICENSE", platform, PLUGIN], check=True)
        for each in (package, own):
            with zipfile.ZipFile(each) as archive:
                self.assertIsNone(archive.testzip())
                archive.extractall(self.folder)
        nuspec = xml.etree.ElementTree.parse(self.folder / "StreamGemm.Cuda.nuspec").getroot()
        self.assertEqual([each.attrib for each in nuspec.findall(".//{*}dependency")], [{"id": "StreamGemm", "version": f"[{VERSION}]"}])
        there = {"MONO_PATH": str(self.folder / "lib/netstandard2.1")}
        done = self.run_program(mono, tests, "cuda:0", "CustomCudaTest", **there)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        natives = self.folder / f"runtimes/{platform}/native"
        for runtime in (mono, dotnet):
            with self.subTest(runtime):
                self.check_published(runtime, tests, natives)
        with self.subTest("built"):
            self.check_built(dotnet, tests, platform, package, own)
        [plugin] = self.folder.glob(f"runtimes/{platform}/native/streamgemm/backend-*/libstreamgemm-cuda.so")
        plugin.unlink()
        done = self.run_program(mono, tests, "cuda:0", "CustomCudaTest", **there)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no such plugin", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
