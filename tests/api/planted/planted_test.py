#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each defect of planted.c makes its test fail; without a defect all these tests succeed.
planted_test.py SHIM API-TESTS LIFECYCLE-TEST"""
import concurrent.futures
import os
import subprocess
import sys

# Defect: the topic whose tests must fail, and a filter of them.
DEFECTS = {
    "reads-c": ("gemm_rules", "*beta_zero*"),
    "reads-a": ("gemm_rules", "*not_needed*"),
    "skips-zeros": ("gemm_rules", "*zero_times_nan*"),
    "saturates": ("gemm_rules", "*i8_extremes*"),
    "tf32": ("gemm_rules", "*f32_is_computed*"),
    "flips-a-bit-sometimes": ("gemm_rules", "*same_bits*"),
    "scales-wrongly": ("gemm_types", "*every_op_and_layout/cpu_f64*"),
    "drops-conjugation": ("gemm_types", "*every_op_and_layout/cpu_c64*"),
    "writes-the-gap": ("gemm_types", "*every_op_and_layout/cpu_f64*"),
    "inexact": ("gemm_types", "*edge/cpu_f64*"),
    "inexact-in-f32": ("gemm_types", "*edge/cpu_f32*"),
    "drops-an-item": ("gemm_plans", "*batches/cpu"),
    "drops-a-member": ("gemm_grouped", "*each_its_own*"),
    "copies-the-gaps": ("copy", "*nothing_behind*"),
    "drops-last-run": ("copy", "*rectangles*"),
    "does-not-wait": ("job", "*wait_poll*"),
    "times-out-early": ("job", "*wait_poll*"),
    "does-not-cancel": ("job", "*queued_job_can_be_cancelled*"),
    "hides-failures": ("job", "*dependents_of_a_cancelled*"),
    "returns-wrong-index": ("job", "*jobs.wait_any/cpu"),
    "drops-after": ("job", "*after_orders*"),
    "drops-data-order": ("order", "*partial_overlap*"),
    "drops-stream": ("order", "*two_streams*"),
    "ignores-priorities": ("order", "*overtakes*"),
    "calls-back-twice": ("callback", "*called_once*"),
    "event-completes-early": ("stream", "*an_event_completes*"),
    "does-not-wait-for-events": ("stream", "*waits_for_the_event*"),
    "drops-tag": ("queue", "*every_tag*"),
    "swaps-tags": ("queue", "*every_tag*"),
    "predicts-too-fast": ("plan", "*eight_thousand*"),
    "predicts-too-slow": ("plan", "*eight_thousand*"),
    "accepts-double-release": ("lifecycle", "cpu"),
    "skips-retain": ("lifecycle", "cpu"),
    "empty-error-message": ("bad_gemm", "*descriptors*"),
}


def passes(shim, command, defect):
    """Does the test succeed with the defect in front of the library? A hang or a crash is a failure."""
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

    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # a test that fails may hang until its time limit

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
                print(f"{topic} {argument} does not detect {defect}", file=sys.stderr)
    print(f"{len(DEFECTS)} defects, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
