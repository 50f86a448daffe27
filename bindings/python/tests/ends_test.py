# SPDX-License-Identifier: Apache-2.0
"""Ends: of the interpreter beside threads that push into pipelines, Ctrl-C in the functions of stages, second interpreters."""

import os
import signal
import sys
import threading
import time
import unittest

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest, run_python

TIMES = 10 if os.environ.get("SG_SOAK") == "1" else 1

PUSHES = """
import sys, threading, time
import numpy as np
import streamgemm as sg
context = sg.Context(sys.argv[1])
def record(stage, batch):
    {pause}
    stage.elementwise("relu", stage.input, out=stage.output)
pipeline = context.pipeline((8, 8), "f64")
pipeline.stage((8, 8), function=record)
x = np.ones((8, 8))
pipeline.push(x)
begun = threading.Event()
def push():
    while True:
        pipeline.push_async(x)
        begun.set()
for _ in range(3):
    threading.Thread(target=push, daemon=True).start()
begun.wait()
time.sleep(float(sys.argv[2]))
"""


@unittest.skipIf(DEVICE.startswith("cuda"), "the same on every device")
class Ends(DeviceTest):
    def test_daemon_threads_push_while_the_interpreter_ends(self):
        for pause in ("pass", "time.sleep(0.0005)"):
            code = PUSHES.replace("{pause}", pause).replace("sys.argv[1]", repr(DEVICE))
            for i in range(6 * TIMES):
                with self.subTest(pause=pause, i=i):
                    self.assertEqual((0, ""), run_python(code.replace("sys.argv[2]", repr(0.003 * i)), timeout=120))

    def test_ctrl_c_in_functions_of_stages_is_a_keyboard_interrupt(self):
        made = self.context.pipeline((4, 4), "f64")
        made.stage((4, 4), function=lambda stage, batch: stage.elementwise("relu", stage.input, out=stage.output))
        x, pressing = np.ones((4, 4)), True
        made.push(x)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

        def press():
            while pressing:
                time.sleep(np.random.default_rng().uniform(0.0005, 0.002))
                if ready.is_set():
                    ready.clear()
                    os.kill(os.getpid(), signal.SIGINT)

        ready = threading.Event()
        thread = threading.Thread(target=press)
        thread.start()
        seen, count = [], 150 * TIMES
        try:
            while len(seen) < count:
                try:
                    ready.set()
                    while True:
                        made.push(x)
                except BaseException as error:
                    seen.append(error)
        finally:
            pressing = False
            thread.join()
        self.assertEqual({KeyboardInterrupt}, set(map(type, seen)), [e for e in seen if not isinstance(e, KeyboardInterrupt)])

    def test_a_second_interpreter_is_refused(self):
        modules = {11: "_xxsubinterpreters", 12: "_xxsubinterpreters", 13: "_interpreters"}
        for before in ("", "import streamgemm; streamgemm.Context('cpu').close()"):
            code = f"""
            import {modules.get(sys.version_info[1], "_interpreters")} as interpreters
            {before}
            for kind in {[("isolated",), ("legacy",)] if sys.version_info >= (3, 13) else [()]}:
                second = interpreters.create(*kind)
                for _ in range(2):
                    try:
                        said = interpreters.run_string(second, "import streamgemm")
                    except interpreters.RunFailedError as failed:
                        said = failed
                    print(said)
            """
            code, output = run_python(code)
            self.assertEqual(0, code, output)
            refusals = output.strip().splitlines()  # by the package, or by Python itself
            self.assertIn(len(refusals), (2, 4), output)
            for refusal in refusals:
                self.assertRegex(refusal, "ImportError.*interpreter")


if __name__ == "__main__":
    unittest.main()
