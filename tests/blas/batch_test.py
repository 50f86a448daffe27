#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gemm_batch and gemm_batch_strided beside NumPy's products: on the device, by the CPU BLAS's gemm where it has none of its own, and by its own.

usage: batch_test.py FOLDER-OF-THE-LIBRARIES FAKE-WIDE FAKE-NARROW
"""
import json
import sys
import textwrap
import time

from dropin import Dropin, run

FAKE_WIDE, FAKE_NARROW = sys.argv.pop(2), sys.argv.pop(2)
CODE = r"""
import random
TYPES = {"s": numpy.float32, "d": numpy.float64, "c": numpy.complex64, "z": numpy.complex128}
LETTERS = {"N": 111, "T": 112, "C": 113}
pointer = lambda array: ctypes.c_void_p(array.ctypes.data)
apply = {"N": lambda x: x, "T": lambda x: x.T, "C": lambda x: x.conj().T}

def stored(values, pad, row_major):
    "The memory of a matrix, gaps of NaN included"
    rows, cols = values.shape
    memory = numpy.full((rows, cols + pad) if row_major else (cols, rows + pad), numpy.nan, values.dtype)
    view = memory[:, :cols] if row_major else memory[:, :rows].T
    view[...] = values
    return memory, view

class Batch:
    "Groups of random GEMMs, their results by NumPy"
    def __init__(self, seed, kind, groups, row_major):
        self.chance, numbers = random.Random(seed), numpy.random.default_rng(seed)
        self.kind, self.row_major, self.groups = kind, row_major, []
        for _ in range(groups):
            m, n, k = (self.chance.randint(1, 40) for _ in range(3))
            ta, tb = self.chance.choice("NTC"), self.chance.choice("NTC")
            alpha, beta = self.chance.choice([1, -0.5]), self.chance.choice([0, 1, 0.25])
            if kind in "cz":
                alpha += 0.5j
            pads, items = [self.chance.choice([0, 3]) for _ in range(3)], []
            made = lambda rows, cols: (numbers.uniform(-1, 1, (rows, cols)) + (1j * numbers.uniform(-1, 1, (rows, cols)) if kind in "cz" else 0)).astype(TYPES[kind])
            for _ in range(self.chance.randint(1, 4)):
                a, b = (made(*(shape if op == "N" else shape[::-1])) for op, shape in ((ta, (m, k)), (tb, (k, n))))
                c = made(m, n) if beta else numpy.full((m, n), numpy.nan, TYPES[kind])
                wanted = alpha * numpy.einsum("ij,jk->ik", apply[ta](a), apply[tb](b)) + (beta * c if beta else 0)
                items.append([stored(x, pad, row_major) for x, pad in zip((a, b, c), pads)] + [wanted])
            self.groups.append((m, n, k, ta, tb, alpha, beta, items))

    def lds(self, which):
        return [group[7][0][which][0].shape[1] for group in self.groups]

    def call(self, is_cblas, integer):
        integers = lambda values: numpy.array(values, integer)
        of = lambda index: [group[index] for group in self.groups]
        letters = lambda index: numpy.array([LETTERS[each] for each in of(index)], numpy.int32) if is_cblas else numpy.frombuffer("".join(of(index)).encode(), numpy.uint8)
        addresses = lambda which: numpy.array([item[which][0].ctypes.data for group in self.groups for item in group[7]], numpy.uint64)
        scalars = lambda index: numpy.array(of(index), TYPES[self.kind])
        arrays = [letters(3), letters(4), integers(of(0)), integers(of(1)), integers(of(2)), scalars(5), addresses(0), integers(self.lds(0)), addresses(1), integers(self.lds(1)),
                  scalars(6), addresses(2), integers(self.lds(2))]
        sizes, count = integers([len(items) for items in of(7)]), integers([len(self.groups)])
        width = ctypes.c_int64 if integer is numpy.int64 else ctypes.c_int32
        form = ("cblas_%s" + ("64_" if integer is numpy.int64 else "")) if is_cblas else ("%s_" + ("64_" if integer is numpy.int64 else ""))
        function = getattr(blas, form % (self.kind + "gemm_batch"))
        function.restype = None
        words = [pointer(each) for each in arrays]
        if is_cblas:
            function(101 if self.row_major else 102, *words, width(len(self.groups)), pointer(sizes))
        else:
            function(*words, pointer(count), pointer(sizes), ctypes.c_size_t(1), ctypes.c_size_t(1))

    def call_strided(self, is_cblas):
        "The first group, with matrices one after the other"
        m, n, k, ta, tb, alpha, beta, items = self.groups[0]
        together = [numpy.stack([item[which][0] for item in items]) for which in range(3)]
        strides = [each[0].size for each in together]
        real = ctypes.c_float if self.kind in "sc" else ctypes.c_double
        held = [numpy.array([value], numpy.int32) for value in (m, n, k, *self.lds(0)[:1], strides[0], *self.lds(1)[:1], strides[1], *self.lds(2)[:1], strides[2], len(items))]
        number = [ctypes.c_int32(int(each[0])) for each in held] if is_cblas else [pointer(each) for each in held]
        kept = [numpy.array([value], TYPES[self.kind]) for value in (alpha, beta)]
        alpha, beta = [real(value) for value in (alpha, beta)] if is_cblas and self.kind in "sd" else [pointer(each) for each in kept]
        words = [alpha, pointer(together[0]), *number[3:5], pointer(together[1]), *number[5:7], beta, pointer(together[2]), *number[7:]]
        if is_cblas:
            function = getattr(blas, f"cblas_{self.kind}gemm_batch_strided")
            function.restype = None
            function(101 if self.row_major else 102, LETTERS[ta], LETTERS[tb], *number[:3], *words)
        else:
            function = getattr(blas, f"{self.kind}gemm_batch_strided_")
            function.restype = None
            function(ta.encode(), tb.encode(), *number[:3], *words, ctypes.c_size_t(1), ctypes.c_size_t(1))
        for item, result in zip(items, together[2]):
            item[2][0][...] = result

    def is_right(self, groups=None):
        bound = 1e-4 if self.kind in "sc" else 1e-12
        return all(numpy.allclose(c, wanted, rtol=bound, atol=bound) for *_, items in self.groups[:groups] for _, _, (_, c), wanted in items)
