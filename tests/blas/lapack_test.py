#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LAPACK's solvers by the drop-in BLAS, on an emulated GPU with an emulated cuSOLVER, beside the CPU library on the same operands.

usage: lapack_test.py FOLDER-OF-THE-LIBRARIES FAILING-MALLOC    SG_TEST_EMULATED is the folder of the emulated GPU
"""
import json
import os
import signal
import subprocess
import sys

from dropin import EMULATED, PLAIN, PRELOAD, PRELUDE, PYTHON, Dropin, run

FAILING_MALLOC = os.path.abspath(sys.argv.pop(2))
CODE = r"""
import random
blas.sg_blas_cpu_function.restype = ctypes.c_void_p
openblas = ctypes.CDLL("libopenblas.so.0")
TYPES = {"s": numpy.float32, "d": numpy.float64, "c": numpy.complex64, "z": numpy.complex128}
chance, numbers = random.Random(), None
def seed(value):
    global numbers
    chance.seed(value)
    numbers = numpy.random.default_rng(value)
def values(rows, columns, kind):
    made = numbers.uniform(-1, 1, (rows, columns))
    return (made + 1j * numbers.uniform(-1, 1, (rows, columns)) if kind in "cz" else made).astype(TYPES[kind])
def stored(matrix):
    "With gaps of NaN between the columns"
    rows, columns = matrix.shape
    memory = numpy.full((columns, rows + chance.choice([0, 0, 1, 5])), numpy.nan, matrix.dtype)
    memory[:, :rows] = matrix.T
    return memory
class Call:
    "The arguments of a routine, and which of them it may write"
    def __init__(self, routine, kind, size=None):
        self.routine, self.kind = routine, kind
        n, m, nrhs = (size or chance.choice([1, 2, 5, 37, 64, 70, 256, 300]) for _ in range(3))
        uplo, trans, jobz = chance.choice("UL"), chance.choice("NTC"), chance.choice("NV")
        definite = routine.startswith("po")
        if routine.endswith("gqr"): m = max(m, n)
        k = chance.randint(1, n)
        a = values(m if routine in ("getrf", "geqrf") or routine.endswith("gqr") else n, n, kind)
        if definite: a = (numpy.einsum("ij,kj->ik", a, a.conj()) + (n + 1) * numpy.eye(n)).astype(a.dtype)
        elif "ev" in routine: a = (a + a.conj().T).astype(a.dtype)
        elif routine not in ("getrf", "geqrf", "orgqr", "ungqr"): a = (a + n * numpy.eye(n)).astype(a.dtype)
        if definite or "ev" in routine: # what is not referred to is NaN
            a[(numpy.triu(numpy.ones((n, n)), 1) if uplo == "L" else numpy.tril(numpy.ones((n, n)), -1)) > 0] = numpy.nan
        self.a, self.b = stored(a), stored(values(n, nrhs, kind))
        self.ipiv = numpy.full(max(n, m) + 1, -7)
        self.w = numpy.full(n + 1, -7, TYPES["s" if kind in "sc" else "d"])
        self.info = numpy.full(2, -7)
        self.tau = numpy.full(n + 1, -7, TYPES[kind])
        self.works = {name: numpy.zeros(1 + 6 * n + 2 * n * n, TYPES["z"]) for name in ("work", "rwork", "iwork")}
        self.given = {"m": m, "n": n, "k": k, "nrhs": nrhs, "lda": self.a.shape[1], "ldb": self.b.shape[1], "UPLO": uplo, "TRANS": trans, "JOBZ": jobz,
                      "lwork": 1 + 6 * n + 2 * n * n, "lrwork": 1 + 6 * n + 2 * n * n, "liwork": 3 + 5 * n}
    WORDS = {"getrf": "m n a lda ipiv info", "getrs": "TRANS n nrhs a lda ipiv b ldb info", "gesv": "n nrhs a lda ipiv b ldb info", "potrf": "UPLO n a lda info",
             "potrs": "UPLO n nrhs a lda b ldb info", "posv": "UPLO n nrhs a lda b ldb info", "geqrf": "m n a lda tau work lwork info", "orgqr": "m n k a lda tau work lwork info",
             "ungqr": "m n k a lda tau work lwork info", "syev": "JOBZ UPLO n a lda w work lwork info",
             "heev": "JOBZ UPLO n a lda w work lwork rwork info", "syevd": "JOBZ UPLO n a lda w work lwork iwork liwork info",
             "heevd": "JOBZ UPLO n a lda w work lwork rwork lrwork iwork liwork info"}
    def factorize(self, wide):
        "For the routines that get a factorization"
        first = {"getrs": "getrf", "potrs": "potrf", "orgqr": "geqrf", "ungqr": "geqrf"}.get(self.routine)
        if first:
            other = Call.__new__(Call)
            other.__dict__ = dict(self.__dict__, routine=first, given=dict(self.given, m=self.given["m"] if first == "geqrf" else self.given["n"]))
            by_cpu(other)
            assert other.info[0] == 0
            self.ipiv = other.ipiv
    def __call__(self, function, wide):
        integer, narrow = (ctypes.c_int64, numpy.int64) if wide else (ctypes.c_int32, numpy.int32)
        own = {"ipiv": self.ipiv.astype(narrow), "info": self.info.astype(narrow)}
        arrays = {"a": self.a, "b": self.b, "w": self.w, "tau": self.tau, **self.works, **own}
        arguments, kept = [], []
        for word in self.WORDS[self.routine].split():
            if word in arrays: arguments.append(ctypes.c_void_p(arrays[word].ctypes.data))
            elif word.isupper(): arguments.append(ctypes.c_char_p(self.given[word].encode()))
            else:
                kept.append(integer(self.given[word]))
                arguments.append(ctypes.byref(kept[-1]))
        arguments += [ctypes.c_size_t(1) for word in self.WORDS[self.routine].split() if word.isupper()]
        function.restype = None
        function(*arguments)
        self.ipiv, self.info = own["ipiv"].astype(numpy.int64), own["info"].astype(numpy.int64)
    def results(self):
        return {"a": self.a, "b": self.b, "ipiv": self.ipiv, "w": self.w, "tau": self.tau, "info": self.info}
