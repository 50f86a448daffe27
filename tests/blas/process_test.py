#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The drop-in BLAS in a process: what it loads, forks, threads, settings and failures of the device.

usage: process_test.py FOLDER-OF-THE-LIBRARIES
"""
import glob
import json
import os
import pathlib
import re
import signal
import subprocess
import textwrap

from dropin import BUILT, PLAIN, PRELOAD, PRELUDE, PYTHON, Dropin, run

FOREIGN = re.compile(r"libstreamgemm\.so|libopenblas|libblas|libgomp|libstdc\+\+|libdnnl|libcuda")


class Start(Dropin):
    def test_nothing_is_loaded_without_a_call(self):
        maps = self.execute(["/bin/cat", "/proc/self/maps"]).stdout
        self.assertIn("libstreamgemm-blas.so", maps)
        self.assertIsNone(FOREIGN.search(maps))

    def test_small_calls_load_no_device(self):
        code = "print(multiplies('cblas_dgemm', n=20)); print(open('/proc/self/maps').read())"
        for variables, loads in (({"SG_BLAS_MIN": None}, False), ({"SG_BLAS_MIN": "40"}, False), ({"SG_BLAS_MIN": "10"}, True), ({"SG_BLAS": "0"}, False)):
            said = self.child(code, variables).stdout
            self.assertTrue(said.startswith("True"))
            self.assertEqual("libstreamgemm.so" in said, loads, variables)

    def test_without_a_device_nothing_is_loaded(self):
        said = self.child("print(multiplies('cblas_dgemm', n=400)); print(open('/proc/self/maps').read())", {"SG_DEVICE": None})
        self.assertTrue(said.stdout.startswith("True"))
        if not os.path.exists("/dev/nvidiactl"):
            self.assertNotIn("libstreamgemm.so", said.stdout)
        self.assertEqual(said.stderr, "")

    def test_a_device_that_is_not_there(self):
        said = self.child("print([multiplies('cblas_dgemm', seed=i) for i in range(3)])", {"SG_DEVICE": "sim:nothing"})
        self.assertEqual(said.stdout, "[True, True, True]\n")
        self.assertEqual(said.stderr.count("\n"), 1)
        self.assertIn("sim:nothing", said.stderr)


class Settings(Dropin):
    def test_wrong_values_are_named(self):
        for name, value in (("SG_BLAS", "yes"), ("SG_BLAS_MIN", "many"), ("SG_BLAS_MIN", "-3"), ("SG_BLAS_MEMORY", "lots"), ("SG_BLAS_MEMORY", "120%"), ("SG_BLAS_COMPUTE", "fast"),
                            ("SG_BLAS_RESIDENCY", "always")):
            with self.subTest(name):
                said = self.child("print(multiplies('cblas_dgemm'))", {name: value})
                self.assertEqual(said.stdout, "True\n")
                self.assertEqual(said.stderr.count("\n"), 1, said.stderr)
                self.assertIn(f"{name}={value}", said.stderr)

    def test_where_calls_go(self):
        code = "multiplies('cblas_dgemm'); print(json.dumps(reasons()))"
        for variables, reason in (({}, "device"), ({"SG_BLAS": "0"}, "switched off"), ({"SG_BLAS_ONLY": "pw.x:cp2k"}, "switched off"),
                                  ({"SG_BLAS_ONLY": "pw.x:" + PYTHON.rpartition("/")[2]}, "device"), ({"SG_BLAS_MIN": "2000"}, "below the floor"),
                                  ({"SG_DEVICE": "sim:nothing"}, "no device")):
            self.assertEqual(self.json_of(code, variables), {reason: 1}, variables)

    def test_the_threads_switch(self):
        found = self.json_of("""
            before = blas.sg_blas_enable(0)
            multiplies("cblas_dgemm")
            off = reasons()
            was = blas.sg_blas_enable(before)
            multiplies("cblas_dgemm")
            print(json.dumps([before, was, off, reasons()]))
            """)
        self.assertEqual(found, [1, 0, {}, {"device": 1}])

    def test_invalid_and_empty_calls_go_to_the_cpu(self):
        found = self.json_of("""
            a, b, c = operands(8, 8, 8)
            try:
                gemm("cblas_dgemm", a, b, c.copy(order="F"), order=103)
            except SystemError as error:  # by the xerbla_ of NumPy's module
                said = str(error.__cause__)
            kept = c.copy(order="F")
            gemm("cblas_dgemm", a, b, c, alpha=0.0, beta=2.0)
            print(json.dumps([said, numpy.allclose(c, 2 * kept), reasons()]))
            """)
        self.assertIn("had an illegal value", found.pop(0))
        self.assertEqual(found, [True, {"invalid argument": 1, "nothing to do": 1}])

    def test_sizes_beyond_31_bits_go_to_the_cpu(self):
        """The product of a row and a column of 2^31 + 8 zeros, which are one page of memory, and a one each."""
        if not glob.glob("/usr/lib/*/libopenblas64.so.0"):
            self.skipTest("libopenblas64 is not installed")
        found = self.json_of(f"""
            import mmap
            k = 2**31 + 8
            wide = ctypes.CDLL({str(BUILT / "libblas64.so.3")!r})
            wide.cblas_sgemm.restype = None
            libc = ctypes.CDLL(None)
            libc.mmap.restype = ctypes.c_void_p
            memory = libc.mmap(None, ctypes.c_size_t(4 * k), 1 | 2, 2 | 32 | 0x4000, -1, ctypes.c_long(0))
            assert memory != ctypes.c_void_p(-1).value
            numpy.frombuffer((ctypes.c_char * 4).from_address(memory + 4 * (k - 1)), dtype=numpy.float32)[:] = 3
            c = numpy.zeros(1, numpy.float32)
            number, one = ctypes.c_int64, ctypes.c_float(1)
            wide.cblas_sgemm(102, 111, 111, number(1), number(1), number(k), one, ctypes.c_void_p(memory), number(1), ctypes.c_void_p(memory), number(k), one,
                             ctypes.c_void_p(c.ctypes.data), number(1))
            wide.sg_blas_report.argtypes = blas.sg_blas_report.argtypes
            text = ctypes.create_string_buffer(100000)
            wide.sg_blas_report(text, 100000, None)
            print(json.dumps([float(c[0]), [row["calls"] for row in json.loads(text.value)["rows"]]]))
            """, {"OPENBLAS_NUM_THREADS": "2"})
        self.assertEqual(found, [9, [{"vast sizes": 1}]])

    def test_the_size_of_the_report_is_that_of_its_text(self):
        found = self.json_of("""
            for n in range(1, 60): multiplies("cblas_dgemm", n=n)
            sizes = set()
            for _ in range(300):
                size = ctypes.c_uint64()
                blas.sg_blas_report(None, 0, ctypes.byref(size))
                sizes.add(size.value)
            print(json.dumps(len(sizes)))
            """, {"SG_BLAS_MIN": "1000"})
        self.assertEqual(found, 1)

    def test_a_memory_limit_in_percent(self):
        found = self.json_of("print(json.dumps([multiplies('cblas_dgemm'), report()]))", {"SG_DEVICE": "sim:h200", "SG_BLAS_MEMORY": "50%"})
        self.assertTrue(found[0])
        self.assertGreater(found[1]["memory_limit"], 50e9)
        self.assertLess(found[1]["memory_limit"], 90e9)
        ranks = self.json_of("print(json.dumps([multiplies('cblas_dgemm'), report()]))",
                             {"SG_DEVICE": "sim:h200", "OMPI_COMM_WORLD_LOCAL_RANK": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"})
        self.assertEqual(ranks[1]["rank"], 3)
        self.assertAlmostEqual(ranks[1]["memory_limit"] / (found[1]["memory_limit"] * 2), 0.2, 3)


class Thresholds(Dropin):
    CODE = """
        def go(m, n, k):
            before = reasons()
            a, b, c = operands(m, n, k)
            gemm("cblas_dgemm", a, b, c)
            return [reason for reason, count in reasons().items() if count != before.get(reason)]
        """

    def test_by_the_model(self):
        # Of an H200, beside the two or more cores here: a large square, one that is below any device, and a product that is all C.
        found = self.json_of(self.CODE + """
        print(json.dumps([go(100, 100, 100), "libstreamgemm.so" in open("/proc/self/maps").read(), go(1000, 1000, 1000), go(3000, 3000, 1),
                          go(100, 100, 100), report()]))
        """, {"SG_DEVICE": "sim:h200", "SG_BLAS_MIN": "auto", "OPENBLAS_NUM_THREADS": "1"})
        report = found.pop()
        self.assertEqual(found, [["below the floor"], False, ["device"], ["the model says CPU"], ["below the floor"]])
        rows = {reason: row for row in report["rows"] for reason in row["calls"]}
        self.assertLess(rows["device"]["predicted_device_seconds"], rows["device"]["predicted_cpu_seconds"])

    def test_a_form_that_the_cpu_computes_faster_by_the_plan(self):
        # Planned after some calls, by a CPU BLAS that does nothing.
        found = self.json_of(self.CODE + """
        nothing = ctypes.CFUNCTYPE(None)(lambda: None)
        assert blas.sg_blas_set_cpu_function(b"cblas_dgemm", ctypes.cast(nothing, ctypes.c_void_p)) == 0
        a, b, c = operands(3000, 3000, 1)
        for _ in range(30): gemm("cblas_dgemm", a, b, c)
        print(json.dumps(report()["rows"][0]))
        """, {"SG_DEVICE": "sim:h200", "SG_BLAS_MIN": "auto", "OPENBLAS_NUM_THREADS": "1"})
        self.assertEqual(found["calls"], {"the model says CPU": 30})
        self.assertGreater(found["predicted_device_seconds"], 0)

    def test_a_form_is_planned_once_the_cpu_has_taken_as_long(self):
        # 1 to 5 ms of one core, at the rate that it is taken to have.
        found = self.json_of(self.CODE + """
        first = go(300, 300, 300)
        print(json.dumps([first, report()["rows"][0]["predicted_device_seconds"], [go(300, 300, 300) for _ in range(12)]]))
        """, {"SG_DEVICE": "sim:h200", "SG_BLAS_MIN": "auto", "OPENBLAS_NUM_THREADS": "1"})
        first, predicted, others = found
        self.assertEqual([first, predicted, others[-1]], [["the model says CPU"], 0, ["device"]])

    def test_sizes_of_one_plan(self):
        """Sizes within an eighth, as those of a factorization, are predicted by one plan, and others by another."""
        found = self.json_of("""
            sizes, predicted, before = (1995, 2040, 1950, 1925, 1910), [], 0
            for n in sizes:
                gemm("cblas_dgemm", *operands(n, n, 80))
                now = sum(row["predicted_device_seconds"] for row in report()["rows"])
                predicted.append((now - before) / n**2)
                before = now
            print(json.dumps(predicted))
            """, {"SG_DEVICE": "sim:h200", "SG_BLAS_MIN": "auto", "OPENBLAS_NUM_THREADS": "1"})
        for each in found[1:4]:
            self.assertAlmostEqual(each / found[0], 1, 4)
        self.assertNotAlmostEqual(found[4] / found[0], 1, 4)

    def test_the_plan_of_the_whole_operation(self):
        """The predicted seconds of trsm are those of libstreamgemm's plan, and others once the device has a copy of A."""
        found = self.json_of("""
            class Matrix(ctypes.Structure):
                _fields_ = [("data", ctypes.c_void_p), ("rows", ctypes.c_int64), ("cols", ctypes.c_int64), ("ld", ctypes.c_int64), ("dtype", ctypes.c_int32), ("layout", ctypes.c_int32), ("reserved", ctypes.c_uint64)]
            class Triangular(ctypes.Structure):
                _fields_ = [("struct_size", ctypes.c_size_t), ("a", Matrix), ("b", Matrix), ("letters", ctypes.c_int32 * 5), ("reserved", ctypes.c_uint32), ("alpha", ctypes.c_double * 2)]
            class Operation(ctypes.Structure):
                _fields_ = [("struct_size", ctypes.c_size_t), ("operation", ctypes.c_int32), ("count", ctypes.c_int32), ("desc", ctypes.c_void_p)]
            n, pointer = 800, lambda of: ctypes.c_void_p(of.ctypes.data)
            a, b = (numpy.asfortranarray(numpy.random.rand(n, n) + n * numpy.eye(n)) for _ in range(2))
            def predicted(side, uplo, has_copy=False):
                "Of a call, and of its plan: what has no address is in device memory"
                before = sum(row["predicted_device_seconds"] for row in report()["rows"])
                blas.cblas_dtrsm(102, side, uplo, 111, 131, n, n, ctypes.c_double(1), pointer(a), n, pointer(b), n)
                by_call = sum(row["predicted_device_seconds"] for row in report()["rows"]) - before
                library = ctypes.CDLL("libstreamgemm.so.1")
                desc = Triangular(ctypes.sizeof(Triangular), Matrix(None if has_copy else a.ctypes.data, n, n, n, 1, 1), Matrix(b.ctypes.data, n, n, n, 1, 1), (0, side - 141, int(uplo == 121), 0, 0), 0, (1, 0))
                operation = Operation(ctypes.sizeof(Operation), 35, 1, ctypes.addressof(desc))
                context, plan, prediction = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_double * 20)()
                ctypes.memmove(prediction, ctypes.byref(ctypes.c_size_t(ctypes.sizeof(prediction))), 8)
                assert library.sg_context_create(None, ctypes.byref(context)) == 0
                assert library.sg_plan_create(context, ctypes.byref(operation), None, ctypes.byref(plan)) == 0
                assert library.sg_plan_get_prediction(plan, prediction) == 0
                return [by_call, prediction[1]]
            print(json.dumps([predicted(141, 122), predicted(142, 121), predicted(141, 122), predicted(141, 122, has_copy=True)]))
            """,
            {"SG_DEVICE": "sim:h200", "SG_BLAS_MIN": "auto", "OPENBLAS_NUM_THREADS": "1", "SG_BLAS_RESIDENCY": "hash"})
        for by_call, by_plan in found:
            self.assertAlmostEqual(by_call / by_plan, 1, 4)
        self.assertLess(found[3][1], found[2][1])


