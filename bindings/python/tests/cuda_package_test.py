# SPDX-License-Identifier: Apache-2.0
"""The plugin of the package streamgemm-cuda and the libraries that cuda.pathfinder finds, each replaced by one of the emulated GPU's: loaded
when a CUDA device may be used, and not before. usage: cuda_package_test.py PLUGIN FOLDER-OF-THE-EMULATED-LIBRARIES LIBRARY-OF-THE-GPU"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

PLUGIN, LIBRARIES, GPU = (pathlib.Path(each).resolve() for each in sys.argv[1:4])
PATHFINDER = """
import ctypes
loaded = []
def load_nvidia_dynamic_lib(name):
    loaded.append(name)
    file = {"cublasLt": "libcublasLt.so.13", "cublas": "libcublas.so.13", "cudnn": "libcudnn.so.9"}[name]
    try:
        return ctypes.CDLL(FOLDER + file)
    except OSError as error:
        raise RuntimeError(name) from error
"""
# The names that the pathfinder was asked for, and the mapped libraries that the plugin opens.
STATE = """
import re
from cuda import pathfinder
def state():
    maps = open("/proc/self/maps").read()
    return pathfinder.loaded, sorted(set(re.findall(r"\\S*/lib(?:cublas|cublasLt|cudnn)[.]so\\S*", maps)))
