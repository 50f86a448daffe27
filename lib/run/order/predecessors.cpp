// SPDX-License-Identifier: Apache-2.0
#include "run/order/predecessors.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace sg {

namespace {

// For each submission a bit for each before it.
class earlier_bits {
 public:
  explicit earlier_bits(std::size_t count) : rows_(count) {
    for (std::size_t i = 0; i < count; ++i) rows_[i].resize(i / word_bits + 1);
  }
  void set(std::size_t i, std::size_t j) noexcept { rows_[i][j / word_bits] |= std::uint64_t(1) << j % word_bits; }
  void add(std::size_t i, std::size_t j) noexcept {  // j's bits to i's
    for (std::size_t w = 0; w < rows_[j].size(); ++w) rows_[i][w] |= rows_[j][w];
  }
  // Calls `visit` for the bits of `i` that `others` lacks, from the highest to the lowest; it may add to the others.
  template <class F>
  void for_each_but(std::size_t i, const earlier_bits &others, F visit) const {
    for (std::size_t w = rows_[i].size(); w-- > 0;) {
      std::uint64_t word = rows_[i][w];
      while (const std::uint64_t left = word & ~others.rows_[i][w]) {
        const int bit = std::bit_width(left) - 1;
        word ^= std::uint64_t(1) << bit;
        visit(w * word_bits + static_cast<std::size_t>(bit));
      }
    }
  }

 private:
  static constexpr std::size_t word_bits = 64;
  std::vector<std::vector<std::uint64_t>> rows_;
};

// The bounds of memory that a submission accesses.
struct bounds {
  std::uintptr_t lo, hi;
  bool writes;
  std::size_t submission;
};

std::vector<bounds> bounds_of(std::span<const ordered_submission> submissions) {
  constexpr std::size_t most = 16;  // of more accesses only the bounds of all reads, and of all writes
  std::vector<bounds> all;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    const std::span<const access> accesses = submissions[i].accesses;
    if (accesses.size() <= most) {
      for (const access &each : accesses) all.push_back({each.bytes.lo, each.bytes.hi, each.writes, i});
      continue;
    }
    for (const bool writes : {false, true}) {
      bounds whole{UINTPTR_MAX, 0, writes, i};
      for (const access &each : accesses) {
        if (each.writes != writes) continue;
        whole.lo = std::min(whole.lo, each.bytes.lo);
        whole.hi = std::max(whole.hi, each.bytes.hi);
      }
      if (whole.lo < whole.hi) all.push_back(whole);
    }
  }
  return all;
}

// Sets the bits of submissions with bounds that overlap, at least one of which writes. In the order of their first
// bytes each meets those before it that have not ended: writes meet all, reads only writes.
void set_candidates(std::span<const ordered_submission> submissions, earlier_bits &candidates) {
  std::vector<bounds> all = bounds_of(submissions), reads, writes;
  std::sort(all.begin(), all.end(), [](const bounds &x, const bounds &y) { return x.lo < y.lo; });
  for (const bounds &each : all) {
    const auto meet = [&](std::vector<bounds> &open) {
      std::erase_if(open, [&](const bounds &other) { return other.hi <= each.lo; });
      for (const bounds &other : open)
        if (other.submission != each.submission)
          candidates.set(std::max(other.submission, each.submission), std::min(other.submission, each.submission));
    };
    meet(writes);
    if (each.writes) meet(reads);
    (each.writes ? writes : reads).push_back(each);
  }
}

bool conflict(std::span<const access> earlier, std::span<const access> later) noexcept {
  for (const access &x : earlier)
    for (const access &y : later)
      if ((x.writes || y.writes) && overlap(x.bytes, y.bytes)) return true;
  return false;
}

}  // namespace

std::vector<std::vector<std::int32_t>> predecessors_of(std::span<const ordered_submission> submissions) {
  const std::size_t count = submissions.size();
  earlier_bits candidates(count), after(count);  // `after` transitively
  set_candidates(submissions, candidates);
  std::unordered_map<std::int64_t, std::size_t> latest;  // of each stream
  std::vector<std::vector<std::int32_t>> before(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t of_stream = count;  // none
    if (submissions[i].stream >= 0) {
      const auto [found, is_first] = latest.try_emplace(submissions[i].stream, i);
      if (!is_first) candidates.set(i, of_stream = std::exchange(found->second, i));
    }
    candidates.for_each_but(i, after, [&](std::size_t j) {
      if (j != of_stream && !conflict(submissions[j].accesses, submissions[i].accesses)) return;
      before[i].push_back(static_cast<std::int32_t>(j));
      after.set(i, j);
      after.add(i, j);
    });
  }
  return before;
}

}  // namespace sg
