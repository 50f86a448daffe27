#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each defect that planted.c can commit is noticed by the test that is there for it, and by none of them without it.
planted_test.py SHIM FOLDER-OF-THE-TESTS"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

# Defect: the program that must notice, and its arguments.
DEFECTS = {
    "reads-c": ("gemm_rules_test", "*beta_zero*"),
    "reads-a": ("gemm_rules_test", "*not_needed*"),
    "skips-zeros": ("gemm_rules_test", "*zero_times_nan*"),
    "saturates": ("gemm_rules_test", "*i8_extremes*"),
    "tf32": ("gemm_rules_test", "*f32_is_computed*"),
    "one-bit-now-and-then": ("gemm_rules_test", "*same_bits*"),
    "scales-wrongly": ("gemm_types_test", "*every_op_and_layout/cpu_f64*"),
    "forgets-conjugation": ("gemm_types_test", "*every_op_and_layout/cpu_c64*"),
    "writes-the-gap": ("gemm_types_test", "*every_op_and_layout/cpu_f64*"),
    "inexact": ("gemm_types_test", "*edge/cpu_f64*"),
    "inexact-in-f32": ("gemm_types_test", "*edge/cpu_f32*"),
    "loses-an-item": ("gemm_plans_test", "*batches/cpu"),
    "loses-a-member": ("gemm_grouped_test", "*each_its_own*"),
    "copies-the-gaps": ("copy_test", "*nothing_behind*"),
    "forgets-the-last-run": ("copy_test", "*rectangles*"),
    "does-not-wait": ("job_test", "*wait_poll*"),
    "times-out-early": ("job_test", "*wait_poll*"),
    "does-not-cancel": ("job_test", "*queued_job_can_be_cancelled*"),
    "hides-failures": ("job_test", "*depends_on_a_cancelled*"),
    "names-the-wrong-one": ("job_test", "*jobs.wait_any/cpu"),
    "forgets-after": ("job_test", "*after_orders*"),
    "forgets-the-order": ("order_test", "*partial_overlap*"),
    "forgets-the-stream": ("order_test", "*two_streams*"),
    "ignores-priorities": ("order_test", "*overtakes*"),
    "calls-back-twice": ("callback_test", "*called_once*"),
    "happens-early": ("stream_test", "*an_event_happens*"),
    "does-not-wait-for-events": ("stream_test", "*waits_for_the_event*"),
    "forgets-the-tag": ("queue_test", "*every_tag*"),
    "mixes-up-tags": ("queue_test", "*every_tag*"),
    "promises-too-much": ("plan_test", "*eight_thousand*"),
    "promises-too-little": ("plan_test", "*eight_thousand*"),
    "forgives-double-release": ("lifecycle_test", "cpu"),
    "does-not-count": ("lifecycle_test", "cpu"),
    "says-nothing": ("bad_product_test", "*products*"),
}


def passes(shim, program, argument, defect):
    """Does the test succeed with the defect in front of the library? A hang or a crash is no success."""
    command = [program, argument if program.name == "lifecycle_test" else f"--gtest_filter={argument}"]
    environment = {**os.environ, "LD_PRELOAD": shim, "PLANTED_DEFECT": defect}
    try:
        run = subprocess.run(command, env=environment, capture_output=True,
                             timeout=300 if defect == "none" else 20)
    except subprocess.TimeoutExpired:
        return False
    if b"Running 0 tests" in run.stdout:
        sys.exit(f"no test of {program.name} is called {argument}")
    return run.returncode == 0


def main():
    shim, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # who does not notice may hang until its time is over

        def attempts(of):
            """Each of (defect, program, argument), and whether the test succeeds."""
            return zip(of, pool.map(lambda x: passes(shim, folder / x[1], x[2], x[0]), of))

        for (_, program, argument), succeeds in attempts([("none", *test) for test in sorted(set(DEFECTS.values()))]):
            if not succeeds:
                failures += 1
                print(f"{program} {argument} fails without any defect", file=sys.stderr)
        for (defect, program, argument), succeeds in attempts([(defect, *test) for defect, test in DEFECTS.items()]):
            if succeeds:
                failures += 1
                print(f"{program} {argument} does not notice: {defect}", file=sys.stderr)
    print(f"{len(DEFECTS)} defects, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
