#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All that is measured on a machine of several GPUs, within ten minutes: what was predicted without them, the conformance suite and the random
# testers over all of them for a minute, the links, and `streamgemm bench gpus` on 1, 2, 4, ... of them with what was measured of the links.
# Usage: several_gpus.sh BUILD FOLDER [DEVICES [MODEL]], all GPUs and the sim:h200xN of their number by default; PEERS may name the module
# libstreamgemm-bench-cuda.so, XKBLAS libxkblas.so (xkblas.sh). FOLDER gets calibration.txt, machine.json, gpus.json, gpus_drawn.json, predicted.txt, tests.txt and, with XKBLAS, what bench/xkblas.sh writes.
# Exits with 1 when a test fails.
set -u
build=$1 out=$2
program() { find "$build" -type f -name "$1" ! -path '*/emulated/*' -perm -u+x | head -1; }
export SG_PLUGIN_PATH="${SG_PLUGIN_PATH:-$(program libstreamgemm-cuda.so)}"
streamgemm=$(program streamgemm)
mkdir -p "$out"
count_of_gpus() {
  "$streamgemm" info --json | python3 -c 'import json, sys; print(sum(d["name"].startswith("cuda:") for d in json.load(sys.stdin)["devices"]))'
}
count=$(count_of_gpus)
devices=${3:-cuda:$(seq -s , 0 $((count - 1)))}
model=${4:-sim:h200x$count}

echo "predicted by $model"
for case in "16384x16384x16384 f32" "8192x8192x8192 f32" "16384x16384x16384 bf16" "30000x30000x3000 f64"; do
  read -r shape type <<<"$case"
  for ((n = 1; n <= count; n *= 2)); do
    for from in pinned pageable; do
      "$streamgemm" plan "$shape" --dtype "$type" --from $from --device "$model" --devices $n |
        awk -v what="$type $shape $from, $n devices" '/^predicted|^bound/ {printf "%s %s ", $1, $2 " " $3} END {print what}'
    done
  done
done | tee "$out/predicted.txt"

failed=0
tested() { # SECONDS COMMAND: it ends in time with 0
  timeout "$@" >"$out/tested.log" 2>&1
  local status=$?
  echo "${*:2}: exit $status, $(grep -c '^\[       OK' "$out/tested.log") passed"
  [ $status = 0 ] || { failed=1 && grep -A 12 "Failure$" "$out/tested.log" || tail -n 30 "$out/tested.log"; }
}
{
  export SG_TEST_DEVICE=cuda:0 SG_TEST_DEVICES=cuda:0 SG_TEST_SEVERAL=$devices
  tested 100 "$(program conformance)" --gtest_filter='peers.*'
  tested 100 "$(program api_tests)" several_devices
  tested 100 "$(program api_tests)" all_reduce
  tested 100 "$(program api_tests)" pipeline --gtest_filter='pipelines_on_several_devices.*'
  tested 100 "$(program api_tests)" replicas
  for kind in random_test random_layers_test random_pipelines_test; do
    tested 60 "$(program $kind)" --device "$devices" --seconds 20
  done
} | tee "$out/tests.txt"
grep -q 'exit [1-9]' "$out/tests.txt" && failed=1

"$streamgemm" calibrate --device "$devices" -o "$out/machine.json" | tee "$out/calibration.txt" | tail -n $((4 * count))
export SG_CALIBRATION=$out/machine.json
"$streamgemm" bench gpus --device "$devices" ${PEERS:+--peers "$PEERS"} --seconds 0.6 --limit 240 --json "$out/gpus.json"
"$streamgemm" bench gpus --device "$devices" --draw 60 --seconds 0.3 --limit 60 --json "$out/gpus_drawn.json"
[ -z "${XKBLAS:-}" ] || "$(dirname "$0")/xkblas.sh" "$(program xkblas)" "$out" || failed=1
exit $failed
