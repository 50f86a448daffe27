#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All routines of level 3, with random letters, sizes, layouts, integers and leading dimensions, beside the CPU BLAS on the same operands: by
the drop-in BLAS the device computes them, or the GEMMs among their parts. What a routine does not refer to is NaN, and must stay as it is.

usage: parts_test.py FOLDER-OF-THE-LIBRARIES FAKE-GEMMT DEVICE
"""
import collections
import json
import os
import sys
import time

from dropin import PRELUDE, PYTHON, Dropin, run

FAKE_GEMMT, DEVICE = sys.argv.pop(2), sys.argv.pop(2)
CODE = r"""
import random
ROUTINES = {
    "gemm": ("sdcz", "ttmnk"), "gemmt": ("d", "uttnk"), "symm": ("sdcz", "sumn"), "hemm": ("cz", "sumn"), "syrk": ("sdcz", "utnk"), "herk": ("cz", "utnk"),
    "syr2k": ("sdcz", "utnk"), "her2k": ("cz", "utnk"), "trmm": ("sdcz", "sutdmn"), "trsm": ("sdcz", "sutdmn"),
}
LETTERS = {"t": "NTC", "u": "UL", "s": "LR", "d": "NU"}
ENUMS = {"t": {"N": 111, "T": 112, "C": 113}, "u": {"U": 121, "L": 122}, "d": {"N": 131, "U": 132}, "s": {"L": 141, "R": 142}}
TYPES = {"s": numpy.float32, "d": numpy.float64, "c": numpy.complex64, "z": numpy.complex128}

class Case:
    def __init__(self, seed, routine, kind):
        self.chance, self.numbers, self.routine, self.kind = random.Random(seed), numpy.random.default_rng(seed), routine, kind
        self.letters = [(role, self.chance.choice(LETTERS[role])) for role in ROUTINES[routine][1] if role in LETTERS]
        hermitian, symmetric = routine in ("herk", "her2k"), routine in ("syrk", "syr2k")
        if hermitian or symmetric and kind in "cz":
            self.letters = [(role, self.chance.choice("NC" if hermitian else "NT") if role == "t" else letter) for role, letter in self.letters]
        size = lambda: self.chance.choice([1, 2, 3, self.chance.randint(4, 40), self.chance.randint(40, 330)])
        self.sizes = {name: size() for name in "mnk"}
        self.row_major = False
        first = lambda role: next((letter for each, letter in self.letters if each == role), None)
        self.uplo, self.side, self.diag, self.trans = first("u"), first("s"), first("d"), [letter for role, letter in self.letters if role == "t"]

    def scalar(self, real):
        value = self.chance.choice([1.0, 1.0, 0.0, self.chance.uniform(-2, 2), self.chance.uniform(-2, 2)])
        return value if real or self.kind in "sd" else complex(value, self.chance.choice([0.0, self.chance.uniform(-2, 2)]))

    def values(self, rows, cols):
        made = self.numbers.uniform(-1, 1, (rows, cols))
        return (made + 1j * self.numbers.uniform(-1, 1, (rows, cols)) if self.kind in "cz" else made).astype(TYPES[self.kind])

    def stored(self, values, keep=None):
        "A matrix as stored with gaps of NaN, and the bytes of it that belong to it"
        rows, cols = values.shape
        outer, inner = (rows, cols) if self.row_major else (cols, rows)
        memory = numpy.full((outer, inner + self.chance.choice([0, 0, 1, 7])), numpy.nan, TYPES[self.kind])
        view = memory[:, :inner] if self.row_major else memory[:, :inner].T
        view[...] = values
        if keep is not None:
            view[~keep] = numpy.nan
        return memory, view

    def triangle(self, n, diagonal=True):
        lower = numpy.tril(numpy.ones((n, n), bool), 0 if diagonal else -1)
        return lower if self.uplo == "L" else lower.T

    def operands(self):
        m, n, k = (self.sizes[name] for name in "mnk")
        name = self.routine
        stored_as = lambda op, rows, cols: self.values(rows, cols) if op == "N" else self.values(cols, rows)
        if name in ("gemm", "gemmt"):
            rows = m if name == "gemm" else n
            yield self.stored(stored_as(self.trans[0], rows, k))
            yield self.stored(stored_as(self.trans[1], k, n))
            yield self.stored(self.values(rows, n), None if name == "gemm" else self.triangle(n))
        elif name in ("symm", "hemm"):
            size = m if self.side == "L" else n
            yield self.stored(self.values(size, size), self.triangle(size))
            yield self.stored(self.values(m, n))
            yield self.stored(self.values(m, n))
        elif name in ("trmm", "trsm"):
            size = m if self.side == "L" else n
            scaled = (self.values(size, size) / size + 2 * numpy.eye(size)).astype(TYPES[self.kind]) if self.diag == "N" else self.values(size, size) / (2 * size)
            yield self.stored(scaled, self.triangle(size, self.diag == "N"))
            yield self.stored(self.values(m, n))
        else:
            yield self.stored(stored_as(self.trans[0], n, k))
            if "2" in name:
                yield self.stored(stored_as(self.trans[0], n, k))
            yield self.stored(self.values(n, n), self.triangle(n))

