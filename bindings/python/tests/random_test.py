# SPDX-License-Identifier: Apache-2.0
"""Random GEMMs against NumPy in higher precision: shapes, strides, exporters, lists, bias, results in any place.

SG_SOAK=1 runs ten minutes instead of ten seconds, SG_RANDOM_SECONDS=N as long; SG_RANDOM_SEED=N repeats the failure that printed it.
"""

import os
import random
import sys
import time
import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest

try:
    from hypothesis import HealthCheck, given, seed, settings
    from random_cases import cases, exported, place, values
except ImportError as missing:
    print(f"hypothesis is not here ({missing})")
    sys.exit(77)

BUDGET = float(os.environ.get("SG_RANDOM_SECONDS", "600" if os.environ.get("SG_SOAK") == "1" else "10"))
UNIT = {"f2": 2.0**-23, "f4": 2.0**-24, "f8": 2.0**-53, "c8": 2.0**-22, "c16": 2.0**-51, "i1": 0}  # of the accumulator
ROUNDING = {"f2": 2.0**-11}  # of a result that is narrower than its accumulator
TINY = {"f2": 2.0**-24, "f4": 2.0**-149, "c8": 2.0**-149}
WIDE = {"f": np.longdouble, "c": np.clongdouble, "i": np.int64}


def applied(array, op):
    return array if op == "N" else array.swapaxes(-1, -2).conj() if op == "C" else array.swapaxes(-1, -2)


def draw_bias(case, rng, result):
    """(the argument, its value as an array)"""
    shape = result.shape
    out = np.dtype(case.out_dtype)
    if not case.bias or (out.kind != "i" and result.ndim == 0):
        return None, 0
    if case.bias == "number":
        return 2, 2
    wanted = {"one": (1,), "column": shape[-1:], "row": (*shape[-2:-1], 1), "batch": (*shape[:-2], 1, *shape[-1:])}[case.bias]
    if result.ndim < 2 or case.m is None or case.n is None:
        wanted = shape[-1:]
    made = values(rng, wanted, out, case.integers)
    return made, made


def bound(case, a, b, c, wanted, bias):
    """The error bound of a result, element by element (Higham)."""
    wide = np.longdouble
    size = abs(case.alpha) * (np.abs(a).astype(wide) @ np.abs(b).astype(wide))
    size = size + abs(case.beta) * np.abs(c).astype(wide) + np.abs(np.asarray(bias).astype(WIDE["c"]).real)
    n, unit = case.k + 5, UNIT[case.dtype]
    u_out = ROUNDING.get(case.out_dtype, 0)
    return u_out * np.abs(wanted) + (1 + u_out) * n * unit / (1 - n * unit) * size + (case.k + 1) * TINY.get(case.out_dtype, 0)


