# SPDX-License-Identifier: Apache-2.0
"""What the tests of the drop-in BLAS share. The first argument of each is the folder of its three libraries."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

BUILT = pathlib.Path(sys.argv[1])
PRELOAD = BUILT / "libstreamgemm-blas.so.1"
NETLIB = {width: next(pathlib.Path("/usr/lib").glob(f"*/blas{width}/xblat3d"), pathlib.Path("/absent/xblat3d")).parent for width in ("", "64")}
# With the distribution's NumPy, which calls cblas_*.
PYTHON = "/usr/bin/python3"

# The environment of children. Meson adds the folder of the libraries that are tested, by which programs would load them.
PLAIN = {key: value for key, value in os.environ.items() if not key.startswith("SG_") and key != "LD_LIBRARY_PATH"}
# The folder of the emulated GPU, whose device is cuda:0.
EMULATED = os.environ.get("SG_TEST_EMULATED")
if EMULATED:
    PLAIN |= {"LD_LIBRARY_PATH": EMULATED, "SG_PLUGIN_PATH": f"{EMULATED}/libstreamgemm-cuda.so"}

# Of children: `blas`, whose attributes are the functions of the drop-in BLAS in the process, and `gemm`, which calls one of them.
PRELUDE = """
import ctypes, json, os, sys
import numpy
blas = ctypes.CDLL(None)
blas.sg_blas_cpu_function.restype = ctypes.c_void_p
blas.sg_blas_cpu_function.argtypes = [ctypes.c_char_p]
blas.sg_blas_set_cpu_function.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
blas.sg_blas_report.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]
def gemm(name, a, b, c, alpha=1.0, beta=0.0, order=102):
    "C = alpha A B + beta C in f64, all in Fortran's order, by a CBLAS name"
    integer = ctypes.c_int64 if "64_" in name else ctypes.c_int32
    pointer = lambda matrix: ctypes.c_void_p(matrix.ctypes.data)
    function = getattr(blas, name)
    function.restype = None
    function(order, 111, 111, integer(a.shape[0]), integer(b.shape[1]), integer(a.shape[1]), ctypes.c_double(alpha), pointer(a), integer(a.shape[0]),
             pointer(b), integer(b.shape[0]), ctypes.c_double(beta), pointer(c), integer(c.shape[0]))
def operands(m, n, k, seed=1):
    chance = numpy.random.default_rng(seed)
    return [numpy.asfortranarray(chance.standard_normal(shape)) for shape in ((m, k), (k, n), (m, n))]
def multiplies(name, n=96, beta=1.0, seed=1):
    "Whether a function's GEMM is right"
    a, b, c = operands(n, n + 5, n + 9, seed)
    wanted = numpy.einsum("ij,jk->ik", a, b) + beta * c
    gemm(name, a, b, c, beta=beta)
    return numpy.allclose(c, wanted, rtol=1e-12, atol=1e-12)
def report():
    size = ctypes.c_uint64()
    blas.sg_blas_report(None, 0, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    blas.sg_blas_report(text, size, None)
    return json.loads(text.value)
def reasons():
    counts = {}
    for row in report()["rows"]:
        for reason, count in row["calls"].items():
            counts[reason] = counts.get(reason, 0) + count
    return counts
"""


def reasons(report):
    """How often each reason stands in a report."""
    counts = collections.Counter()
    for row in report["rows"]:
        counts.update(row["calls"])
    return counts


class Dropin(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def execute(self, command, variables=(), preload=True, exits=0, **options):
        """Runs a program with the drop-in BLAS; the device is the cpu, and each valid call goes there."""
        environment = dict(PLAIN)
        environment |= {"SG_DEVICE": "cpu", "SG_BLAS_MIN": "0"} | ({"LD_PRELOAD": str(PRELOAD)} if preload else {})
        environment |= dict(variables)
        environment = {key: value for key, value in environment.items() if value is not None}
        done = subprocess.run([str(word) for word in command], env=environment, text=True, capture_output=True, timeout=300, **options)
        self.assertEqual(done.returncode, exits, f"{command}\n{done.stdout}\n{done.stderr}")
        return done

    def child(self, code, variables=(), **options):
        """Runs Python code with the drop-in BLAS, after PRELUDE."""
        return self.execute([PYTHON, "-c", PRELUDE + textwrap.dedent(code)], variables, **options)

    def json_of(self, code, variables=()):
        return json.loads(self.child(code, {"SG_BLAS_REPORT": "/dev/null"} | dict(variables)).stdout)


def run():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