def by_cpu(call):
    "The CPU library, which calls its own routines by their names"
    before = blas.sg_blas_enable(0)
    call(getattr(openblas, f"{call.kind}{call.routine}_"), False)
    blas.sg_blas_enable(before)
def copy_of(call):
    other = Call.__new__(Call)
    other.__dict__ = {key: value.copy() if isinstance(value, numpy.ndarray) else value for key, value in call.__dict__.items()}
    return other
def kinds_of(routine):
    return "sd" if routine[:2] in ("sy", "or") else "cz" if routine[:2] in ("he", "un") else "sdcz"
def compare(routine, kind, value, form, size=None):
    "Whether the drop-in BLAS's results are the CPU library's"
    seed(value)
    one = Call(routine, kind, size)
    one.factorize(False)
    other = copy_of(one)
    before = copy_of(one)
    wide = "64" in form
    one(getattr(blas, form.format(kind + routine)), wide)
    by_cpu(other)
    bound = 2e-3 if kind in "sc" else 1e-9
    for name, result in one.results().items():
        wanted = other.results()[name]
        if name == "a" and "ev" in routine: # eigenvectors have a sign of their own; without them A is destroyed
            if one.given["JOBZ"] == "V": result, wanted = abs(result), abs(wanted)
            else: continue
        there = ~numpy.isnan(wanted)
        scale = abs(wanted[there]).max() if there.any() else 1
        assert (numpy.isnan(result) == numpy.isnan(wanted)).all(), (routine, kind, value, name, "NaN elsewhere")
        assert numpy.allclose(result[there], wanted[there], rtol=bound, atol=bound * scale), (routine, kind, value, one.given, name)
    return one, before
