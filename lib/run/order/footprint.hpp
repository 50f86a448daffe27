// SPDX-License-Identifier: Apache-2.0
// The bytes that an operand covers, and overlaps of such byte sets.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sg {

// `runs` runs of `run` bytes, `pitch` bytes apart, from address `lo`. One run: pitch == run.
struct footprint {
  std::uintptr_t lo = 0;
  std::uintptr_t hi = 0;  // one past the last byte
  std::int64_t run = 0;
  std::int64_t pitch = 0;

  static footprint rectangle(const void *start, std::int64_t run, std::int64_t runs, std::int64_t pitch) noexcept {
    const auto lo = reinterpret_cast<std::uintptr_t>(start);
    if (runs == 1 || run == pitch) return {lo, lo + static_cast<std::uintptr_t>(run * runs), run * runs, run * runs};
    return {lo, lo + static_cast<std::uintptr_t>((runs - 1) * pitch + run), run, pitch};
  }
  std::int64_t runs() const noexcept { return (static_cast<std::int64_t>(hi - lo) - run) / pitch + 1; }
  // The same byte pattern from another address.
  footprint at(const void *start) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(start);
    return {address, address + (hi - lo), run, pitch};
  }
  bool operator==(const footprint &) const = default;
};

inline bool overlap(const footprint &a, const footprint &b) noexcept;

// For different pitches: compares the runs of one with the whole of the other.
[[gnu::noinline]] inline bool runs_overlap(const footprint &a, const footprint &b) noexcept {
  const bool few_are_bs = b.pitch > a.pitch;
  const footprint &one = few_are_bs ? b : a, &other = few_are_bs ? a : b;
  const auto run_at = [&](std::int64_t i) {
    const std::uintptr_t lo = one.lo + static_cast<std::uintptr_t>(i * one.pitch);
    return footprint{lo, lo + static_cast<std::uintptr_t>(one.run), one.run, one.run};
  };
  // The runs from the first that reaches `other` to the last that begins before its end.
  const std::int64_t behind = other.lo > one.lo ? static_cast<std::int64_t>(other.lo - one.lo) : 0;
  const std::int64_t count = one.runs();
  for (std::int64_t i = behind / one.pitch; i < count && run_at(i).lo < other.hi; ++i)
    if (overlap(run_at(i), other)) return true;
  return false;
}

// Exact.
inline bool overlap(const footprint &a, const footprint &b) noexcept {
  if (a.lo >= b.hi || b.lo >= a.hi) return false;
  if (a.lo > b.lo) return overlap(b, a);
  // b starts inside a's range. Read both in a's coordinates: (position in a run, number of the run).
  const bool b_is_one_run = b.runs() == 1;
  if (a.pitch == a.run) return true;  // a has no gaps
  if (a.pitch != b.pitch && !(b_is_one_run && b.run <= a.pitch)) return b_is_one_run || runs_overlap(a, b);
  const auto distance = static_cast<std::int64_t>(b.lo - a.lo);
  const std::int64_t position = distance % a.pitch, first = distance / a.pitch;
  const std::int64_t a_runs = a.runs();
  if (position < a.run && first < a_runs) return true;      // b's first column starts in a's rows
  const std::int64_t wrapped = position + b.run - a.pitch;  // the bytes that reach into the next run
  return wrapped > 0 && first + 1 < a_runs;
}

// The end of the run of `in` that contains the address; the address itself if none does.
inline std::uintptr_t run_end(const footprint &in, std::uintptr_t address) noexcept {
  if (address < in.lo || address >= in.hi) return address;
  const auto position = static_cast<std::int64_t>(address - in.lo) % in.pitch;
  return position < in.run ? address + static_cast<std::uintptr_t>(in.run - position) : address;
}

// Whether `part` is a subset of `whole`. Of several runs with another pitch conservative: false.
inline bool covers(const footprint &whole, const footprint &part) noexcept {
  if (part.lo < whole.lo || part.hi > whole.hi) return false;
  if (whole.pitch == whole.run) return true;  // no gaps
  if (part.pitch != whole.pitch && part.runs() != 1) return false;
  return static_cast<std::int64_t>(part.lo - whole.lo) % whole.pitch + part.run <= whole.run;
}

}  // namespace sg
