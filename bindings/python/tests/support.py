# SPDX-License-Identifier: Apache-2.0
"""What the tests share. Every test runs on the device named by SG_TEST_DEVICE, the cpu without it."""

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


class DeviceTest(unittest.TestCase):
    """A test with a context of its own."""

    def setUp(self):
        self.context = sg.Context(DEVICE)
        self.addCleanup(self.context.close)

    def long_job(self, **how):
        """A job that runs for a while, so that what comes after it is in flight."""
        a = np.ones((1000, 1000))
        return self.context.gemm_async(a, a, **how)


def run_python(code, timeout=60, **environment):
    """Runs a program of its own; its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def eventually(holds, seconds=10):
    """Whether it comes true; what a thread of the package does takes a moment."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        gc.collect()
        time.sleep(0.005)
    return True


def resident_bytes():
    """What this process has in memory now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    raise SystemExit("run one of the tests")
