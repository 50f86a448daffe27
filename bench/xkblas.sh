#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# GEMMs by XKBlas from pinned memory on 1, 2, 4, ... GPUs, each with the best of some tile sizes: what `streamgemm bench gpus` is compared with.
# Usage: XKBLAS=/path/libxkblas.so xkblas.sh PROGRAM [FOLDER [GPUS [TILES]]]: PROGRAM is bench/xkblas, GPUS as "1 2 4" (all powers of two by default),
# TILES as "1024 2048 4096". FOLDER gets xkblas.txt, a line for each tile, and xkblas_best.txt. CASES may have other types and sizes, a line each;
# SECONDS_EACH limits one line, 60 by default. Exits with 1 when a run fails, or a row is wrong.
set -u
program=$1 out=${2:-.} library=${XKBLAS:?XKBLAS names libxkblas.so}
mkdir -p "$out"
powers() {
  local count n
  count=$(nvidia-smi --list-gpus | wc -l)
  for ((n = 1; n <= count; n *= 2)); do echo $n; done
}
gpus=${3:-$(powers)}
[ -n "$gpus" ] || { echo "no GPU is listed by nvidia-smi; name their numbers" >&2 && exit 1; }
tiles=${4:-1024 2048 4096}
: >"$out/xkblas.txt"
: >"$out/xkblas_best.txt"
failed=0
cases=${CASES:-f32 16384 16384 16384
f32 8192 8192 8192
f64 30000 30000 3000}
while read -r case; do
  for n in $gpus; do
    lines=$(for tile in $tiles; do
      # shellcheck disable=SC2086 # a type and three sizes
      timeout -k 5 "${SECONDS_EACH:-60}" "$program" "$library" $case "$n" "$tile" 5 </dev/null || echo "$case, $n GPUs, tile $tile: failed with $?"
    done | tee -a "$out/xkblas.txt")
    grep -q -e ' WRONG$' -e ': failed with' <<<"$lines" && failed=1
    echo "$lines" >&2
    # The fastest of the lines whose row is exact.
    grep ' exact$' <<<"$lines" | sed 's/^\(.*: \)\([0-9.]*\) ms/\2 \1\2 ms/' | LC_ALL=C sort -n | head -n 1 | cut -d ' ' -f 2- | tee -a "$out/xkblas_best.txt"
  done
done <<<"$cases"
exit $failed
