# SPDX-License-Identifier: Apache-2.0
"""Every exporter of the buffer protocol, DLPack and the array interfaces is accepted or refused, and never trusted."""

import array
import ctypes
import mmap
import unittest

import numpy as np
import streamgemm as sg
from hostile import BufferSays, TensorSays
from support import DeviceTest, integers

HUGE = 1 << 62


def memory_of(values):
    return (ctypes.c_float * values.size)(*values.ravel().tolist())


class Exporters(DeviceTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = integers((4, 6)), integers((6, 5), seed=1)
        self.memory = memory_of(self.a)

    def taken(self, a, wanted=None):
        np.testing.assert_array_equal(self.context.matmul(a, self.b), (self.a if wanted is None else wanted) @ self.b)

    def refused(self, a, pattern="", kind=sg.InvalidArgument, **how):
        with self.assertRaisesRegex(kind, pattern) as raised:
            self.context.matmul(a, self.b, **how)
        self.assertRegex(str(raised.exception), r"\ba\b|tensor|buffer")
        if not how:
            self.refused(a, pattern, kind, copy=True)


class Buffers(Exporters):
    def test_ctypes(self):
        rows = ((ctypes.c_float * 6) * 4)(*(tuple(row) for row in self.a.tolist()))
        self.taken(rows)
        self.taken(sg.Matrix(rows))
        c = ((ctypes.c_float * 5) * 4)()
        self.assertIs(self.context.gemm(rows, self.b, c), c)
        np.testing.assert_array_equal(np.array(c), self.a @ self.b)
        stack = (((ctypes.c_float * 6) * 4) * 2)(*[rows] * 2)
        np.testing.assert_array_equal(self.context.gemm(stack, self.b), np.stack([self.a @ self.b] * 2))
        vector = (ctypes.c_float * 6)(*self.a[0].tolist())
        np.testing.assert_array_equal(self.context.gemm(vector, self.b), self.a[0] @ self.b)
        self.assertEqual(sg.Matrix(((ctypes.c_double * 3) * 2)()).strides, (24, 8))
        pairs = self.context.copy(((ctypes.c_float * 6) * 4)(), rows)
        np.testing.assert_array_equal(np.array(pairs), self.a)
        for kind in (ctypes.c_int64, ctypes.c_uint8, ctypes.c_char, ctypes.c_float.__ctype_be__, ctypes.c_void_p):
            self.refused(((kind * 6) * 4)())

    def test_the_standard_library(self):
        self.taken(memoryview(array.array("f", self.a.ravel().tolist())).cast("B").cast("f", (4, 6)))
        with mmap.mmap(-1, 4096) as mapped:
            mapped[: self.a.nbytes] = self.a.tobytes()
            view = memoryview(mapped)[: self.a.nbytes].cast("f", (4, 6))
            self.taken(view)
            view.release()
        self.refused(b"x" * 96, "format 'B'")
        self.refused(memoryview(bytes(96)).cast("I", (4, 6)), "format 'I'")

    def says(self, *what, **how):
        return BufferSays(self.memory, *what, **how).exporter

    def test_a_custom_buffer_is_accepted(self):
        self.taken(self.says(2, [4, 6], [24, 4]))
        self.taken(self.says(2, [4, 6], None))
        self.taken(self.says(2, [4, 6], [24, 4], suboffsets=[-1, -1]))
        np.testing.assert_array_equal(
            self.context.gemm(self.says(1, [24], None), np.ones((24, 1), np.float32)), [self.a.sum()]
        )

    def test_invalid_descriptions_are_refused(self):
        for ndim, shape, strides in (
            (-1, [4, 6], [24, 4]),
            (65, [1] * 65, [4] * 65),
            (1000000, [1] * 65, [4] * 65),
            (2, None, None),
            (2, None, [24, 4]),
            (2, [-4, 6], [24, 4]),
            (2, [4, -6], None),
            (2, [HUGE, HUGE], [24, 4]),
            (2, [HUGE, HUGE], None),
            (2, [4, 6], [HUGE, 4]),
            (2, [4, 6], [-HUGE, 4]),
            (3, [HUGE, 4, 6], [0, 24, HUGE]),
            (3, [HUGE, HUGE, 6], [0, 0, 4]),
        ):
            with self.subTest(ndim=ndim, shape=shape, strides=strides):
                self.refused(self.says(ndim, shape, strides))
        self.refused(self.says(2, [4, 6], [24, 4], suboffsets=[0, -1]), "suboffsets")
        self.refused(self.says(2, [4, 6], [24, 4], null=True))
        self.refused(self.says(2, [4, 6], [24, 4], itemsize=8))
        self.refused(self.says(2, [4, 6], [24, 4], itemsize=0))
        self.refused(self.says(2, [4, 6], [24, 4], fmt=b">f"))
        self.refused(self.says(2, [4, 6], [24, 4], fmt=b""))
        self.refused(self.says(2, [4, 6], [24, 4], fmt=b"T{f:x:}"))
        self.refused(self.says(2, [4, 6], [24, 4], fmt=None))

    def test_the_result_is_writable(self):
        for c in (self.says(2, [4, 5], [20, 4], readonly=1), memoryview(bytes(80)).cast("f", (4, 5))):
            with self.assertRaisesRegex(sg.InvalidArgument, "c is read-only"):
                self.context.gemm(self.a, self.b, c)
        with self.assertRaisesRegex(sg.InvalidArgument, "read-only"):
            self.context.gemm(self.a, self.b, self.says(2, [4, 5], None, readonly=1))

    def test_strides(self):
        wide = integers((9, 13))
        for view in (wide[3::-1, :6], wide[:4, 5::-1], wide[:4, :12:2], wide[:8:2, :12:2], np.broadcast_to(wide[:4, :1], (4, 6)),
                     np.broadcast_to(wide[0, :6], (4, 6)), np.lib.stride_tricks.as_strided(wide, (4, 6), (4, 4))):  # fmt: skip
            with self.assertRaisesRegex(sg.InvalidArgument, r"a has shape .* and strides .*(dimension|overlap)"):
                self.context.matmul(view, self.b)
            np.testing.assert_array_equal(self.context.matmul(view, self.b, copy=True), view @ self.b)
            np.testing.assert_array_equal(self.context.matmul_async(view, self.b, copy=True).result(), view @ self.b)
            np.testing.assert_array_equal(self.context.matmul([view] * 2, self.b, copy=True)[1], view @ self.b)
            np.testing.assert_array_equal(self.context.gemm_grouped([(view, self.b)], copy=True)[0], view @ self.b)
            with self.assertRaisesRegex(sg.InvalidArgument, "out has shape .* and strides"):
                self.context.matmul(self.a, self.b[:, :1], np.zeros((4, 1), np.float32)[::-1], copy=True)
        for view, text in (
            (wide[3::-1, :6], "dimension 0 runs backwards"),
            (wide[:4, 5::-1], "dimension 1 runs backwards"),
            (wide[:8:2, :12:2], "dimensions 0 and 1 are both strided"),
            (np.broadcast_to(wide[0, :6], (3, 4, 6)), "dimension 1 repeats one element"),
        ):
            with self.assertRaisesRegex(sg.InvalidArgument, f"a has shape .*{text}.*copy=True"):
                self.context.matmul(view, self.b)

    def test_misaligned(self):
        raw = np.zeros(self.a.nbytes + 1, np.uint8)
        view = raw[1:].view(np.float32).reshape(4, 6)
        view[...] = self.a
        with self.assertRaisesRegex(sg.InvalidArgument, r"a .*aligned"):
            self.context.matmul(view, self.b)
        self.taken(np.ascontiguousarray(view.copy()))
        packed = np.zeros(24, np.dtype([("x", "f4"), ("y", "i1")]))["x"].reshape(4, 6)
        with self.assertRaisesRegex(sg.InvalidArgument, r"a has shape .*no multiple of the element size"):
            self.context.matmul(packed, self.b)
        packed[...] = self.a
        np.testing.assert_array_equal(self.context.matmul(packed, self.b, copy=True), self.a @ self.b)

    def test_other_types(self):
        for dtype in (np.int16, np.int32, np.int64, np.uint8, np.bool_, np.longdouble, object, "U3", "M8[s]", ">f4", ">c8", "V4"):
            with self.subTest(dtype=dtype), self.assertRaisesRegex(sg.InvalidArgument, r"a (?=.*f32)(?=.*bf16)(?=.*f8_e5m2)|a .* of >.*byte order"):
                self.context.matmul(np.zeros((4, 6), dtype), self.b)

    def test_masked(self):
        masked = np.ma.masked_array(self.a, self.a > 2)
        for how in ({}, {"copy": True}):
            with self.assertRaisesRegex(TypeError, "a is a .*MaskedArray, whose mask"):
                self.context.matmul(masked, self.b, **how)
            with self.assertRaisesRegex(TypeError, "b is a .*MaskedArray"):
                self.context.matmul_async(self.b.T.copy(), masked.T, **how)
        with self.assertRaisesRegex(TypeError, "out is a .*MaskedArray"):
            self.context.matmul(self.a, self.b, np.ma.zeros((4, 5), np.float32))
        with self.assertRaisesRegex(TypeError, "bias is a .*MaskedArray"):
            self.context.matmul(self.a, self.b, bias=np.ma.zeros(5, np.float32))
        with self.assertRaisesRegex(TypeError, "MaskedArray"):
            sg.Matrix(masked)
        self.taken(masked.data)


class DLPack(Exporters):
    def says(self, *what, **how):
        return TensorSays(self.memory, *what, **how)

    def test_valid_descriptions_are_accepted(self):
        for version in (None, 1):
            self.taken(self.says([4, 6], version=version))
            self.taken(self.says([4, 6], [6, 1], version=version))
            self.taken(self.says([4, 1, 6], [6, 99, 1], version=version), self.a[:, None])
            self.taken(self.says([3, 6], [6, 1], offset=24, version=version), self.a[1:])

    def test_invalid_descriptions_are_refused(self):
        for how in (
            {"shape": [4, 6], "ndim": -1},
            {"shape": [1] * 65},
            {"shape": [4, 6], "ndim": 1 << 30},
            {"shape": None, "ndim": 2},
            {"shape": [-4, 6]},
            {"shape": [4, -6], "strides": [6, 1]},
            {"shape": [HUGE, HUGE]},
            {"shape": [4, 6], "strides": [HUGE, 1]},
            {"shape": [4, 6], "strides": [1 << 60, 1]},
            {"shape": [4, 6], "offset": (1 << 64) - 1},
            {"shape": [4, 6], "null": True},
            {"shape": [4, 6], "lanes": 0},
            {"shape": [4, 6], "lanes": 4},
            {"shape": [4, 6], "bits": 16, "code": 1},
            {"shape": [4, 6], "bits": 0},
            {"shape": [4, 6], "code": 99},
            {"shape": [4, 6], "device": (4, 0)},
            {"shape": [4, 6], "device": (-1, 0)},
            {"shape": [4, 6], "device": (0, 1)},
            {"shape": [4, 6], "version": 2},
            {"shape": [4, 6], "version": 0},
        ):
            with self.subTest(**how):
                self.refused(self.says(**how), "a ")

    def test_strides_and_the_result(self):
        with self.assertRaisesRegex(sg.InvalidArgument, "a has shape .*runs backwards"):
            self.context.matmul(self.says([2, 6], [-6, 1], offset=24), self.b)
        with self.assertRaisesRegex(sg.InvalidArgument, "out is read-only"):
            self.context.matmul(self.a, self.b, self.says([4, 5], version=1, flags=1))

    def test_no_capsule(self):
        class Wrong:
            def __init__(self, capsule, device=(1, 0)):
                self.capsule, self.device = capsule, device

            def __dlpack_device__(self):
                return self.device

            def __dlpack__(self, **how):
                return self.capsule

        used = np.zeros((4, 6), np.float32).__dlpack__()
        sg.Matrix(Wrong(used))
        for capsule in (used, None, 3, "dltensor", object()):
            self.refused(Wrong(capsule), "a ")
        for device in (None, 3, (1,), ("cpu", 0), (1, 0, 0)):
            self.refused(Wrong(np.zeros((4, 6), np.float32).__dlpack__(), device), "a ")


class Interfaces(Exporters):
    def with_interface(self, name="__array_interface__", **changes):
        interface = {**self.a.__array_interface__, **changes}
        for key in [key for key, value in interface.items() if isinstance(value, str) and value == "absent"]:
            del interface[key]
        return type("Interface", (), {name: interface, "kept": self.a})()

    def test_valid_descriptions_are_accepted(self):
        self.taken(self.with_interface())
        self.taken(self.with_interface(strides=(24, 4)))
        self.taken(self.with_interface(strides="absent", descr="absent", version="absent"))
        self.taken(self.with_interface(shape=[4, 6]))

    def test_wrong_descriptions_are_refused(self):
        address = self.a.ctypes.data
        for changes in (
            {"shape": (4,)},
            {"shape": (4, -6)},
            {"shape": (4, 6.0)},
            {"shape": 24},
            {"shape": "ab"},
            {"shape": "absent"},
            {"shape": (HUGE, HUGE)},
            {"shape": (1,) * 65},
            {"strides": (24,)},
            {"strides": (24, 4, 4)},
            {"strides": 24},
            {"strides": (24, "4")},
            {"strides": (1 << 70, 4)},
            {"strides": (HUGE, 4)},
            {"typestr": ">f4"},
            {"typestr": "<f8x"},
            {"typestr": "f"},
            {"typestr": ""},
            {"typestr": 3},
            {"typestr": "<u4"},
            {"typestr": "<i8"},
            {"typestr": "|V4"},
            {"typestr": "absent"},
            {"data": "absent"},
            {"data": None},
            {"data": address},
            {"data": (address,)},
            {"data": (str(address), False)},
            {"data": (-8, False)},
            {"data": (1 << 64, False)},
            {"data": ((1 << 64) - 4, False)},
            {"data": (0, False)},
            {"data": (None, False)},
            {"mask": np.zeros((4, 6), bool)},
            {"offset": 4},
        ):
            with self.subTest(**changes):
                self.refused(self.with_interface(**changes), "")
        for interface in (None, 3, {}, []):
            self.refused(type("Interface", (), {"__array_interface__": interface})(), "a ")

    def test_read_only(self):
        with self.assertRaisesRegex(sg.InvalidArgument, "out is read-only"):
            c = self.with_interface(shape=(4, 5), data=(self.a.ctypes.data, True))
            self.context.matmul(self.a.copy(), self.b, c)

    def test_cuda_without_a_device(self):
        name = "__cuda_array_interface__"
        for changes in ({}, {"stream": 0}, {"stream": "x"}, {"data": None}, {"shape": None}, {"mask": self.a}):
            self.refused(self.with_interface(name, **changes), "a ")


if __name__ == "__main__":
    unittest.main()
