# SPDX-License-Identifier: Apache-2.0
"""The package with PyPI's newest SWIG, which the distributions do not have yet: wrapped, compiled, and tried by its self-test.
usage: newest_swig_test.py SOURCE-FOLDER BUILD-FOLDER LIBRARY C-COMPILER..."""

import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

SOURCE, BUILD, LIBRARY = map(pathlib.Path, sys.argv[1:4])
COMPILER = sys.argv[4:]
BINDINGS = SOURCE / "bindings"
FLAGS = ["-std=gnu11", "-O0", "-fPIC", "-shared", "-fno-strict-aliasing", "-Wall", "-Werror"]
FLAGS += ["-Wno-missing-field-initializers", "-Wno-unused-function", "-Wno-unused-variable"]  # of SWIG's code


def run(*command, **how):
    print("+", *command, flush=True)
    return subprocess.run([str(part) for part in command], check=True, **how)


def main():
    packages = pathlib.Path(os.environ.get("SG_TEST_PACKAGES", "none"), "swig", "data")
    swig = packages / "bin" / "swig"
    if not swig.is_file():
        print("PyPI's swig is not installed: tools/test does it where PyPI can be reached")
        return 77
    how = {**os.environ, "SWIG_LIB": glob.glob(f"{packages}/share/swig/*")[0]}
    print(re.search("SWIG Version .*", run(swig, "-version", env=how, capture_output=True, text=True).stdout)[0])
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        package = folder / "streamgemm"
        shutil.copytree(BINDINGS / "python" / "streamgemm", package)
        made = BUILD / "bindings" / "python" / "streamgemm"
        for name in ("_operations.py", "operations.py", "_functions.py", "_tables.py"):
            shutil.copy(made / name, package)
        wrapper = folder / "_raw_wrap.c"
        include = [f"-I{path}" for path in (SOURCE / "include", BINDINGS, BUILD / "bindings", made, BINDINGS / "python" / "src")]
        options = ["-python", "-interface", "_native", "-threads"]  # as in meson.build
        run(swig, "-DSWIGWORDSIZE64", *include, *options, "-o", wrapper, "-outdir", package,
            BINDINGS / "python" / "python.i", env=how)  # fmt: skip
        module = package / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
        sources = sorted((BINDINGS / "python" / "src").glob("*.c"))
        run(*COMPILER, *FLAGS, f"-I{sysconfig.get_path('include')}", *include, wrapper, *sources, "-o", module,
            LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}")  # fmt: skip
        path = {**os.environ, "PYTHONPATH": str(folder)}
        run(sys.executable, "-m", "streamgemm.selftest", "cpu", "sim:h200", env=path)
        for test in ("errors", "gemm", "graphs", "plans", "traces"):
            run(sys.executable, BINDINGS / "python" / "tests" / f"{test}_test.py", env={**path, "SG_TEST_DEVICE": "cpu"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
