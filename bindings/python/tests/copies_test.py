# SPDX-License-Identifier: Apache-2.0
"""Objects that own handles are not copied: by copy, deepcopy, pickle or a spawned process."""

import copy
import multiprocessing
import pickle
import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest


def child(thing):
    """Never called: its argument cannot be sent."""
    raise AssertionError(thing)


class NotCopied(DeviceTest):
    def things(self):
        a = np.eye(4)
        pinned = self.context.pin(np.eye(8))
        self.addCleanup(pinned.close)
        yield from (self.context, self.context.stream(), self.context.event(), self.context.buffer(64))
        yield from (self.context.graph(), self.context.plan(a, a), pinned, self.context.gemm_async(a, a), sg.Matrix(a))
        yield self.context.buffer(64).matrix((4, 4))

    def refused(self, thing, call):
        with self.assertRaisesRegex(TypeError, f"a {type(thing).__name__} cannot be copied or pickled"):
            call()

    def test_copy_and_pickle(self):
        for thing in self.things():
            with self.subTest(type(thing).__name__):
                for held in (thing, [thing], {"x": (thing,)}):
                    self.refused(thing, lambda held=held: copy.deepcopy(held))
                    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                        self.refused(thing, lambda held=held, p=protocol: pickle.dumps(held, p))
                self.refused(thing, lambda: copy.copy(thing))

    def test_a_spawned_process(self):
        spawn = multiprocessing.get_context("spawn")
        for thing in self.things():
            self.refused(thing, lambda: spawn.Process(target=child, args=(thing,)).start())

    def test_an_object_without_constructor(self):
        for kind in (sg.Matrix, sg.Job):
            with self.assertRaises(TypeError):
                object.__new__(kind)
            for base in kind.__mro__[1:3]:
                if base.__module__.endswith("_native"):
                    with self.assertRaises(TypeError):
                        base()
                    with self.assertRaises(TypeError):
                        base.__new__(kind)

    def test_options_and_records_are_values(self):
        options = sg.PlanOptions(split="k", parts=4)
        for again in (copy.copy(options), copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
            self.assertEqual(repr(again), repr(options))
            self.assertNotEqual(again._open_options(), options._open_options())
        a = np.eye(16)
        np.testing.assert_array_equal(self.context.gemm(a, a, options=copy.copy(options)), a)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            device = self.context.device
            self.assertEqual(pickle.loads(pickle.dumps(device, protocol)), device)
        self.assertEqual(copy.deepcopy(device), device)
        self.assertEqual(pickle.loads(pickle.dumps(sg.Transpose.T)), sg.Transpose.T)
        error = pickle.loads(pickle.dumps(sg.error_of(-1, "text")))
        self.assertEqual((type(error), str(error), error.status), (sg.InvalidArgument, "text", -1))


if __name__ == "__main__":
    unittest.main()
