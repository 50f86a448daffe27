#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operands that stay on the device between calls: a copy is used only while its operand is unchanged, by whatever route memory is written.

usage: residency_test.py FOLDER-OF-THE-LIBRARIES DEVICE FAKE-DRIVER FAILING-MALLOC
"""
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

from dropin import PLAIN, PRELOAD, PRELUDE, PYTHON, Dropin, run

DEVICE, FAKE_DRIVER, FAILING_MALLOC = sys.argv.pop(2), os.path.abspath(sys.argv.pop(2)), os.path.abspath(sys.argv.pop(2))
# 600 columns of 800 doubles: chunks of 40 columns.
CODE = """
import mmap, random, signal, socket, tempfile, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.syscall.argtypes = [ctypes.c_long] + [ctypes.c_void_p] * 6
blas.sg_blas_forget.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
ROWS, COLUMNS, BYTES = 800, 600, 800 * 600 * 8
def in_memory(buffer):
    "A matrix of ROWS x COLUMNS in a buffer"
    return numpy.frombuffer(buffer, dtype=float, count=ROWS * COLUMNS).reshape((ROWS, COLUMNS), order="F")
def anonymous():
    return in_memory(mmap.mmap(-1, BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
# In shared memory, whose writes are never watched.
factor = numpy.frombuffer(mmap.mmap(-1, COLUMNS * 40 * 8), dtype=float).reshape((COLUMNS, 40), order="F")
factor[...] = numpy.random.default_rng(5).standard_normal((COLUMNS, 40))
def is_right(a, times=1):
    "Whether GEMMs with A are right"
    for _ in range(times):
        c = numpy.full((ROWS, 40), numpy.nan, order="F")
        gemm("cblas_dgemm", a, factor, c)
        if not numpy.allclose(c, numpy.einsum("ij,jk->ik", a, factor), rtol=1e-11, atol=1e-11):
            return False
    return True
def counts():
    return report()["residency"]
def new_values(seed):
    return numpy.random.default_rng(seed).standard_normal((ROWS, COLUMNS))
"""

# Of each route: a matrix, and a function that writes other values into it, or into a part of it, without this program's stores if it can.
ROUTES = {
    "store": """
a = anonymous()
def write(values): a[...] = values
""",
    "one byte": """
a = anonymous()
a[...] = new_values(0)
def write(values):
    bytes_of = a.T.reshape(-1).view(numpy.uint8)
    bytes_of[len(bytes_of) // 3 * 2 + 6] ^= 1
""",
    "another thread": """
a = anonymous()
def write(values):
    thread = threading.Thread(target=lambda: a.__setitem__(Ellipsis, values))
    thread.start()
    thread.join()
""",
    "read(2)": """
a = anonymous()
def write(values):
    with tempfile.TemporaryFile() as file:
        file.write(values.tobytes(order="F"))
        file.seek(0)
        os.readv(file.fileno(), [a.T])
""",
    "recv(2)": """
a = anonymous()
def write(values):
    one, other = socket.socketpair()
    sender = threading.Thread(target=lambda: one.sendall(values.tobytes(order="F")[:100000]))
    sender.start()
    view = memoryview(a.T.reshape(-1)).cast("B")
    done = 0
    while done < 100000: done += other.recv_into(view[done:100000])
    sender.join()
""",
    "a mapped file that is written": """
file = tempfile.NamedTemporaryFile()
file.truncate(BYTES)
a = in_memory(mmap.mmap(file.fileno(), BYTES, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ))
def write(values): os.pwrite(file.fileno(), values.tobytes(order="F"), 0)
""",
    "the file of a numpy.memmap": """
file = tempfile.NamedTemporaryFile()
file.truncate(BYTES)
a = numpy.memmap(file.name, dtype=float, mode="r", shape=(ROWS, COLUMNS), order="F")
def write(values): os.pwrite(file.fileno(), values.tobytes(order="F")[:40000], 800000)
""",
    "memory that is mapped twice": """
file = os.memfd_create("twice")
os.ftruncate(file, BYTES)
a, other = in_memory(mmap.mmap(file, BYTES, prot=mmap.PROT_READ)), in_memory(mmap.mmap(file, BYTES))
def write(values): other[...] = values
""",
    "shared memory, by another process": """
a = in_memory(mmap.mmap(-1, BYTES))
def write(values):
    child = os.fork()
    if child == 0:
        a[...] = values
        os._exit(0)
    os.waitpid(child, 0)
""",
    "process_vm_writev of another process": """
a = anonymous()
class span(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
def write(values):
    other, parent = numpy.asfortranarray(values), os.getpid()
    libc.prctl(0x59616d61, ctypes.c_ulong(-1 & 0xffffffffffffffff), 0, 0, 0)
    child = os.fork()
    if child == 0:
        done = libc.process_vm_writev(parent, ctypes.byref(span(other.ctypes.data, BYTES)), ctypes.c_ulong(1), ctypes.byref(span(a.ctypes.data, BYTES)), ctypes.c_ulong(1), ctypes.c_ulong(0))
        os._exit(0 if done > 0 else 1)
    assert os.waitpid(child, 0)[1] == 0, "skipped"
""",
    "/proc/self/mem": """
a = anonymous()
def write(values):
    file = os.open("/proc/self/mem", os.O_RDWR)
    os.pwrite(file, values.tobytes(order="F"), a.ctypes.data)
    os.close(file)
""",
    "another mapping in its place": """
a = anonymous()
def write(values):
    if a[0, 0] == 0:
        a[...] = values
    else:
        assert libc.mmap(a.ctypes.data, BYTES, 1 | 2, 2 | 16 | 32, -1, 0) == a.ctypes.data
        a[1, 1] = values[0, 0]
""",
    "a mapped file in its place": """
a = anonymous()
def write(values):
    file = os.memfd_create("other")
    os.write(file, values.tobytes(order="F"))
    assert libc.mmap(a.ctypes.data, BYTES, 1 | 2, 2 | 16, file, 0) == a.ctypes.data
""",
    "another mapping in the place of a part": """
a = anonymous()
def write(values):
    if a[0, 64] == 0: a[...] = values
    else: assert libc.mmap(a.ctypes.data + 4096 * 100, 4096 * 3, 1 | 2, 2 | 16 | 32, -1, 0) == a.ctypes.data + 4096 * 100
""",
    "MADV_DONTNEED": """
a = anonymous()
def write(values):
    if a[0, 0] == 0: a[...] = values
    else: assert libc.madvise(a.ctypes.data, BYTES, 4) == 0
""",
    "io_uring, with registered memory": """
a = anonymous()
parameters = ctypes.create_string_buffer(120)
ring = libc.syscall(425, 4, ctypes.cast(parameters, ctypes.c_void_p), None, None, None, None)
assert ring >= 0, "skipped"
numbers = numpy.frombuffer(parameters, dtype=numpy.uint32)
class span(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
assert libc.syscall(427, ring, 0, ctypes.cast(ctypes.pointer(span(a.ctypes.data, BYTES)), ctypes.c_void_p), 1, None, None) == 0, "skipped"
def write(values):
    with tempfile.TemporaryFile() as file:
        file.write(values.tobytes(order="F"))
        file.flush()
        queue = mmap.mmap(ring, 4096 * 4, offset=0)
        entries = mmap.mmap(ring, 4096, offset=0x10000000)
        words = numpy.frombuffer(queue, dtype=numpy.uint32)
        tail, mask, array = (int(numbers[i]) // 4 for i in (11, 12, 16))
        entry = numpy.frombuffer(entries, dtype=numpy.uint8)
        entry[:64] = 0
        entry[0] = 4  # IORING_OP_READ_FIXED
        entry[4:8].view(numpy.int32)[0] = file.fileno()
        entry[16:24].view(numpy.uint64)[0] = a.ctypes.data
        entry[24:28].view(numpy.uint32)[0] = BYTES
        at = int(words[tail])
        words[array + (at & int(words[mask]))] = 0
        words[tail] = at + 1
        assert libc.syscall(426, ring, 1, 1, 1, None, None) == 1
""",
}
# Those of memory that the kernel does not watch, or only as long as it is not pinned: it is compared.
UNWATCHED = {"a mapped file that is written", "a mapped file in its place", "the file of a numpy.memmap", "memory that is mapped twice", "shared memory, by another process", "io_uring, with registered memory"}
CANNOT_TRACK = "SG_BLAS_RESIDENCY=track: the kernel has no asynchronous write protection"


class Residency(Dropin):
    def found(self, code, variables=()):
        settings = {"SG_DEVICE": DEVICE, "SG_BLAS_RESIDENCY": "hash"}
        return self.json_of(CODE + code, settings | dict(variables))

    def test_an_unchanged_operand_is_copied_once(self):
        found = self.found("""
a = anonymous()
a[...] = new_values(1)
seen = []
for use in range(5):
    right = is_right(a)
    rows = report()["rows"]
    seen.append([right, counts()["copies"], counts()["hits"], counts()["bytes_avoided"], rows[0]["bytes_in"]])
print(json.dumps(seen))
""")
        both = 800 * 600 * 8 + 600 * 40 * 8
        self.assertEqual([use[:4] for use in found], [[True, 0, 0, 0], [True, 2, 0, 0], [True, 2, 2, both], [True, 2, 4, 2 * both], [True, 2, 6, 3 * both]])
        self.assertEqual([use[4] for use in found[1:]], [found[1][4]] * 4)

    def test_off_keeps_nothing(self):
        found = self.found("a = anonymous()\nprint(json.dumps([is_right(a, 4), counts()]))", {"SG_BLAS_RESIDENCY": "off"})
        self.assertTrue(found[0])
        self.assertEqual((found[1]["mode"], found[1]["copies"], found[1]["bytes_kept"]), ("off", 0, 0))

    def test_small_changes_copy_what_changed(self):
        found = self.found("""
a = anonymous()
a[...] = new_values(1)
assert is_right(a, 3)
before = report()["rows"][0]["bytes_in"]
a[5, 100] += 1
right = is_right(a)
after = report()["rows"][0]["bytes_in"]
again = is_right(a, 2)
print(json.dumps([right, again, after - before, report()["rows"][0]["bytes_in"] - after, counts()]))
""")
        self.assertEqual(found[:4], [True, True, 800 * 40 * 8, 0])
        self.assertEqual(found[4]["changes"], 1)

    def route(self, route, mode):
        return self.found(f"try:\n{textwrap.indent(ROUTES[route], '    ')}\n    write(new_values(1))\n" + """
    right = is_right(a, 4)
    hits = counts()["hits"]
    kept = a.copy()
    write(new_values(2))
    changed = not numpy.array_equal(kept, a)
    right = right and is_right(a, 3)
    for seed in (3, 4): # the back-off ends in the meantime
        write(new_values(seed))
        right = right and is_right(a, 8)
    print(json.dumps([right, changed, hits, counts()]))
except AssertionError as error:
    if str(error) != "skipped": raise
    print("null")
""", {"SG_BLAS_RESIDENCY": mode})

    def test_routes_of_writing(self):
        some = ROUTES if DEVICE == "cpu" else {route: ROUTES[route] for route in ("one byte", "memory that is mapped twice")}
        for route in some:
            with self.subTest(route):
                found = self.route(route, "verify")
                if found is None:
                    self.skipTest(f"this system has no {route}")
                self.assertTrue(found[0], "stale")
                self.assertTrue(found[1], "the route wrote nothing")
                self.assertEqual(found[2], 4)
                self.assertGreater(found[3]["hits"], 8)
                self.assertGreater(found[3]["bytes_verified"], 0)

    def test_routes_of_writing_to_watched_memory(self):
        self.tracked("is_right(anonymous())\nprint(1)")
        for route in ROUTES:
            with self.subTest(route):
                found = self.route(route, "track")
                if found is None:
                    self.skipTest(f"this system has no {route}")
                self.assertTrue(found[0], "stale")
                self.assertTrue(found[1], "the route wrote nothing")
                self.assertGreater(found[3]["hits"], 8)
                if route in UNWATCHED:
                    self.assertEqual(found[3]["guards"], 0)
                else:
                    self.assertGreater(found[3]["guards"], 0)
                    self.assertGreater(found[3]["unwritten"], 2)

    def tracked(self, code, variables=(), **options):
        settings = {"SG_BLAS_RESIDENCY": "track", "SG_BLAS_REPORT": "/dev/null", "SG_DEVICE": DEVICE}
        said = self.child(CODE + code, settings | dict(variables), **options)
        if CANNOT_TRACK in said.stderr and "PLANTED_DEFECT" not in os.environ:
            self.skipTest("this kernel has no asynchronous write protection")
        self.assertNotIn(CANNOT_TRACK, said.stderr)
        return json.loads(said.stdout), said.stderr

    def test_watched_operands_that_share_pages(self):
        """The use of one finds the writes to both, and protects their pages again: the other must not look unwritten."""
        found, _ = self.tracked("""
a = anonymous()
a[...] = new_values(1)
blas.cblas_dgemm.restype = None
def part(columns):
    c = numpy.zeros((ROWS, 8), order="F")
    blas.cblas_dgemm(102, 111, 111, ROWS, 8, columns, ctypes.c_double(1), ctypes.c_void_p(a.ctypes.data), ROWS, ctypes.c_void_p(factor.ctypes.data), COLUMNS, ctypes.c_double(0),
                     ctypes.c_void_p(c.ctypes.data), ROWS)
    return bool(numpy.allclose(c, numpy.einsum("ij,jk->ik", a[:, :columns], factor[:columns, :8])))
right = []
for value in range(6):
    for use in range(4):
        right += [part(COLUMNS), part(400)]
    a[7, 30 * value] = value
print(json.dumps([all(right), counts()]))
""")
        self.assertTrue(found[0])
        self.assertGreater(found[1]["guards"], 1)
        self.assertGreater(found[1]["unwritten"], 10)

    def test_memory_that_is_replaced(self):
        """By a mapping that nothing watches, or that another operand's guard has watched: it must not look unwritten."""
        found, _ = self.tracked("""
place = libc.mmap(None, 2 * BYTES, 1 | 2, 2 | 32, -1, 0)
both = numpy.frombuffer((ctypes.c_char * (2 * BYTES)).from_address(place), dtype=float)
a = both[: ROWS * COLUMNS].reshape((ROWS, COLUMNS), order="F")
other = both[ROWS * COLUMNS :].reshape((ROWS, COLUMNS), order="F")
a[...], other[...] = new_values(1), new_values(2)
right = [is_right(a, 5)]
assert libc.mmap(place, 2 * BYTES, 1 | 2, 2 | 16 | 32, -1, 0) == place
right += [is_right(a, 5)]
a[...] = new_values(4)
right += [is_right(a, 5)]
assert libc.mmap(place, 2 * BYTES, 1 | 2, 2 | 16 | 32, -1, 0) == place
other[...] = new_values(3)
right += [is_right(other, 5), is_right(a, 2)]
print(json.dumps([right, counts()]))
""")
        self.assertEqual(found[0], [True] * 5)
        self.assertGreaterEqual(found[1]["guards"], 2)

    def test_pinned_memory_is_not_watched(self):
        found, _ = self.tracked(ROUTES["io_uring, with registered memory"].replace('assert ring >= 0, "skipped"', "") + """
a[...] = new_values(1)
right = is_right(a, 4)
before = counts()["guards"]
libc.syscall(427, ring, 1, None, 0, None, None) # no longer registered
right = right and is_right(a, 3)
print(json.dumps([right, before, counts()["guards"]]))
""")
        self.assertEqual(found, [True, 0, 1])

    def test_open_devices_are_a_gate(self):
        probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
        if probe.returncode != 0:
            self.skipTest("no namespaces here")
        for name, guards in (("xpmem", 0), ("other", 1)):
            code = f"device = os.open('/dev/{name}', os.O_RDONLY)\n" + "a = anonymous()\na[...] = 1\nright = is_right(a, 6)\nprint(json.dumps([right, counts()['guards']]))"
            script = f"mount -t tmpfs none /dev && touch /dev/{name} /dev/null && chmod 666 /dev/null && exec \"$@\""
            settings = {"SG_BLAS_RESIDENCY": "track", "SG_BLAS_REPORT": "/dev/null", "SG_DEVICE": DEVICE}
            said = self.execute(["unshare", "-rm", "/bin/sh", "-c", script, "sh", PYTHON, "-c", PRELUDE + CODE + code], settings)
            self.assertEqual(json.loads(said.stdout), [True, guards if CANNOT_TRACK not in said.stderr else 0])

    def test_gpus_that_write_pageable_memory_are_a_gate(self):
        found, said = self.tracked(f"""
driver = ctypes.CDLL({str(FAKE_DRIVER)!r})
a = anonymous()
a[...] = 1
print(json.dumps([is_right(a, 6), counts()["guards"], counts()["hits"]]))
""")
        self.assertEqual(found, [True, 0, 8])
        self.assertIn("SG_BLAS_RESIDENCY=track: a GPU can write the process's pageable memory (HMM); contents are compared", said)

    def test_closed_descriptors(self):
        found, _ = self.tracked("""
a = anonymous()
a[...] = new_values(1)
first = is_right(a, 5)
os.closerange(3, 100)
a[3, 3] = 5
print(json.dumps([first, is_right(a, 4)]))
""")
        self.assertEqual(found, [True, True])

    def test_forks_beside_watched_memory(self):
        found, _ = self.tracked("""
a = anonymous()
a[...] = new_values(1)
right = [is_right(a, 5)]
for value in range(3):
    child = os.fork()
    if child == 0:
        a[...] = 9
        os._exit(0 if is_right(a, 3) else 1)
    if value == 1: a[5, 5] = value # beside the child, too
    right.append(os.waitpid(child, 0)[1] == 0)
    right.append(is_right(a, 2))
    a[7, 7] = value
    right.append(is_right(a, 2))
print(json.dumps([all(right), counts()]))
""")
        self.assertTrue(found[0])
        self.assertGreater(found[1]["unwritten"], 3)

    def test_operands_that_always_change_are_not_kept(self):
        found = self.found("""
a = anonymous()
right = []
for use in range(30):
    a[...] = new_values(use)
    right.append(is_right(a))
all_new = counts()
# Changes of most chunks that a sample of 16 columns does not find.
hidden = anonymous()
for use in range(60):
    hidden[3, [column for column in range(COLUMNS) if column not in [COLUMNS * i // 16 for i in range(16)]]] = use
    right.append(is_right(hidden))
print(json.dumps([all(right), all_new, counts()]))
""")
        self.assertTrue(found[0])
        self.assertEqual(found[1]["copies"], 1)  # of the other factor
        self.assertLess(found[2]["copies"], 1 + 8)
        self.assertGreater(found[2]["copies"], 3)

    def test_gaps_between_columns_are_not_read(self):
        found = self.found("""
page, columns = 4096, 64
memory = libc.mmap(None, 2 * page * columns, 1 | 2, 2 | 32, -1, 0)
for column in range(columns):
    assert libc.mprotect(memory + (2 * column + 1) * page, page, 0) == 0
stored = numpy.frombuffer((ctypes.c_char * (2 * page * columns)).from_address(memory), dtype=float).reshape((2 * page // 8, columns), order="F")
a = stored[: page // 8]
factor = numpy.asfortranarray(numpy.random.default_rng(1).standard_normal((columns, 9)))
right = []
def use():
    c = numpy.zeros((page // 8, 9), order="F")
    blas.cblas_dgemm.restype = None
    blas.cblas_dgemm(102, 111, 111, page // 8, 9, columns, ctypes.c_double(1), ctypes.c_void_p(memory), 2 * page // 8, ctypes.c_void_p(factor.ctypes.data), columns, ctypes.c_double(0),
                     ctypes.c_void_p(c.ctypes.data), page // 8)
    right.append(bool(numpy.allclose(c, sum(numpy.outer(a[:, i], factor[i]) for i in range(columns)))))
for value in (1, 2):
    for column in range(columns): a[:, column] = value * column + numpy.arange(page // 8)
    for _ in range(4): use()
print(json.dumps([all(right), counts()]))
""")
        self.assertTrue(found[0])
        self.assertGreaterEqual(found[1]["hits"], 8)

    def test_little_memory(self):
        found = self.found("""
matrices = [anonymous() for _ in range(8)]
for i, each in enumerate(matrices): each[...] = new_values(i)
cyclic = all(is_right(each) for _ in range(5) for each in matrices)
first = counts()
others = [anonymous() for _ in range(3)]
for i, each in enumerate(others): each[...] = new_values(i + 50)
print(json.dumps([cyclic, first, all(is_right(each, 4) for each in others), counts()]))
""", {"SG_BLAS_MEMORY": "25MiB"})
        self.assertTrue(found[0] and found[2])
        for seen in (found[1], found[3]):
            self.assertLessEqual(seen["bytes_kept"], seen["bytes_limit"])
        # Operands in turn that do not fit together: some stay. Later ones displace those that are not used any more.
        self.assertEqual(found[1]["evictions"], 0)
        self.assertGreater(found[1]["hits"], 6)
        self.assertGreater(found[3]["evictions"], 0)

    def test_many_operands(self):
        found = self.found("""
a = numpy.asfortranarray(numpy.random.default_rng(1).standard_normal((100, 600)))
right = []
for round in range(3):
    for first in range(600):
        part, other = a[:, : first + 1], factor[: first + 1]
        c = numpy.zeros((100, 40), order="F")
        blas.cblas_dgemm.restype = None
        blas.cblas_dgemm(102, 111, 111, 100, 40, first + 1, ctypes.c_double(1), ctypes.c_void_p(a.ctypes.data), 100, ctypes.c_void_p(factor.ctypes.data), 600, ctypes.c_double(0),
                         ctypes.c_void_p(c.ctypes.data), 100)
        right.append(bool(numpy.allclose(c, a[:, : first + 1].dot(factor[: first + 1]))))
print(json.dumps(all(right)))
""")
        self.assertTrue(found)

    def test_operands_of_one_matrix(self):
        """A x A, and A, B and C of one array whose columns alternate, or that overlap."""
        found = self.found("""
blas.cblas_dgemm.restype = None
def call(m, n, k, a, lda, b, ldb, c, ldc):
    blas.cblas_dgemm(102, 111, 111, m, n, k, ctypes.c_double(1), ctypes.c_void_p(a), lda, ctypes.c_void_p(b), ldb, ctypes.c_double(0), ctypes.c_void_p(c), ldc)
right = []
whole = numpy.asfortranarray(numpy.random.default_rng(2).standard_normal((300, 300)))
square = whole[:150, :150]
at = lambda row, column: whole.ctypes.data + 8 * (row + 300 * column)
for use in range(5):
    if use == 3: whole[...] += 1
    c = numpy.zeros((150, 150), order="F")
    call(150, 150, 150, at(0, 0), 300, at(0, 0), 300, c.ctypes.data, 150)
    right.append(bool(numpy.allclose(c, numpy.einsum("ij,jk->ik", square, square))))
for use in range(5): # C beside A, in the same columns
    wanted = numpy.einsum("ij,jk->ik", whole[:100, :100], whole[:100, 200:])
    call(100, 100, 100, at(0, 0), 300, at(0, 200), 300, at(100, 0), 300)
    right.append(bool(numpy.allclose(whole[100:200, :100], wanted)))
for use in range(3): # C is A: only the CPU BLAS accepts this
    shared, other = square.copy(order="F"), square.copy(order="F")
    for again in range(3): call(150, 150, 150, shared.ctypes.data, 150, other.ctypes.data, 150, shared.ctypes.data, 150)
print(json.dumps([right, reasons()]))
""")
        self.assertEqual(found[0], [True] * 10)
        self.assertEqual(found[1]["device"], 10)
        self.assertEqual(found[1]["device failed"], 9)

    def test_a_copy_of_a_triangle_is_none_of_the_whole(self):
        """While a routine reads a triangle the program may write the other one, which a copy made meanwhile holds by chance."""
        found = self.found("""
N, RIGHT = 600, 40
a = numpy.frombuffer(mmap.mmap(-1, N * N * 8), dtype=float).reshape((N, N), order="F")
a[...] = numpy.random.default_rng(3).standard_normal((N, N)) / N + 2 * numpy.eye(N)
blas.cblas_dtrsm.argtypes = [ctypes.c_int] * 7 + [ctypes.c_double, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
b = factor[:, :RIGHT]
right, seen = [], []
for use, triangle in enumerate([122, 122, 122, 122, 121, 121, 121, 121]):  # lower, upper
    x = numpy.array(b, order="F")
    blas.cblas_dtrsm(102, 141, triangle, 111, 131, N, RIGHT, 1, a.ctypes.data, N, x.ctypes.data, N)
    used = numpy.tril(a) if triangle == 122 else numpy.triu(a)
    right.append(bool(numpy.allclose(numpy.einsum("ij,jk->ik", used, x), b, rtol=1e-11, atol=1e-11)))
    if use % 4 == 3:
        seen.append(counts()["copies"])
for _ in range(4):
    c = numpy.full((N, RIGHT), numpy.nan, order="F")
    gemm("cblas_dgemm", a, factor, c)
    right.append(bool(numpy.allclose(c, numpy.einsum("ij,jk->ik", a, factor), rtol=1e-11, atol=1e-11)))
print(json.dumps([all(right), seen, counts()["copies"], counts()["hits"]]))
""", {"SG_BLAS_RESIDENCY": "hash"})
        self.assertTrue(found[0])
        self.assertEqual((found[1], found[2]), ([1, 2], 2 + 2))  # of each triangle, of the whole and of the factor
        self.assertGreaterEqual(found[3], 6)

    def test_forgetting(self):
        found = self.found("""
a, other = anonymous(), anonymous()
assert is_right(a, 3) and is_right(other, 3)
before = counts()["bytes_kept"]
blas.sg_blas_forget(None, 0)
blas.sg_blas_forget(a.ctypes.data + BYTES - 1, 1)
blas.sg_blas_forget(a.ctypes.data + BYTES, 0)
after = counts()["bytes_kept"]
print(json.dumps([before - after, is_right(a, 4), counts()["bytes_kept"] - before]))
""")
        self.assertGreaterEqual(found[0], 800 * 600 * 8)
        self.assertLess(found[0], 2 * 800 * 600 * 8)
        self.assertEqual(found[1:], [True, 0])

    def test_threads(self):
        """Threads that use one operand at the same time, and others of their own; all change between the rounds."""
        found = self.found("""
shared = anonymous()
own = [anonymous() for _ in range(4)]
right = []
def work(number):
    for _ in range(4):
        right.append(is_right(shared))
        right.append(is_right(own[number]))
for round in range(5):
    shared[:, : 50 + 100 * round] = round
    for each in own: each[...] = new_values(round)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print(json.dumps([all(right), len(right), counts()]))
""")
        self.assertEqual(found[:2], [True, 160])
        self.assertGreater(found[2]["hits"], 40)

    def test_a_child_of_fork(self):
        found = self.found("""
a = anonymous()
a[...] = new_values(1)
first = is_right(a, 3)
child = os.fork()
if child == 0:
    right = is_right(a, 2)
    a[...] = new_values(2)
    os._exit(0 if right and is_right(a, 3) and counts()["hits"] == 0 and counts()["mode"] == "hash" else 1)
status = os.waitpid(child, 0)[1]
a[3, 3] = 9
print(json.dumps([first, status, is_right(a, 3), counts()["hits"]]))
""")
        self.assertEqual(found[:3], [True, 0, True])
        self.assertGreaterEqual(found[3], 6)

    def test_random_uses(self):
        """Random operands of a few matrices, and random writes between the calls, beside products of their own."""
        steps = 20000 if os.environ.get("SG_SOAK") == "1" else 250
        seed = int(time.time())
        for mode in ("hash", "track"):
            with self.subTest(seed=seed, mode=mode):
                code = f"chance, steps = random.Random({seed}), {steps}\n" + """
matrices = [anonymous() for _ in range(3)]
blas.cblas_dgemm.restype = None
wrong = 0
for step in range(steps):
    a = chance.choice(matrices)
    for _ in range(chance.choice([0, 0, 1, 3])):
        row, column = chance.randrange(ROWS), chance.randrange(COLUMNS)
        kind = chance.randrange(4)
        if kind == 0: a[row, column] = chance.random()
        elif kind == 1: a[row, :] = chance.random()
        elif kind == 2: a[:, column:] = chance.random()
        else: a[...] = chance.random()
        a[chance.randrange(ROWS), :] += numpy.arange(COLUMNS)
    m, k = chance.choice([ROWS, 100, 650]), chance.choice([COLUMNS, 30, 333])
    row, column = chance.choice([0, ROWS - m]), chance.choice([0, COLUMNS - k])
    part = a[row : row + m, column : column + k]
    c = numpy.zeros((m, 8), order="F")
    blas.cblas_dgemm(102, 111, 111, m, 8, k, ctypes.c_double(1), ctypes.c_void_p(part.ctypes.data), ROWS, ctypes.c_void_p(factor.ctypes.data), COLUMNS, ctypes.c_double(0),
                     ctypes.c_void_p(c.ctypes.data), m)
    wanted = numpy.einsum("ij,jk->ik", part, factor[:k, :8])
    wrong += not numpy.allclose(c, wanted, rtol=1e-9, atol=1e-9 * abs(wanted).max())
print(json.dumps([wrong, counts()]))
"""
                found = self.found(code, {"SG_BLAS_MEMORY": "40MiB", "SG_BLAS_RESIDENCY": mode})
                self.assertEqual(found[0], 0)
                self.assertGreater(found[1]["hits"], 0)
                if steps > 1000:  # a short draw may have few
                    self.assertGreater(found[1]["hits"], steps // 8)
                    self.assertGreater(found[1]["changes"], steps // 100)

    def test_the_model_knows_what_is_resident(self):
        found = self.found("""
a, b, c = operands(32, 2400, 6000)
predicted, before = [], 0
for use in range(3):  # later ones count the time of comparing, as measured
    gemm("cblas_dgemm", a, b, c)
    now = report()["rows"][0]["predicted_device_seconds"]
    predicted.append(now - before)
    before = now
print(json.dumps([predicted, reasons(), counts()["hits"]]))
""", {"SG_BLAS_MIN": "auto", "SG_DEVICE": "sim:h200", "OPENBLAS_NUM_THREADS": "1"})
        self.assertEqual(found[1:], [{"device": 3}, 2])
        self.assertAlmostEqual(found[0][0], found[0][1], 7)  # from host memory
        self.assertGreater(found[0][2], 0)  # both on the device
        self.assertLess(found[0][2], found[0][0] / 4)

    def test_copies_that_gain_nothing(self):
        """A large C hides the transfer of A and B, not their comparison."""
        code = """
a, b, c = operands(2500, 2500, 60)
for use in range(12):
    gemm("cblas_dgemm", a, b, c)
found = [reasons(), counts()]
print(json.dumps([numpy.allclose(c, a @ b), *found]))
"""
        settings = {"SG_BLAS_RESIDENCY": "auto", "SG_BLAS_MIN": "auto", "SG_DEVICE": "sim:h200", "OPENBLAS_NUM_THREADS": "1"}
        right, reasons, counts = self.found(code, settings)
        self.assertTrue(right)
        self.assertEqual(reasons, {"device": 12})
        self.assertEqual((counts["hits"], counts["host_reads"]), (4, 8))  # two uses with both copies, as many comparisons as a verdict takes
        self.assertEqual(self.found(code, settings | {"SG_BLAS_RESIDENCY": "hash"})[2]["hits"], 20)

    def test_failing_allocations(self):
        """Each allocation of the library itself fails in turn, and every second one: the results are right."""
        for mode in ("hash", "track"):
            found = self.found("""
malloc = ctypes.CDLL(None)
right = []
for again, number in [(0, number) for number in range(1, 20)] + [(1, 1), (1, 2), (1, 3)]:
    a = anonymous()
    a[...] = new_values(number)
    malloc.fail_malloc(ctypes.c_long(number), again)
    right.append(is_right(a, 3))
    a[number, 9 * number] = 5
    right.append(is_right(a, 2))
    malloc.fail_malloc(ctypes.c_long(0), 0)
print(json.dumps([all(right), malloc.mallocs_failed(), counts()["hits"]]))
""", {"LD_PRELOAD": f"{PRELOAD}:{FAILING_MALLOC}", "SG_BLAS_RESIDENCY": mode})
            self.assertTrue(found[0])
            self.assertGreater(found[1], 15)
            self.assertGreater(found[2], 30)

    def test_failures_of_copies(self):
        """A copy to the device that failed is never used."""
        outcomes = set()
        for kind, steps in (("fail-copy", (2, 4, 5, 6, 8, 12)), ("refuse-copy", (4, 5, 8)), ("fail-launch", (2, 3))):
            for step in steps:
                for mode in ("hash",) if kind != "refuse-copy" else ("verify",):
                    code = PRELUDE + CODE + "a = anonymous()\na[...] = new_values(1)\nright = is_right(a, 4)\na[5, 100] += 1\nprint(right and is_right(a, 4), counts()['hits'] > 0, 'device failed' in reasons())"
                    variables = {"SG_DEVICE": f"sim:h200?{kind}={step}", "SG_BLAS_MIN": "0", "LD_PRELOAD": str(PRELOAD), "SG_BLAS_RESIDENCY": mode, "SG_BLAS_REPORT": "/dev/null"}
                    said = subprocess.run([PYTHON, "-c", code], env=PLAIN | variables, text=True, capture_output=True, timeout=300)
                    self.assertEqual(said.returncode, 0, said.stderr)
                    self.assertTrue(said.stdout.startswith("True True"), (kind, step, mode, said.stdout, said.stderr))
                    outcomes.add(said.stdout.split()[2])
        self.assertIn("True", outcomes)

    def test_verify_ends_a_process_with_a_wrong_copy(self):
        """With a planted defect, chunks that are copied to another place, the process ends; without it does not."""
        code = PRELUDE + CODE + "a = anonymous()\na[...] = new_values(1)\nis_right(a, 3)\na[5, 100] += 1\nis_right(a, 1)\nprint(is_right(a, 2))"
        variables = {"SG_DEVICE": DEVICE, "SG_BLAS_MIN": "0", "LD_PRELOAD": str(PRELOAD), "SG_BLAS_RESIDENCY": "verify"}
        said = subprocess.run([PYTHON, "-c", code], env=PLAIN | variables | {key: os.environ[key] for key in ("PLANTED_DEFECT",) if key in os.environ}, text=True, capture_output=True, timeout=300)
        self.assertEqual((said.returncode, said.stdout), (0, "True\n"), said.stderr)


run()