"""
RANDOM = CODE + r"""
wrong = []
for seed in range(FIRST, FIRST + 4):
    for kind in "sdcz":
        for is_cblas in (True, False):
            row_major = is_cblas and seed % 2 == 0
            batch = Batch(seed, kind, 1 + seed % 3, row_major)
            batch.call(is_cblas, numpy.int32)
            strided = Batch(seed + 1, kind, 1, row_major)
            strided.call_strided(is_cblas)
            wrong += [[seed, kind, is_cblas]] if not (batch.is_right() and strided.is_right()) else []
print(json.dumps([wrong, sorted({row["routine"] for row in report()["rows"]}), reasons()]))
"""


def with_batches(code):
    return CODE + textwrap.dedent(code)


class Batches(Dropin):
    def test_random_batches(self):
        seed = int(time.time()) % 1_000_000 * 100
        routines = sorted(kind + "gemm_batch" + end for kind in "sdcz" for end in ("", "_strided"))
        for device, minimum, reason in (("cpu", "0", "device"), ("sim:h200", "0", "device"), ("cpu", "1000", "below the floor")):
            with self.subTest(seed=seed, device=device, minimum=minimum):
                found = self.json_of(RANDOM.replace("FIRST", str(seed)), {"SG_DEVICE": device, "SG_BLAS_MIN": minimum})
                self.assertEqual(found, [[], routines, {reason: 64}])

    def test_one_batch_is_planned_as_one_operation(self):
        found = self.json_of(with_batches("""
            n, count = 64, 1000
            a, b = numpy.random.rand(count, n, n), numpy.random.rand(n, n)
            c, zero = numpy.zeros((count, n, n)), ctypes.c_double(0)
            blas.cblas_dgemm_batch_strided.restype = None
            blas.cblas_dgemm_batch_strided(101, 111, 111, n, n, n, ctypes.c_double(1), pointer(a), n, n * n, pointer(b), n, 0, zero, pointer(c), n, n * n, count)
            print(json.dumps([reasons(), report()["rows"][0]["predicted_device_seconds"] > 0, bool(numpy.allclose(c, numpy.einsum("tij,jk->tik", a, b)))]))
            """), {"SG_DEVICE": "sim:h200", "SG_BLAS_MIN": "auto", "OPENBLAS_NUM_THREADS": "1"})
        self.assertEqual(found, [{"device": 1}, True, True])

    def test_what_is_not_valid_computes_nothing(self):
        # The second group of two; its gemm names the argument.
        for is_cblas in (True, False):
            said = self.child(with_batches(f"""
                batch = Batch(1, "d", 2, False)
                before = [item[2][0].copy() for group in batch.groups for item in group[7]]
                group = batch.groups[1]
                batch.groups[1] = (group[0], -1) + group[2:]
                try:  # NumPy's xerbla raises an exception
                    batch.call({is_cblas}, numpy.int32)
                except SystemError as error:
                    print(error.__cause__)
                after = [item[2][0] for group in batch.groups for item in group[7]]
                print(all(one.tobytes() == other.tobytes() for one, other in zip(before, after)), reasons())
                """), {"SG_BLAS_REPORT": "/dev/null"})
            self.assertIn("True {'invalid argument': 1}", said.stdout)
            self.assertRegex(said.stdout, "DGEMM *parameter number 4")

    def test_wide_integers(self):
        # The CPU BLAS, which is not called, is one with narrow ones.
        found = self.json_of(with_batches("""
            right = []
            for name, plain in (("cblas_dgemm64_", "cblas_dgemm"), ("dgemm_64_", "dgemm_")):
                assert blas.sg_blas_set_cpu_function(name.encode(), blas.sg_blas_cpu_function(plain.encode())) == 0
            for is_cblas in (True, False):
                batch = Batch(7, "d", 3, False)
                batch.call(is_cblas, numpy.int64)
                right.append(batch.is_right())
            print(json.dumps([right, reasons()]))
            """))
        self.assertEqual(found, [[True, True], {"device": 2}])

    def test_a_failed_batch_is_the_cpus(self):
        found = self.json_of(with_batches("""
            batch = Batch(8, "d", 3, False)
            batch.call(True, numpy.int32)
            print(json.dumps([batch.is_right(), reasons()]))
            """), {"SG_DEVICE": "sim:h200?fail-copy=1"})
        self.assertEqual(found, [True, {"device failed": 1}])

    def test_empty_groups(self):
        found = self.json_of(with_batches("""
            batch = Batch(2, "d", 2, False)
            m, n, k, ta, tb, alpha, beta, items = batch.groups[0]
            batch.groups[0] = (0, n, k, ta, tb, alpha, beta, items)
            for item in items: item[3][...] = 0; item[2][1][...] = 0
            batch.call(True, numpy.int32)
            none = Batch(3, "d", 1, False)
            none.groups = []
            none.call(True, numpy.int32)
            print(json.dumps([batch.is_right(), reasons()]))
            """))
        self.assertEqual(found, [True, {"device": 1}])

    def test_the_cpus_own_functions(self):
        # Below the minimum: what the CPU BLAS has is called with all that was passed, and integers of an unknown width are not read.
        narrow = self.json_of(with_batches("""
            batch = Batch(5, "d", 2, False)
            batch.call(True, numpy.int32)
            m, *_, items = batch.groups[1]
            alpha = batch.groups[1][5]
            print(json.dumps(float(batch.groups[0][7][0][2][0].flat[0]) == 102 + 1000 * m + 1e6 * len(items) + alpha))
            """), {"SG_BLAS_CPU": FAKE_NARROW, "SG_BLAS_MIN": "1000"})
        self.assertTrue(narrow)
        wide = self.json_of(with_batches("""
            c, large, x = numpy.zeros(4), 2**40 + 5, numpy.zeros(1)
            number, one = ctypes.c_int64, ctypes.c_double
            blas.cblas_dgemm_batch_strided.restype = None
            blas.cblas_dgemm_batch_strided(102, 111, 111, number(1), number(1), number(1), one(2.5), pointer(x), number(1), number(7), pointer(x), number(1), number(large), one(0.5),
                                           pointer(c), number(1), number(-large), number(2))
            print(json.dumps([list(c), reasons()]))
            """), {"SG_BLAS_CPU": FAKE_WIDE})
        self.assertEqual(wide, [[2**40 + 5, -2**40 - 5, 2.5, 0.5], {}])


run()