"""
MULTIPLIES = """
import array
x, y, z = (memoryview(array.array("f", values)).cast("B").cast("f", (2, 2)) for values in ([1, 2, 3, 4], [1, 0, 0, 1], [0] * 4))
context.gemm(x, y, z)
assert z.tolist() == x.tolist(), z.tolist()
"""


class CudaPackage(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        package = self.folder / "site/streamgemm_cuda"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "libstreamgemm-cuda.so").symlink_to(PLUGIN)
        self.pathfinder(LIBRARIES)
        (self.folder / "lib").mkdir()
        (self.folder / "lib" / GPU.name).symlink_to(GPU)
        (self.folder / "lib" / "libcuda.so.1").symlink_to(GPU)  # a driver is there
        for name in ("libcublas.so.13", "libcublas.so.12", "libcudnn.so.9"):  # those of this machine are not
            (self.folder / "lib" / name).write_text("no library")

    def pathfinder(self, folder):
        module = self.folder / "site/cuda/pathfinder"
        module.mkdir(parents=True, exist_ok=True)
        (module / "__init__.py").write_text(f"FOLDER = {str(folder) + '/'!r}\n{PATHFINDER}")

    def run_python(self, code, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SG_")}
        environment |= {"PYTHONPATH": f"{environment['PYTHONPATH']}:{self.folder}/site", "LD_LIBRARY_PATH": f"{self.folder}/lib", **variables}
        program = "import os, sys\nimport streamgemm as sg\n" + STATE + textwrap.dedent(code)
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_device_of_the_package(self):
        for device in ('"cuda:0"', '"auto"', ""):
            with self.subTest(device):
                self.run_python(f"""
                    before = dict(os.environ)
                    assert state() == ([], []), state()
                    with sg.Context({device}) as context:
                        assert context.device.name == "cuda:0", context.device
                        {textwrap.indent(MULTIPLIES, " " * 24).strip()}
                    assert state() == (["cublasLt", "cublas"], {[f"{LIBRARIES}/lib{name}.so.13" for name in ("cublas", "cublasLt")]}), state()
                    assert os.environ == before
                    with sg.Context("cuda:0"):
                        assert len(state()[0]) == 2  # asked once
                """)

    def test_its_devices_are_listed(self):
        self.run_python("""
            assert "cuda:0" in [device.name for device in sg.devices()]
            [cuda] = [backend for backend in sg.backends() if backend.name == "cuda"]
            assert cuda.available and "/streamgemm_cuda/libstreamgemm-cuda.so" in cuda.origin, cuda
        """)

    def test_other_devices(self):
        for device in ("cpu", "sim:h200"):
            self.run_python(f"sg.Context({device!r}).close()\nassert state() == ([], []), state()")
        self.run_python('assert sg.default_context().device.name == "cpu"\nassert state() == ([], []), state()', SG_DEVICE="cpu")

    def test_cudnn_on_request(self):
        for value, wanted in (("1", True), ("deterministic", True), ("0", False), ("", False)):
            loaded = self.run_python('sg.Context("cuda:0").close()\nprint(state()[0])', SG_CUDA_CUDNN=value)
            self.assertEqual("cudnn" in loaded, wanted, value)

    def install(self, name, file):
        """The library `file` under a `name` that the loader finds."""
        (self.folder / "lib" / name).unlink(missing_ok=True)
        (self.folder / "lib" / name).symlink_to(file)

    def test_another_plugin_comes_first(self):
        for name in ("libcublas.so.13", "libcublasLt.so.13"):
            self.install(name, LIBRARIES / name)
        self.run_python("""
            sg.Context("cuda:0").close()
            [cuda] = [backend for backend in sg.backends() if backend.name == "cuda"]
            assert "streamgemm_cuda" not in cuda.origin and state()[0] == [], (cuda, state())
        """, SG_PLUGIN_PATH=str(PLUGIN))  # fmt: skip

    def fails(self, reason, loaded, **variables):
        printed = self.run_python(f"""
            try:
                sg.Context("cuda:0")
            except sg.NoDevice as error:
                print(error)
            assert sg.Context("auto").device.name == "cpu"
            [cuda] = [backend for backend in sg.backends() if backend.name == "cuda"]
            assert not cuda.available
            print(cuda.reason)
            assert state()[0] == {loaded}, state()
        """, **variables)  # fmt: skip
        self.assertEqual(len(printed.splitlines()), 2, printed)
        for line in printed.splitlines():
            self.assertRegex(line, reason)

    def test_without_a_usable_cublas(self):
        self.pathfinder(self.folder / "none")
        self.install("libcublas.so.13", GPU)
        self.fails("streamgemm_cuda/libstreamgemm-cuda.so.*: libcublas.so.13 is too old: it has no cublasCreate_v2", ["cublasLt", "cublas"])

    def test_without_a_driver_nothing_is_loaded_in_vain(self):
        (self.folder / "lib/libcuda.so.1").unlink()  # nor that of this machine
        (self.folder / "lib/libcuda.so.1").write_text("no library")
        self.install("libcublas.so.13", LIBRARIES / "libcublas.so.13")
        self.run_python("sg.devices()\nassert state()[0] == [], state()")

    def test_a_broken_package(self):
        (self.folder / "site/streamgemm_cuda/libstreamgemm-cuda.so").unlink()
        self.fails("libstreamgemm-cuda.so.*: No such file", ["cublasLt", "cublas"])

    def test_a_fork_while_another_thread_loads(self):
        self.run_python("""
            import threading, time
            from streamgemm import _cuda
            load, begun = _cuda._load, threading.Event()
            def slowly():
                begun.set()
                time.sleep(0.3)
                return load()
            _cuda._load = slowly
            opened = threading.Thread(target=lambda: sg.Context("auto").close())
            opened.start()
            begun.wait()
            child = os.fork()
            if child == 0:
                sg.backends()
                os._exit(0)
            opened.join()
            assert os.waitpid(child, 0)[1] == 0
        """)

    def test_a_signal_while_it_loads(self):
        self.run_python("""
            import signal, time
            from streamgemm import _cuda
            load, seen = _cuda._load, []
            def slowly():
                time.sleep(0 if seen else 0.5)
                return load()
            _cuda._load = slowly
            signal.signal(signal.SIGALRM, lambda *_: (seen.append(1), seen.append(sg.backends())))
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            assert sg.Context("auto").device.name == "cuda:0" and len(seen) == 2
        """)

    def test_another_plugin_after_a_broken_package(self):
        (self.folder / "site/streamgemm_cuda/libstreamgemm-cuda.so").unlink()
        self.install("libcublas.so.13", LIBRARIES / "libcublas.so.13")
        self.run_python(f"""
            try:
                sg.Context("cuda:0")
                raise AssertionError("opened")
            except sg.NoDevice:
                sg.load_backend({str(PLUGIN)!r})
            assert sg.Context("cuda:0").device.name == "cuda:0"
        """)

    def test_another_module_of_that_name(self):
        shutil.rmtree(self.folder / "site/streamgemm_cuda")
        (self.folder / "site/streamgemm_cuda.py").touch()
        self.run_python('assert sg.Context("auto").device.name == "cpu"')

    def test_without_the_pathfinder(self):
        (self.folder / "site/cuda/pathfinder/__init__.py").write_text("loaded = []\ndef __getattr__(name): raise ImportError")
        self.install("libcublas.so.13", LIBRARIES / "libcublas.so.13")
        self.run_python('with sg.Context("cuda:0") as context:' + textwrap.indent(MULTIPLIES, "    "))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
