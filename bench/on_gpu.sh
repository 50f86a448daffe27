#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every suite that needs a GPU, one record each, as long as the records in results/ took. Usage: on_gpu.sh FOLDER, with
# `streamgemm` in PATH; PEERS names the module libstreamgemm-bench-cuda.so; SUITES, if set, the suites.
set -u
out=$1
here=$(dirname "$0")
mkdir -p "$out"
for suite in ${SUITES:-host outofcore resident accuracy split small heads priority graph streams overlap}; do
  case $suite in
    host) seconds=0.6 ;;
    outofcore | accuracy) seconds=1 ;;
    small) seconds=4 ;; # shared by many variants, whose bursts vary with the host's cores
    resident) seconds=5 ;; # its ratios are of a few percent, and a card that heats up differs by as much from run to run
    priority) seconds=5 ;; # shared by nine scenes, and a percentile needs many samples
    *) seconds=0.5 ;;
  esac
  streamgemm bench "$suite" --device cuda:0 --peers "$PEERS" --seconds "$seconds" --json "$out/$suite.json" || exit 1
done
[ ! -f "$out/host.json" ] || python3 "$here/torch_host.py" "$out/host.json"
