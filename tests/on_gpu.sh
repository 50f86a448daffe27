#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tests that need a GPU, on it, and compute-sanitizer over a part of them; a line each. CI has no GPU: its tests skip
# these. Usage: tests/on_gpu.sh BUILD [DEVICE [SECONDS]], with CUDA's tools in PATH; SECONDS of random tests, 10 by default. With
# SEVERAL=cuda:0,1 contexts over these devices, too. Exits with 1 when one fails.
set -u
build=$1 device=${2:-cuda:0} random_seconds=${3:-10} jobs=${JOBS:-6}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
program() { find "$build" -type f -name "$1" ! -path '*/emulated/*' | head -1; }
export SG_CUDA_CUDNN="${SG_CUDA_CUDNN:-1}"
export SG_TEST_DEVICE="$device" SG_TEST_DEVICES="$device"
export SG_PLUGIN_PATH="${SG_PLUGIN_PATH:-$(program libstreamgemm-cuda.so)}"

number=0
run() { # its name, and the command; up to $jobs at once; a line when it has ended
  name=$1
  shift
  number=$((number + 1))
  while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do sleep 0.1; done
  (
    log=$logs/$(printf %03d $number)
    echo "$name" >"$log.name"
    begun=$SECONDS
    "$@" >"$log.out" 2>&1
    status=$?
    passed=$(grep -c '^\[       OK' "$log.out")
    echo "$name: exit $status, $passed passed, $(grep -c '^\[  SKIPPED \] .*ms)' "$log.out") skipped, $((SECONDS - begun)) s"
    case $name in process_test* | random_*) passed=1 ;; esac # they count none
    [ "$status" = 0 ] && [ "$passed" -gt 0 ] && touch "$log.passed"
  ) &
}

report() { # what the failed ones printed; what had not ended, failed
  failed=0
  for each in "$logs"/*.name; do
    [ -e "${each%.name}.passed" ] && continue
    name=$(cat "$each") log=${each%.name}.out
    failed=1
    echo "failed: $name"
    case $name in
      random_*) cat "$log" ;; # the seed and a program
      process_test*) tail -n 20 "$log" ;;
      *) grep -E -A 5 'Failure|=========' "$log" | head -60 && grep '^\[  FAILED' "$log" ;;
    esac
  done
}
trap 'trap "" TERM INT; report; kill 0; exit 143' TERM INT

run conformance "$(program conformance)"
for topic in alignment all_reduce arithmetic attention attention_backward attention_masks axpby bad_gemm bad_input blocking callback conv conv_memory convert copy cross_entropy clamp deadline dispatch downcast empty epilogue fill extreme \
  failure fair_share fill footprint foreign_memory gather gemm_grouped gemm_plans gemm_rules gemm_types gradients graph graph_update im2col interleaved job label layers limits linear metrics operation optimizer order overlap \
  partition pipeline plan plan_operations pool queue recurrent repeat repeat_layers rounding row_dot row_reduce scatter_add staging stream symmetric textbook trace triangular; do
  run $topic "$(program api_tests)" $topic
done
run interop "$(program interop_test)"
for mode in exit_beside_a_large_gemm exit_beside_a_pipeline exit_beside_threads_in_calls return_without_releasing exit_behind_release; do
  run "process_test $mode" "$(program process_test)" "$device" $mode:3
done
run "random_test for $random_seconds s" "$(program random_test)" --device "$device" --seconds "$random_seconds"
for kind in layers pipelines; do
  run "random_${kind}_test for 10 s" "$(program random_${kind}_test)" --device "$device" --seconds 10
done
if [ -n "${SEVERAL:-}" ]; then
  export SG_TEST_SEVERAL="$SEVERAL"
  run "conformance of peers" "$(program conformance)" --gtest_filter='peers.*'
  run several_devices "$(program api_tests)" several_devices
  run all_reduce "$(program api_tests)" all_reduce
  run "pipelines of several devices" "$(program api_tests)" pipeline --gtest_filter='pipelines_on_several_devices.*'
  run replicas "$(program api_tests)" replicas
  run "random_test on $SEVERAL for $random_seconds s" "$(program random_test)" --device "$SEVERAL" --seconds "$random_seconds"
  for kind in layers pipelines; do
    run "random_${kind}_test on $SEVERAL for $random_seconds s" "$(program random_${kind}_test)" --device "$SEVERAL" --seconds "$random_seconds"
  done
fi

# The library's own kernels: reductions, epilogues, splits, pointers, layers, recurrent cells, conversions of f8 and i8, narrow copies.
own='*reduc*:*f8*:*i8*:*gemm_group*:*short_compute*:*padding*:*every_direction_and_pitch*:*layers*:*convert*:*rotary*:*gather*:*windows*:*cells*:*softmax_backward*:*training*:*score_mask*:*fill*'
run "memcheck of conformance $own" compute-sanitizer --tool memcheck --error-exitcode 9 "$(program conformance)" --gtest_filter="$own"
for topic in alignment attention attention_backward attention_masks axpby clamp conv convert cross_entropy fill gather gradients graph im2col layers limits linear optimizer partition pool recurrent rounding row_dot row_reduce scatter_add symmetric triangular; do
  run "memcheck of $topic" compute-sanitizer --tool memcheck --error-exitcode 9 "$(program api_tests)" $topic
done
own='*reduc*:*every_value_of_f8*:*f8_compute*:*gemm_group*:*layers*special*'
run "racecheck of conformance $own" compute-sanitizer --tool racecheck --error-exitcode 9 "$(program conformance)" --gtest_filter="$own"
wait
report
exit $failed