"""


class Lapack(Dropin):
    def found(self, code, variables=()):
        settings = {"SG_DEVICE": "cuda:0", "SG_BLAS_REPORT": "/dev/null", "OPENBLAS_NUM_THREADS": "1"}
        said = self.execute([PYTHON, "-c", PRELUDE + CODE + code], settings | dict(variables))
        return json.loads(said.stdout.splitlines()[-1]), said

    def test_random_calls(self):
        """All routines, types, letters, leading dimensions and integers; A's other triangle, the gaps and what lies behind stay as they are."""
        found, _ = self.found("""
for value in range(3):
    for routine in Call.WORDS:
        for kind in kinds_of(routine):
            compare(routine, kind, value, ["{}_64_", "{}_", "scipy_{}_64_"][value])
counts = {}
for row in report()["rows"]: counts.setdefault(row["routine"], {}).update(row["calls"])
print(json.dumps(counts))
""")
        self.assertEqual(len(found), 40)
        self.assertEqual({reason for counts in found.values() for reason in counts}, {"device"})

    def test_large_triangles(self):
        found, _ = self.found("""
for value in range(4): compare(["potrf", "posv"][value % 2], "dz"[value // 2], value, "{}_", 600)
print(json.dumps(reasons()))
""")
        self.assertEqual(found, {"device": 4})

    def test_no_solution(self):
        """Singular and indefinite matrices: the CPU library reports them, on untouched operands."""
        found, _ = self.found("""
seen = []
for routine in ("getrf", "gesv", "potrf", "posv"):
    seed(5)
    one = Call(routine, "d", 70)
    n = one.given["n"]
    if routine in ("getrf", "gesv"): one.a[20, :n] = 0
    else: one.a[30, 30] = -1
    other = copy_of(one)
    one(getattr(blas, f"d{routine}_"), False)
    by_cpu(other)
    seen.append([int(one.info[0]), int(other.info[0]), all(numpy.array_equal(value, other.results()[name], equal_nan=True) for name, value in one.results().items())])
print(json.dumps([seen, reasons()]))
""")
        self.assertEqual(found, [[[21, 21, True], [21, 21, True], [31, 31, True], [31, 31, True]], {"no solution": 4}])

    def test_what_goes_to_the_cpu(self):
        found, _ = self.found("""
def other(change, routine="syevd"):
    seed(1)
    one = Call(routine, "d", 64)
    one.given |= change
    before = dict(reasons())
    one(getattr(blas, f"d{routine}_"), False)
    return [reason for reason, count in reasons().items() if count != before.get(reason)] + [int(one.info[0])]
print(json.dumps([other({"lwork": -1}), other({"liwork": -1}), other({}, "syev"), other({"n": 0}, "potrf"), other({"lda": 64 + 100 - 100}, "potrf")]))
""")
        self.assertEqual(found, [["nothing to do", 0], ["nothing to do", 0], ["device", 0], ["invalid argument", 0], ["device", 0]])

    def test_thresholds_and_switches(self):
        code = """
seed(1)
Call("potrf", "d", 200)(blas.dpotrf_, False)
print(json.dumps(reasons()))
"""
        for variables, reason in (({}, "device"), ({"SG_BLAS_MIN": "100"}, "device"), ({"SG_BLAS_MIN": "201"}, "below the floor"), ({"SG_BLAS_MIN": "auto"}, "below the floor"),
                                  ({"SG_BLAS_LAPACK": "0"}, "LAPACK not served"), ({"SG_DEVICE": "sim:h200"}, "LAPACK not served"), ({"SG_BLAS": "0"}, "switched off"),
                                  ({"SG_DEVICE": "sim:nothing"}, "no device")):
            self.assertEqual(self.found(code, variables)[0], {reason: 1}, variables)
        _, said = self.found(code, {"SG_BLAS_LAPACK": "never"})
        self.assertIn("SG_BLAS_LAPACK=never: neither 0 nor 1", said.stderr)

    def test_numpy(self):
        found, _ = self.found("""
seed(3)
for kind in "sdcz":
    a, b = values(150, 150, kind) + 9 * numpy.eye(150).astype(TYPES[kind]), values(150, 4, kind)
    bound = 1e-3 if kind in "sc" else 1e-9
    assert numpy.allclose(numpy.einsum("ij,jk->ik", a, numpy.linalg.solve(a, b)), b, atol=bound)
    assert numpy.allclose(numpy.einsum("ij,jk->ik", a, numpy.linalg.inv(a)), numpy.eye(150), atol=bound)
    s = numpy.einsum("ij,kj->ik", a, a.conj())
    l = numpy.linalg.cholesky(s)
    assert numpy.allclose(numpy.einsum("ij,kj->ik", l, l.conj()), s, atol=bound * abs(s).max()) and numpy.array_equal(l, numpy.tril(l))
    q, r = numpy.linalg.qr(a)
    assert numpy.allclose(numpy.einsum("ij,jk->ik", q, r), a, atol=bound)
    w, v = numpy.linalg.eigh(s)
    assert numpy.allclose(numpy.einsum("ij,j,kj->ik", v, w, v.conj()), s, atol=bound * abs(s).max())
    try:
        numpy.linalg.cholesky(-s)
        raise AssertionError("no error")
    except numpy.linalg.LinAlgError: pass
print(json.dumps({row["routine"]: row["calls"] for row in report()["rows"] if row["routine"][1:] in Call.WORDS}))
""")
        for routine in ("dgesv", "zgesv", "dpotrf", "zpotrf", "dsyevd", "zheevd", "dgeqrf", "zungqr"):
            self.assertIn("device", found[routine], found)

    def test_failing_allocations(self):
        """Each allocation of the library itself fails in turn, and every second one: the results are right."""
        found, _ = self.found("""
malloc = ctypes.CDLL(None)
for again in (0, 1):
    for number in range(1, 14) if not again else (1, 2, 3):
        malloc.fail_malloc(ctypes.c_long(number), again)
        for routine in ("gesv", "posv", "syevd", "getrs"): compare(routine, "d", number, "{}_", 70)
malloc.fail_malloc(ctypes.c_long(0), 0)
print(json.dumps([malloc.mallocs_failed(), reasons()]))
""", {"LD_PRELOAD": f"{PRELOAD}:{FAILING_MALLOC}"})
        self.assertGreater(found[0], 12)
        self.assertGreater(found[1]["device"], 10)

    def test_faults(self):
        """A failing allocation or launch of any kind: the results are the CPU's, or the process ends."""
        outcomes = set()
        for fault in (1, 2, 4):  # no memory, no launch, a lost device
            for step in (1, 2, 3, 4, 6, 9, 13):
                code = PRELUDE + CODE + f"""
compare("potrf", "d", 1, "{{}}_", 40)
gpu = ctypes.CDLL("{EMULATED}/libsg_test_emulated_gpu.so")
gpu.emulated_gpu_break({fault}, ctypes.c_long({step}), ctypes.c_long(1))
for routine in ("gesv", "potrf", "syevd"): compare(routine, "d", 2, "{{}}_", 60)
print(json.dumps(reasons()))
"""
                settings = {"SG_DEVICE": "cuda:0", "SG_BLAS_REPORT": "/dev/null", "SG_BLAS_MIN": "0", "LD_PRELOAD": str(PRELOAD), "OPENBLAS_NUM_THREADS": "1"}
                said = subprocess.run([PYTHON, "-c", code], env=PLAIN | settings, text=True, capture_output=True, timeout=300)
                if said.returncode == 0:
                    outcomes |= set(json.loads(said.stdout.splitlines()[-1]))
                else:
                    self.assertEqual(said.returncode, -signal.SIGABRT, (fault, step, said.stderr))
                    self.assertIn("the process ends", said.stderr)
        self.assertLessEqual({"device", "device failed"}, outcomes)


run()
