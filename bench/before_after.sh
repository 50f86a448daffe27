#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares two builds of this library on one device: suites of `streamgemm bench`, without peers, by the build before
# and the build after alternately (A B, B A, A B ...), each run a process of its own. Rows that `streamgemm bench compare`
# finds slower are then measured again, in rounds of their own. Prints its tables, and writes OUT/first.json and
# OUT/again.json for `streamgemm report`; exits with 1 when a row is slower both times.
#
# Usage: before_after.sh BEFORE AFTER DEVICE OUT SUITE[=TEXT]...
# BEFORE and AFTER are build folders, OUT is where the records go, TEXT is for --only. Variables: TURNS, runs of each
# build (4, the fewest that give an interval; twice as many in the second measurement); CASE_SECONDS, for --seconds (0.1, which takes the fewest samples);
# LIMIT, seconds: no run starts that would finish later, and the first runs finish within two thirds of it (none).
set -u
before=$1 after=$2 device=$3 out=$4
shift 4
began=$(date +%s)
mkdir -p "$out" || exit 2

file() { find "$(cd "$1" && pwd)" -name "$2" ! -path '*/emulated/*' ! -type d | head -1; }

run() { # a build, the folder for its cache; the arguments of the program
  build=$1 cache=$2
  shift 2
  LD_LIBRARY_PATH="$(dirname "$(file "$build" 'libstreamgemm.so.?')")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    SG_PLUGIN_PATH=$(file "$build" libstreamgemm-cuda.so) XDG_CACHE_HOME=$(cd "$cache" && pwd) \
    "$(find "$build" -type f -name streamgemm | head -1)" "$@"
}

measure() { # which build, its folder, the record, SUITE[=TEXT]
  case $4 in *=*) text=${4#*=} ;; *) text= ;; esac
  seconds=${CASE_SECONDS:-0.1}
  [ "${4%%=*}" = priority ] && seconds=3 # shared by five scenes, and a percentile needs many samples
  mkdir -p "$(dirname "$3")" "$out/cache/$1"
  run "$2" "$out/cache/$1" bench "${4%%=*}" --device "$device" --only "$text" --seconds "$seconds" --json "$3" \
    >"$out/log" 2>&1 </dev/null && return
  cat "$out/log" >&2
  exit 2
}

turns() { # folder for the records, number of runs, seconds by which they finish; the suites, one a line, on stdin
  suites=$(cat)
  first=$(date +%s)
  turn=1
  while [ "$turn" -le "$2" ]; do
    now=$(date +%s)
    [ "$turn" -gt 1 ] && [ $((now - began + (now - first) / (turn - 1))) -gt "$3" ] && break
    number=0
    while IFS= read -r suite; do
      number=$((number + 1))
      order='before after'
      [ $((turn % 2)) = 0 ] && order='after before'
      for which in $order; do
        case $which in before) build=$before ;; *) build=$after ;; esac
        measure "$which" "$build" "$1/$which/$turn-$number.json" "$suite"
      done
    done <<END
$suites
END
    turn=$((turn + 1))
  done
  echo "$((turn - 1)) turns in $(($(date +%s) - first)) s" >&2
}

judge() { # first or again; exits with 1 if a row is slower. OpenBLAS and oneDNN are the same in both builds.
  run "$after" "$out/cache/after" bench compare "$out/$1/before" "$out/$1/after" --skip OpenBLAS --skip oneDNN \
    --json "$out/$1.json"
}

limit=${LIMIT:-1000000}
printf '%s\n' "$@" | turns "$out/first" "${TURNS:-4}" $((limit * 2 / 3)) || exit 2
judge first
status=$?
[ "$status" = 1 ] || exit "$status"
python3 - "$out/first.json" >"$out/slower" <<'END' || exit 2
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
print(*sorted({f"{row['suite']}={row['case']}" for row in rows if row["verdict"] == "slower"}), sep="\n")
END
turns "$out/again" "$((2 * ${TURNS:-4}))" "$limit" <"$out/slower" || exit 2
judge again
