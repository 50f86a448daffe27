#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each defect that planted.c can commit is noticed by the test that is there for it, and by none of them without it.
planted_test.py SHIM API-TESTS LIFECYCLE-TEST"""
import concurrent.futures
import os
import subprocess
import sys

# Defect: the topic whose tests must notice, and a filter of them.
DEFECTS = {
    "reads-c": ("gemm_rules", "*beta_zero*"),
    "reads-a": ("gemm_rules", "*not_needed*"),
    "skips-zeros": ("gemm_rules", "*zero_times_nan*"),
    "saturates": ("gemm_rules", "*i8_extremes*"),
    "tf32": ("gemm_rules", "*f32_is_computed*"),
    "one-bit-now-and-then": ("gemm_rules", "*same_bits*"),
    "scales-wrongly": ("gemm_types", "*every_op_and_layout/cpu_f64*"),
    "forgets-conjugation": ("gemm_types", "*every_op_and_layout/cpu_c64*"),
    "writes-the-gap": ("gemm_types", "*every_op_and_layout/cpu_f64*"),
    "inexact": ("gemm_types", "*edge/cpu_f64*"),
    "inexact-in-f32": ("gemm_types", "*edge/cpu_f32*"),
    "loses-an-item": ("gemm_plans", "*batches/cpu"),
    "loses-a-member": ("gemm_grouped", "*each_its_own*"),
    "copies-the-gaps": ("copy", "*nothing_behind*"),
    "forgets-the-last-run": ("copy", "*rectangles*"),
    "does-not-wait": ("job", "*wait_poll*"),
    "times-out-early": ("job", "*wait_poll*"),
    "does-not-cancel": ("job", "*queued_job_can_be_cancelled*"),
    "hides-failures": ("job", "*depends_on_a_cancelled*"),
    "names-the-wrong-one": ("job", "*jobs.wait_any/cpu"),
    "forgets-after": ("job", "*after_orders*"),
    "forgets-the-order": ("order", "*partial_overlap*"),
    "forgets-the-stream": ("order", "*two_streams*"),
    "ignores-priorities": ("order", "*overtakes*"),
    "calls-back-twice": ("callback", "*called_once*"),
    "happens-early": ("stream", "*an_event_happens*"),
    "does-not-wait-for-events": ("stream", "*waits_for_the_event*"),
    "forgets-the-tag": ("queue", "*every_tag*"),
    "mixes-up-tags": ("queue", "*every_tag*"),
    "promises-too-much": ("plan", "*eight_thousand*"),
    "promises-too-little": ("plan", "*eight_thousand*"),
    "forgives-double-release": ("lifecycle", "cpu"),
    "does-not-count": ("lifecycle", "cpu"),
    "says-nothing": ("bad_product", "*products*"),
}


def passes(shim, command, defect):
    """Does the test succeed with the defect in front of the library? A hang or a crash is no success."""
    environment = {**os.environ, "LD_PRELOAD": shim, "PLANTED_DEFECT": defect}
    try:
        run = subprocess.run(command, env=environment, capture_output=True,
                             timeout=300 if defect == "none" else 20)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def main():
    shim, api_tests, lifecycle_test = sys.argv[1:]
    failures = 0

    def command(topic, argument):
        return [lifecycle_test, argument] if topic == "lifecycle" else [api_tests, topic, f"--gtest_filter={argument}"]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # who does not notice may hang until its time is over

        def attempts(of):
            """Each of (defect, topic, argument), and whether the test succeeds."""
            return zip(of, pool.map(lambda x: passes(shim, command(x[1], x[2]), x[0]), of))

        for (_, topic, argument), succeeds in attempts([("none", *test) for test in sorted(set(DEFECTS.values()))]):
            if not succeeds:
                failures += 1
                print(f"{topic} {argument} fails without any defect", file=sys.stderr)
        for (defect, topic, argument), succeeds in attempts([(defect, *test) for defect, test in DEFECTS.items()]):
            if succeeds:
                failures += 1
                print(f"{topic} {argument} does not notice: {defect}", file=sys.stderr)
    print(f"{len(DEFECTS)} defects, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
