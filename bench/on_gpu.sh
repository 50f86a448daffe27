#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every suite that needs a GPU, one record each. Usage: on_gpu.sh FOLDER, with `streamgemm` in PATH; PEERS names the module
# libstreamgemm-bench-cuda.so.
set -u
out=$1
here=$(dirname "$0")
mkdir -p "$out"
for suite in ${SUITES:-host outofcore resident split small heads priority graph}; do
  seconds=${SECONDS_EACH:-3}
  [ "$suite" = priority ] && seconds=$((seconds * 7)) # its time is shared by seven scenes, and a percentile wants many samples
  streamgemm bench "$suite" --device cuda:0 --peers "$PEERS" --seconds "$seconds" --json "$out/$suite.json" || exit 1
done
[ -f "$out/host.json" ] && python3 "$here/torch_host.py" "$out/host.json"
