# SPDX-License-Identifier: Apache-2.0
"""The wheel: made, installed into a fresh virtual environment, tried there.

Takes PyPI, so only SG_WHEEL=1 runs it. The library's objects are those of the build folder; with SG_SOAK=1 all is compiled from
the source distribution. usage: wheel_test.py SOURCE-FOLDER BUILD-FOLDER COMPILER...     of C; then -- and that of C++
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "packaging"))
import wheel  # noqa: E402

SKIPPED = 77
SIZES = "packaging/artifact_sizes.txt"
REUSE = """#!{python}
# The compiler, which takes the objects of the library from a build folder with the same names.
import pathlib, shutil, subprocess, sys
arguments = sys.argv[1:]
made = arguments[arguments.index("-o") + 1] if "-c" in arguments and "-o" in arguments else ""
built = pathlib.Path({build!r}, made)
of_wheels = made.startswith("lib/backends/cpu/libsg_cpu.a.p/")  # where a wheel finds its BLAS
if made.startswith("lib/") and built.exists() and not of_wheels:
    shutil.copyfile(built, made)
    pathlib.Path(arguments[arguments.index("-MF") + 1]).write_text(made + ":\\n")
    print(made, file=open({log!r}, "a"))
else:
    sys.exit(subprocess.call({compiler!r} + arguments))
"""
# What the package loads: OpenBLAS of the dependency, without threads, and none of the system.
LOADED = """
import ctypes, importlib.util, streamgemm as sg
with sg.Context("cpu") as context:
    pass
maps = open("/proc/self/maps").read()
assert "/scipy_openblas32/lib/libscipy_openblas.so" in maps and "libopenblas" not in maps, maps
[folder] = importlib.util.find_spec("scipy_openblas32").submodule_search_locations
assert ctypes.CDLL(folder + "/lib/libscipy_openblas.so").scipy_openblas_get_num_threads() == 1
"""
# Best of many, both interleaved: milliseconds of a GEMM here and in NumPy.
SPEED = """
import time
import numpy as np, streamgemm as sg
a, b, c = (np.ones((1024, 1024), np.float32) for _ in range(3))
def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
with sg.Context("cpu") as context:
    ours, theirs = (min(times) for times in zip(*((seconds(lambda: context.gemm(a, b, c)), seconds(lambda: np.matmul(a, b, out=c))) for _ in range(60))))
print(f"1024^3 in f32: {1e3 * ours:.2f} ms, NumPy {1e3 * theirs:.2f} ms")
assert ours < 3 * theirs, (ours, theirs)  # on a loaded machine; without BLAS it is 20 times
"""


def reusing(build, compiler, wrapper, log):
    """The path of a program that stands for a compiler."""
    wrapper.write_text(REUSE.format(python=sys.executable, build=str(build), compiler=compiler, log=str(log)))
    wrapper.chmod(0o755)
    return str(wrapper)


def works(python, *arguments):
    """Runs in an environment with only the package: no path to any other library or module."""
    wheel.run(python, *arguments, env={"PATH": "/usr/bin:/bin"}, cwd="/")


def check_contents(source, made):
    [limit] = re.findall(r"^wheel/\S+\.whl (\d+)$", (source / SIZES).read_text(), re.MULTILINE)
    assert made.stat().st_size <= int(limit) << 10, made.stat()
    with zipfile.ZipFile(made) as archive:
        names = archive.namelist()
        [metadata] = [archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")]
    assert not any("cuda" in name for name in names), names  # only on request
    assert [name.split("/")[-1].split(".")[0] for name in names if ".so" in name] == ["_native"], names  # no library beside it
    assert {"LICENSE", "NOTICE"} <= {name.split("/")[-1] for name in names}, names
    needed = [line for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE) if "extra ==" not in line]
    assert [line.split(">")[0] for line in needed] == ["scipy-openblas32"], needed
    assert len(re.findall(r"^Project-URL: ", metadata, re.MULTILINE)) >= 2, metadata
    assert "](" not in re.sub(r"\]\(https://", "", metadata), metadata  # links of the page on PyPI are whole


def main(source, build, compilers):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        soak = os.environ.get("SG_SOAK") == "1"
        reused = folder / "reused"
        reused.touch()
        variables = {} if soak else {name: reusing(build, compiler, folder / name, reused) for name, compiler in compilers.items()}
        options = ["-Csetup-args=-Dcpp_link_args=-s", "-Csetup-args=-Dc_link_args=-s", "-Ccompile-args=-j2"]
        if not soak:
            options.append("-Csetup-args=-Doptimization=0")  # what is compiled here, the wrapper, is tested, not its speed
        try:
            wheel.make(source, folder / "made", options, variables, sdist=soak)
        except subprocess.CalledProcessError as error:
            if "install" not in error.cmd:
                raise
            print("PyPI cannot be reached")
            return SKIPPED
        objects = reused.read_text().split()
        assert bool(objects) != soak, objects
        made = wheel.the_only(folder / "made", "*.whl")
        assert "manylinux" in made.name, made
        check_contents(source, made)

        fresh = wheel.environment(folder / "fresh")
        wheel.run(fresh / "pip", "install", "-q", "--no-deps", made)
        works(fresh / "python", "-m", "streamgemm.selftest", "cpu", "sim:h200")  # without NumPy
        wheel.run(fresh / "pip", "install", "-q", made)
        works(fresh / "python", "-m", "streamgemm.selftest", "cpu")  # NumPy is no dependency
        works(fresh / "python", "-c", LOADED)
        wheel.run(fresh / "pip", "install", "-q", "numpy")
        works(fresh / "python", "-m", "streamgemm.selftest", "cpu", "sim:h200")
        works(
            fresh / "python",
            "-c",
            "import numpy as np, streamgemm as sg; a = np.eye(3); c = sg.matmul(a, a); assert (c == a).all()",
        )
        works(fresh / "python", "-c", SPEED)
        # A plugin in the package is found, as one in a folder of the system's library would be.
        [package] = (folder / "fresh").glob("lib/python*/site-packages/streamgemm")
        [version] = re.findall(r"#define SG_BACKEND_ABI_VERSION (\d+)", (source / "include/streamgemm/backend.h").read_text())
        plugin = package / "streamgemm" / f"backend-{version}" / "libstreamgemm-cuda.so"
        plugin.parent.mkdir(parents=True)
        plugin.touch()
        found = f"[cuda] = [b for b in sg.backends() if b.name == 'cuda']; assert cuda.origin == {str(plugin)!r} and not cuda.available, cuda"
        works(fresh / "python", "-c", f"import streamgemm as sg; {found}")
        print(made.name, f"{made.stat().st_size >> 10} KiB: passed")
    return 0


if __name__ == "__main__":
    if os.environ.get("SG_WHEEL") != "1":
        print("only SG_WHEEL=1 builds the wheel")
        sys.exit(SKIPPED)
    at = sys.argv.index("--")
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), {"CC": sys.argv[3:at], "CXX": sys.argv[at + 1 :]}))