class Forks(Dropin):
    FORK = """
        def in_child(fork, work):
            "What `work` returns in a child of this process, as JSON"
            read, write = os.pipe()
            child = fork()
            if child == 0:
                os.write(write, json.dumps(work()).encode())
                os._exit(0)
            os.close(write)
            said = b"".join(iter(lambda: os.read(read, 4096), b""))
            assert os.waitpid(child, 0)[1] == 0
            return json.loads(said)
        work = lambda: [multiplies("cblas_dgemm", seed=5), reasons()]
        """

    def test_a_child_uses_the_cpu_if_its_parent_used_the_device(self):
        # _Fork calls no handlers: OpenBLAS's own threads would be lost in the child.
        for device in ("cpu", "sim:h200"):
            for fork in ("os.fork", "blas._Fork"):
                found = self.json_of(self.FORK + f"""
        multiplies("cblas_dgemm")
        print(json.dumps([in_child({fork}, work), in_child({fork}, lambda: in_child({fork}, work)), work()]))
        """, {"SG_DEVICE": device} | ({"OPENBLAS_NUM_THREADS": "1"} if fork == "blas._Fork" else {}))
                self.assertEqual(found, [[True, {"child of fork": 1}], [True, {"child of fork": 1}], [True, {"device": 2}]], (device, fork))

    def test_a_child_uses_the_device_if_its_parent_did_not(self):
        found = self.json_of(self.FORK + """
        print(json.dumps([in_child(os.fork, work), work()]))
        """)
        self.assertEqual(found, [[True, {"device": 1}], [True, {"device": 1}]])

    def test_forks_beside_calls(self):
        found = self.json_of(self.FORK + """
        import threading
        stop, right = threading.Event(), []
        def compute(seed):
            while not stop.is_set():
                right.append(multiplies("cblas_dgemm", seed=seed))
        threads = [threading.Thread(target=compute, args=(seed,)) for seed in range(3)]
        for thread in threads: thread.start()
        children = [in_child(os.fork, work)[0] for _ in range(8)]
        stop.set()
        for thread in threads: thread.join()
        print(json.dumps([all(children), all(right), len(right) > 0]))
        """)
        self.assertEqual(found, [True, True, True])

    def test_programs_started_and_pools(self):
        found = self.json_of(self.FORK + """
        import multiprocessing, subprocess
        multiplies("cblas_dgemm")
        said = subprocess.run(["/bin/echo", "alive"], capture_output=True, text=True).stdout
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(json.dumps([said, pool.map(multiplies, ["cblas_dgemm"] * 4)]))
        """)
        self.assertEqual(found, ["alive\n", [True] * 4])

    def test_reports_of_processes(self):
        self.child(self.FORK + """
        multiplies("cblas_dgemm")
        in_child(os.fork, lambda: 0)
        child = os.fork()
        if child == 0:
            multiplies("cblas_dgemm")
            sys.exit(0)
        os.waitpid(child, 0)
        """, {"SG_BLAS_REPORT": str(self.folder / "%p.json")})
        reports = [json.loads(file.read_text()) for file in self.folder.glob("*.json")]
        self.assertEqual(sorted(list(row["calls"])[0] for report in reports for row in report["rows"]), ["child of fork", "device"])


