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
import tomllib
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "packaging"))
import cuda_wheel  # noqa: E402
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
# Best of many, both interleaved: a GEMM here and in NumPy. For the reader: other work on the machine changes it.
SPEED = """
import time
import numpy as np, streamgemm as sg
def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
with sg.Context("cpu") as context:
    for n in (256, 1024):
        a, b, c = (np.ones((n, n), np.float32) for _ in range(3))
        times = ((seconds(lambda: context.gemm(a, b, c)), seconds(lambda: np.matmul(a, b, out=c))) for _ in range(15000 // n))
        ours, theirs = (min(each) for each in zip(*times))
        assert ours < 10 * theirs, "computed without a BLAS"
        print(f"{n}^3 in f32: {1e3 * ours:.3f} ms, {ours / theirs:.2f} of NumPy's")
"""
# In place of NVIDIA's package.
PATHFINDER = """
import ctypes
def load_nvidia_dynamic_lib(name):
    return ctypes.CDLL({folder!r} + f"/lib{{name}}.so.13")
"""
ON_CUDA = """
import array, streamgemm as sg
a, b, c = (memoryview(array.array("f", values)).cast("B").cast("f", (2, 2)) for values in ([1, 2, 3, 4], [1, 0, 0, 1], [0] * 4))
with sg.Context("cuda:0") as context:
    context.gemm(a, b, c)
assert c.tolist() == a.tolist()
"""


def reusing(build, compiler, wrapper, log):
    """The path of a program that stands for a compiler."""
    wrapper.write_text(REUSE.format(python=sys.executable, build=str(build), compiler=compiler, log=str(log)))
    wrapper.chmod(0o755)
    return str(wrapper)


def works(python, *arguments, **variables):
    """Runs in an environment with only the package: no path to any other library or module."""
    wheel.run(python, *arguments, env={"PATH": "/usr/bin:/bin", **variables}, cwd="/")


def try_cuda_wheel(source, build, folder, fresh):
    """The package of the plugin, of that on the emulated GPU. Its library of the GPU, and those of cuBLAS, stay in the build folder."""
    emulated = build.resolve() / "tests/cuda/emulated"
    if not (emulated / "libcublas.so.13").exists():
        print("no emulated GPU: the package of the plugin is not tried")
        return
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    version = subprocess.run([sys.executable, source / "tools/version.py"], check=True, capture_output=True, text=True).stdout.strip()
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1000000000")
    cuda_wheel.make(source, emulated / "libstreamgemm-cuda.so", project, version, folder, ["--exclude", "libsg_test_emulated_gpu.so"])
    made = wheel.the_only(folder, "*.whl")
    assert re.fullmatch(rf"streamgemm_cuda-{re.escape(version)}-py3-none-manylinux_\S+\.whl", made.name), made
    wheel.run(fresh / "pip", "install", "-q", made)  # which the installed package satisfies
    wheel.run(fresh / "pip", "check")
    [site] = fresh.parent.glob("lib/python*/site-packages")
    (site / "cuda/pathfinder").mkdir(parents=True)
    (site / "cuda/pathfinder/__init__.py").write_text(PATHFINDER.format(folder=str(emulated)))
    with tempfile.TemporaryDirectory() as driver:
        os.symlink(emulated / "libsg_test_emulated_gpu.so", f"{driver}/libcuda.so.1")
        os.symlink(emulated / "libsg_test_emulated_gpu.so", f"{driver}/libsg_test_emulated_gpu.so")
        works(fresh / "python", "-c", ON_CUDA, LD_LIBRARY_PATH=driver)
    wheel.run(fresh / "pip", "uninstall", "-q", "-y", "streamgemm-cuda")
    assert not (site / "streamgemm_cuda").exists()


def check_contents(source, made):
    [limit] = re.findall(r"^wheel/\S+\.whl (\d+)$", (source / SIZES).read_text(), re.MULTILINE)
    assert made.stat().st_size <= int(limit) << 10, made.stat()
    with zipfile.ZipFile(made) as archive:
        names = archive.namelist()
        [metadata] = [archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")]
    assert not any("libstreamgemm-cuda" in name for name in names), names  # only on request
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
        try_cuda_wheel(source, build, folder / "cuda", fresh)
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
