#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the module of the interface without a warning, compares its derived types with C's structs, and runs the example.
fortran_test.py COMPILER MODULE EXAMPLE FOLDER-OF-THE-LIBRARY HEADER..."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings/api"))
import model


def main():
    compiler, module, example, libraries, *headers = sys.argv[1:]
    module, example = (str(pathlib.Path(each).resolve()) for each in (module, example))
    public = model.Model([h for h in headers if pathlib.Path(h).name != "blas.h"])
    environment = os.environ | {"LD_LIBRARY_PATH": libraries}
    with tempfile.TemporaryDirectory() as folder:
        def run(*command):
            return subprocess.run(command, cwd=folder, env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout

        run(compiler, "-std=f2018", "-Wall", "-Wextra", "-Werror", "-c", module, "-o", "module.o")
        sized = pathlib.Path(folder, "sizes.f90")
        # The size of each type, and where its last component begins.
        lines = [f"  print *, c_sizeof(x{i}), transfer(c_loc(x{i}%{s.fields[-1].name}), 0_c_int64_t) - transfer(c_loc(x{i}), 0_c_int64_t)"
                 for i, s in enumerate(public.structs.values())]
        declared = [f"  type({s.name}), target :: x{i}" for i, s in enumerate(public.structs.values())]
        sized.write_text("\n".join(["program sizes", "  use streamgemm", "  implicit none", *declared, *lines, "end program"]) + "\n")
        run(compiler, str(sized), "module.o", "-o", "sizes")
        found = [tuple(map(int, line.split())) for line in run("./sizes").splitlines()]
        for struct, of_fortran in zip(public.structs.values(), found, strict=True):
            in_c = struct.size, struct.fields[-1].offset
            if of_fortran != in_c:
                sys.exit(f"{struct.name}: size and last member {of_fortran}, in C {in_c}")
        run(compiler, "-std=f2018", "-Wall", "-Wextra", "-Werror", example, "module.o", "-L" + libraries, "-lstreamgemm", "-o", "example")
        for device in ("cpu", "sim:h200"):
            told = run("./example", device)
            assert told.splitlines()[-1].strip() == "C = A*B is right" and "desc->c" in told, told
        print(f"{len(found)} types have the layout of C; {told}", end="")


if __name__ == "__main__":
    main()
