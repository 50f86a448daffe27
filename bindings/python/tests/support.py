# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests. Every test runs on the device named by SG_TEST_DEVICE, the cpu without it."""

import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import time
import unittest

import numpy as np
import streamgemm as sg

DEVICE = os.environ.get("SG_TEST_DEVICE", "cpu")


def integers(shape, dtype=np.float32, seed=0):
    """Small integers: their products are exact, so results are compared bit by bit."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


class Gate:
    """Memory that blocks the library thread that first accesses it, until the test opens it: a job with an operand there
    stays in flight for as long as the test wants, however slow the machine is (tests/api/support/gate.h)."""

    def __init__(self, values):
        values = np.asarray(values, np.float64)
        calls = ctypes.CDLL(os.environ["SG_TEST_GATE"])
        calls.gate_new.restype = calls.gate_memory.restype = calls.gate_content.restype = ctypes.c_void_p
        calls.gate_new.argtypes = [ctypes.c_size_t]
        for call in (calls.gate_memory, calls.gate_content, calls.gate_open):
            call.argtypes = [ctypes.c_void_p]
        self._gate = calls.gate_new(values.nbytes)
        if not self._gate:
            raise unittest.SkipTest("userfaultfd is not available here")
        ctypes.memmove(calls.gate_content(self._gate), values.ctypes.data, values.nbytes)
        self._open = calls.gate_open
        self.matrix = sg.Matrix.at(calls.gate_memory(self._gate), values.shape, "f64", owner=self)

    def open(self):
        """Unblocks the job; may be called again. The memory stays, since jobs may still use it."""
        self._open(self._gate)


class DeviceTest(unittest.TestCase):
    """A test with a context of its own."""

    def setUp(self):
        self.context = sg.Context(DEVICE)
        self.addCleanup(self.context.close)

    def gate(self, values=((1.0,),)):
        """A closed gate, which opens at the end of the test at the latest."""
        made = Gate(values)
        self.addCleanup(made.open)
        return made

    def held_job(self, gate, **how):
        """A job that completes once the gate is open: times one."""
        return self.context.gemm_async(gate.matrix, np.ones((1, 1)), **how)

    def long_job(self, **how):
        """A job that runs for a while, so that later jobs stay in flight."""
        a = np.ones((1000, 1000))
        return self.context.gemm_async(a, a, **how)


def run_python(code, timeout=300, **environment):
    """Runs a program in its own process; its exit code and output."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def eventually(holds, seconds=300):
    """Whether it becomes true in time; the package's thread takes a moment."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        gc.collect()
        time.sleep(0.005)
    return True


def resident_bytes():
    """The resident memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    raise SystemExit("run one of the tests")