class Random(DeviceTest):
    def run_case(self, case, a, b, c, how):
        context = self.context
        if case.call == "gemm_async":
            return context.gemm_async(a, b, c, **how).result()
        if case.call == "matmul":
            return context.matmul(a, b, c, **how)
        if case.call == "grouped":
            copy = how.pop("copy", False)
            return context.gemm_grouped([{"a": a, "b": b, "c": c, **how}], copy=copy)[0]
        if case.call == "job" and isinstance(a, np.ndarray) and a.flags.c_contiguous and a.size and not how.get("copy"):
            return context.gemm_async(context.copy_async(np.empty_like(a), a), b, c, **how).result()
        if case.call == "plan" and 0 not in (case.m, case.n, *case.batch_a, *case.batch_b) and not how.get("copy"):
            planned = {name: how.pop(name) for name in ("op_a", "op_b", "activation")}
            try:
                plan = context.plan(a, b, c, **planned, **how)
            except sg.InvalidArgument as refused:
                if "nothing to do" not in str(refused):
                    raise
                return context.gemm(a, b, c, **planned, **how)
            with plan:
                return plan.run(a, b, c, **how)
        if case.call == "graph" and 0 not in (*case.batch_a, *case.batch_b) and not how.get("copy"):  # it records no empty batch
            graph = context.graph()
            result = graph.gemm(a, b, c, **how)
            graph.run()
            return result
        return context.gemm(a, b, c, **how)

    def check(self, case):
        rng = np.random.default_rng(case.seed)
        shape_a = (*case.batch_a, *(() if case.m is None else (case.m,)), case.k)
        shape_b = (*case.batch_b, case.k, *(() if case.n is None else (case.n,)))
        shape_a = (*shape_a[:-2], *shape_a[:-3:-1]) if case.op_a != "N" else shape_a
        shape_b = (*shape_b[:-2], *shape_b[:-3:-1]) if case.op_b != "N" else shape_b
        a, _, _ = place(values(rng, shape_a, case.dtype, case.integers), case.form_a, min(2, len(shape_a)))
        b, _, _ = place(values(rng, shape_b, case.dtype, case.integers), case.form_b, min(2, len(shape_b)))
        kind = WIDE[np.dtype(case.dtype).kind]
        x, y = applied(a, case.op_a).astype(kind), applied(b, case.op_b).astype(kind)
        product = x @ y
        item_dims = (case.m is not None) + (case.n is not None)
        before, c, rest = np.zeros(product.shape), None, None
        if case.form_c is not None:
            before = values(rng, product.shape, case.out_dtype, case.integers)
            c, memory_c, rest = place(before, case.form_c, item_dims)
        bias, bias_values = draw_bias(case, rng, product)
        wanted = np.asarray(case.alpha * product if case.dtype[0] == "c" else kind(case.alpha.real) * product)
        wanted = wanted + kind(case.beta) * before + np.asarray(bias_values).astype(kind)
        wanted = np.maximum(wanted, 0) if case.relu else wanted
        how = {"alpha": case.alpha, "beta": case.beta, "op_a": case.op_a, "op_b": case.op_b, "bias": bias}
        how["activation"] = "relu" if case.relu else None
        given_a, given_b = exported(a, case.form_a), exported(b, case.form_b)
        given_c = None if c is None else exported(c, case.form_c, may_list=False)
        try:
            try:
                result = self.run_case(case, given_a, given_b, given_c, dict(how))
            except sg.InvalidArgument as refused:
                self.assertRegex(str(refused), "copy=True|not like")
                result = self.run_case(case, given_a, given_b, given_c, {**how, "copy": True})
        except sg.Unsupported as refused:  # op C of a complex operand that is not in c's layout
            self.assertRegex(str(refused), "give both one layout")
            return
        if isinstance(result, list) and not result:
            self.assertIn(0, wanted.shape[:1])
            return
        found = np.stack(result) if isinstance(result, list) else np.asarray(c if c is not None else result)
        self.assertEqual((found.shape, found.dtype), (wanted.shape, np.dtype(case.out_dtype)))
        limit = bound(case, x, y, before, wanted, bias_values) if not case.integers else 0
        wrong = ~(np.abs(found.astype(wanted.dtype) - wanted) <= limit)
        exact = case.integers and np.abs(wanted).max(initial=0) > (2048 if case.out_dtype == "f2" else 1 << 30)
        self.assertTrue(exact or not wrong.any(), f"{wrong.sum()} of {wrong.size} elements are wrong")
        if c is not None:
            self.assertTrue((memory_c[rest] == 77).all(), "something beside the result was written")

    def test_random(self):
        until = time.monotonic() + BUDGET
        fixed = os.environ.get("SG_RANDOM_SEED")
        number, rounds = int(fixed) if fixed else random.SystemRandom().randrange(1 << 31), 0
        quiet = settings(max_examples=60, deadline=None, database=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck))
        while rounds == 0 or (time.monotonic() < until and not fixed):
            checked = seed(number)(quiet(given(cases())(lambda case: self.check(case))))
            print(f"SG_RANDOM_SEED={number}", file=sys.stderr, flush=True)  # printed first: the test may crash
            checked()
            number, rounds = number + 1, rounds + 1
        print(f"{rounds} rounds of 60 cases")


if __name__ == "__main__":
    unittest.main()
