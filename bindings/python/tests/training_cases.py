# SPDX-License-Identifier: Apache-2.0
"""Cases of the operations of training: each type, on arrays of the host and of the device."""

import itertools

import numpy as np
import streamgemm as sg
from support import DeviceTest

TOLERANCES = {"f64": 1e-11, "f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}
NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
SHAPES = ((5,), (1, 1), (3, 7), (4, 3, 8), (0, 4), (130, 70))


class TrainingCases(DeviceTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(8)

    def cases(self, shapes=SHAPES):
        for self.dtype, self.where, shape in itertools.product(TOLERANCES, ("host", "device"), shapes):
            if self.dtype in NUMPY or self.where == "device":  # NumPy has no bf16
                with self.subTest(dtype=self.dtype, where=self.where, shape=shape):
                    yield shape

    def place(self, values, dtype=None):
        """The values as an array of the case's type and memory."""
        dtype = dtype or self.dtype
        if self.where == "host":
            return values.astype(NUMPY[dtype])
        return self.context.array(values if dtype == "f64" else values.astype(np.float32), dtype)

    def values(self, array):
        """The elements in f64."""
        if isinstance(array, sg.DeviceArray):
            flat = array.reshape(1) if array.shape == () else array
            array = (self.context.convert(flat, dtype="f32") if array.dtype == "bf16" else flat).asnumpy().reshape(array.shape)
        return array.astype(np.float64)

    def drawn(self, *shape):
        """An array, and its values, which are rounded to its type."""
        array = self.place(self.random.standard_normal(shape))
        return array, self.values(array)

    def indices(self, values, dtype):
        """Indices of a case, with the options that they need: on a device those of i64 are pairs of i32."""
        values = np.asarray(values, dtype)
        if self.where == "host":
            return values, {}
        return self.context.array(values.reshape(-1).view(np.int32)), {"index_type": "i64" if values.itemsize == 8 else "i32"}

    def check(self, wanted, found, size=1.0):
        self.assertEqual(wanted.shape, tuple(found.shape))
        self.assertEqual(self.where == "device", isinstance(found, sg.DeviceArray))
        tolerance = TOLERANCES[self.dtype]
        np.testing.assert_allclose(self.values(found), wanted, rtol=tolerance, atol=tolerance * size)
