#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every suite that needs a GPU, one record each. Usage: on_gpu.sh FOLDER, with `streamgemm` in PATH; PEERS names the module
# libstreamgemm-bench-cuda.so.
set -u
out=$1
here=$(dirname "$0")
mkdir -p "$out"
for suite in ${SUITES:-host outofcore resident split}; do
  streamgemm bench "$suite" --device cuda:0 --peers "$PEERS" --seconds "${SECONDS_EACH:-3}" --json "$out/$suite.json" || exit 1
done
[ -f "$out/host.json" ] && python3 "$here/torch_host.py" "$out/host.json"