def call(case, function, is_cblas, integer, memories, alpha, beta):
    real = {"herk": (True, True), "her2k": (False, True)}.get(case.routine, (case.kind in "sd", case.kind in "sd"))
    one = ctypes.c_float if case.kind in "sc" else ctypes.c_double
    def scalar(value, is_real):
        if is_cblas and is_real:
            return one(value)
        pair = (one * 2)(value.real, getattr(value, "imag", 0.0))
        return ctypes.byref(pair)
    size = (lambda value: integer(value)) if is_cblas else (lambda value: ctypes.byref(integer(value)))
    words = [ctypes.c_int(101 if case.row_major else 102)] if is_cblas else []
    words += [ctypes.c_int(ENUMS[role][letter]) if is_cblas else ctypes.c_char_p(case.chance_case(letter).encode()) for role, letter in case.letters]
    words += [size(case.sizes[name]) for name in ROUTINES[case.routine][1] if name in "mnk"]
    words.append(scalar(alpha, real[0]))
    last = len(memories) - 1
    for index, memory in enumerate(memories):
        if index == last and case.routine not in ("trmm", "trsm"):
            words.append(scalar(beta, real[1]))
        words += [ctypes.c_void_p(memory.ctypes.data), size(memory.shape[1])]
    if not is_cblas:
        words += [ctypes.c_size_t(1)] * len(case.letters)
    function.restype = None
    function(*words)

def check(seed, routine, kind):
    case = Case(seed, routine, kind)
    is_cblas = case.chance.random() < 0.5
    case.row_major = is_cblas and case.chance.random() < 0.5
    case.chance_case = lambda letter: letter.lower() if seed % 2 else letter
    name = f"cblas_{kind}{routine}" if is_cblas else f"{kind}{routine}_"
    integer = ctypes.c_int32
    made = list(case.operands())
    memories = [memory for memory, _ in made]
    real = {"herk": (True, True), "her2k": (False, True)}.get(routine, (False, False))
    alpha, beta = case.scalar(real[0]), case.scalar(real[1])
    if beta == 0 and routine not in ("trmm", "trsm"):
        made[-1][1][...] = numpy.nan  # C is not read
    address = blas.sg_blas_cpu_function(name.encode())
    by_cpu = [memory.copy() for memory in memories]
    before = [memory.copy() for memory in memories]
    call(case, ctypes.CFUNCTYPE(None)(address), is_cblas, integer, by_cpu, alpha, beta)
    call(case, getattr(blas, name), is_cblas, integer, memories, alpha, beta)
    for one, other in zip(memories[:-1], before[:-1]):
        assert one.tobytes() == other.tobytes(), "an operand that is read was written"
    got, wanted = memories[-1], by_cpu[-1]
    untouched = numpy.isnan(before[-1]) & numpy.isnan(wanted)
    assert (numpy.isnan(got) == numpy.isnan(wanted)).all(), "NaN elsewhere"
    if beta != 0 or routine in ("trmm", "trsm"):
        assert got[untouched].tobytes() == before[-1][untouched].tobytes(), "a gap or the other triangle was written"
    bound = (2e-4 if kind in "sc" else 1e-12) * (1 + case.sizes["k"] ** 0.5)
    there = ~numpy.isnan(wanted)
    assert numpy.allclose(got[there], wanted[there], rtol=bound, atol=bound), abs(got[there] - wanted[there]).max()

first, count, gemmt = int(sys.argv[1]), int(sys.argv[2]), ctypes.CDLL(sys.argv[3])
for seed in range(first, first + count):
    for routine, (kinds, _) in ROUTINES.items():
        for kind in kinds:
            try:
                check(seed, routine, kind)
            except AssertionError as error:
                case = Case(seed, routine, kind)
                sys.exit(f"{kind}{routine}, seed {seed}, {case.letters} {case.sizes}: {error}")
counts = {}
for row in report()["rows"]:
    for reason, number in row["calls"].items():
        counts.setdefault(row["routine"], {}).setdefault(reason, 0)
        counts[row["routine"]][reason] += number
print(json.dumps(counts))
"""


class Parts(Dropin):
    def test_random_calls(self):
        count = (1000 if os.environ.get("SG_SOAK") == "1" else 30) // (1 if DEVICE == "cpu" else 3)
        seed = int(time.time()) % 1_000_000 * 10_000
        # All calls on the device, or the larger ones; with a shorter type in GEMMs other routines of f32 are computed in parts.
        for minimum, compute in (("0", "exact"), ("24", "3xtf32")):
            with self.subTest(seed=seed, minimum=minimum):
                counts = self.numbers(seed, count, {"SG_DEVICE": DEVICE, "SG_BLAS_MIN": minimum, "SG_BLAS_COMPUTE": compute, "SG_BLAS_RESIDENCY": "verify" if minimum == "0" else "auto"})
                self.assertEqual(len(counts), 31)
                total = sum((collections.Counter(reasons) for reasons in counts.values()), collections.Counter())
                self.assertEqual(set(total) - {"device", "below the floor", "nothing to do"}, set())
                self.assertGreater(total["device"], 31 * count / 10 if minimum == "0" else 0, total)
                if minimum != "0":
                    self.assertGreater(total["below the floor"], 0)
                if minimum == "0" and count >= 30:
                    self.assertEqual([routine for routine, reasons in counts.items() if "device" not in reasons], [])

    def numbers(self, seed, count, variables):
        said = self.execute([PYTHON, "-c", PRELUDE + CODE, str(seed), str(count), FAKE_GEMMT], {"SG_BLAS_REPORT": "/dev/null"} | variables)
        return json.loads(said.stdout)


run()