class Failures(Dropin):
    def test_c_is_the_cpus_or_the_process_ends(self):
        # With one host worker late copies wait for the results of earlier ones, which then are in C.
        model = json.loads((pathlib.Path(__file__).parents[2] / "lib/backends/sim/models/h200.json").read_text())
        model |= {"staging_workers": 1, "staging": [{"workers": 1, "bytes_per_second": 8e9}]}
        (self.folder / "model.json").write_text(json.dumps(model))
        code = self.outcome(f"sim:{self.folder}/model.json?fail-copy=17", """
            a, b, c = operands(1500, 1500, 16)
            wanted = numpy.einsum("ij,jk->ik", a, b) + c
            gemm("cblas_dgemm", a, b, c, beta=1.0)
            print(numpy.allclose(c, wanted))""")
        self.assertEqual(code, -signal.SIGABRT)
        for kind in ("fail-copy", "fail-launch"):
            for beta in (0.0, 1.0):
                for step in (1, 2, 4):
                    code = self.outcome(f"sim:h200?{kind}={step}", f"print(multiplies('cblas_dgemm', n=700, beta={beta}))")
                    # A C that is not read never ends the process, nor does one into which nothing has been copied.
                    if beta == 0 or kind == "fail-copy" and step <= 2:
                        self.assertEqual(code, 0, (kind, beta, step))

    def test_other_routines_are_the_cpus(self):
        """What is solved in place, or updated, is the CPU's if none of the result was copied back."""
        for step in (1, 2, 3):
            for code in ("""
                a, b = numpy.asfortranarray(numpy.tril(numpy.random.rand(300, 300)) + 300 * numpy.eye(300)), numpy.asfortranarray(numpy.random.rand(300, 200))
                x, pointer = b.copy(order="F"), lambda of: ctypes.c_void_p(of.ctypes.data)
                blas.cblas_dtrsm(102, 141, 122, 111, 131, 300, 200, ctypes.c_double(1), pointer(a), 300, pointer(x), 300)
                print(numpy.allclose(numpy.einsum("ij,jk->ik", a, x), b))""", """
                a, c = numpy.asfortranarray(numpy.random.rand(300, 200)), numpy.asfortranarray(numpy.random.rand(300, 300))
                wanted, pointer = c + numpy.einsum("ij,kj->ik", a, a), lambda of: ctypes.c_void_p(of.ctypes.data)
                blas.cblas_dsyrk(102, 122, 111, 300, 200, ctypes.c_double(1), pointer(a), 300, ctypes.c_double(1), pointer(c), 300)
                print(numpy.allclose(numpy.tril(c), numpy.tril(wanted)))"""):
                self.assertEqual(self.outcome(f"sim:h200?fail-copy={step}", code), 0)

    def outcome(self, device, code):
        """The exit of a program that prints whether its result is right: it is, or the process has ended with a message."""
        environment = PLAIN | {"SG_DEVICE": device, "SG_BLAS_MIN": "0", "LD_PRELOAD": str(PRELOAD)}
        said = subprocess.run([PYTHON, "-c", PRELUDE + textwrap.dedent(code)], env=environment, text=True, capture_output=True, timeout=300)
        if said.returncode == 0:
            self.assertEqual(said.stdout, "True\n", (device, code))
        else:
            self.assertEqual(said.returncode, -signal.SIGABRT, said.stderr)
            self.assertRegex(said.stderr, "cblas_d[a-z]* on .*may be partly written")
        return said.returncode

    def test_too_little_memory(self):
        said = self.child("print([multiplies('cblas_dgemm', n=200, beta=1.0, seed=i) for i in range(5)], reasons())",
                          {"SG_DEVICE": "sim:h200", "SG_BLAS_MEMORY": "4096", "SG_BLAS_REPORT": "/dev/null"})
        self.assertIn("[True, True, True, True, True]", said.stdout)
        self.assertIn("'device failed': 3", said.stdout)
        self.assertIn("'no device': 2", said.stdout)
        self.assertEqual(said.stderr.count("\n"), 3, said.stderr)
        self.assertIn("all calls from now on", said.stderr)

    def test_overlapping_operands_are_the_programs_affair(self):
        found = self.json_of("""
            a, b, c = operands(64, 64, 64)
            wanted = a @ b
            for _ in range(4):
                shared = a.copy(order="F")
                gemm("cblas_dgemm", shared, b, shared)
            gemm("cblas_dgemm", a, b, c)
            print(json.dumps([numpy.allclose(c, wanted), reasons()]))
            """)
        self.assertEqual(found[0], True)
        self.assertEqual(found[1]["device failed"], 4)
        self.assertGreaterEqual(found[1]["device"], 2)


run()
