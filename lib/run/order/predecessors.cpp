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
  // Calls `visit` for the bits of `i` that `others` has not, from the highest to the lowest; it may add to the others.
  template <class F>
  void for_each_but(std::size_t i, const earlier_bits &others, F visit) const {
    for (std::size_t w = rows_[i].size(); w-- > 0;)
      while (const std::uint64_t left = rows_[i][w] & ~others.rows_[i][w])
        visit(w * word_bits + static_cast<std::size_t>(std::bit_width(left)) - 1);
  }

 private:
  static constexpr std::size_t word_bits = 64;
  std::vector<std::vector<std::uint64_t>> rows_;
};

struct range {
  const access *by;
  std::size_t submission;
};

// Sets the bits of submissions that access the same bytes, at least one of which writes. In the order of their first
// bytes each range meets those before it that have not ended: writes meet all, reads only writes.
void set_conflicts(std::span<const ordered_submission> submissions, earlier_bits &conflicts) {
  std::vector<range> ranges, reads, writes;
  for (std::size_t i = 0; i < submissions.size(); ++i)
    for (const access &each : submissions[i].accesses) ranges.push_back({&each, i});
  std::sort(ranges.begin(), ranges.end(),
            [](const range &x, const range &y) { return x.by->bytes.lo < y.by->bytes.lo; });
  for (const range &each : ranges) {
    const auto meet = [&](std::vector<range> &open) {
      std::erase_if(open, [&](const range &other) { return other.by->bytes.hi <= each.by->bytes.lo; });
      for (const range &other : open)
        if (other.submission != each.submission && overlap(other.by->bytes, each.by->bytes))
          conflicts.set(std::max(other.submission, each.submission), std::min(other.submission, each.submission));
    };
    meet(writes);
    if (each.by->writes) meet(reads);
    (each.by->writes ? writes : reads).push_back(each);
  }
}

}  // namespace

std::vector<std::vector<std::int32_t>> predecessors_of(std::span<const ordered_submission> submissions) {
  const std::size_t count = submissions.size();
  earlier_bits conflicts(count), after(count);  // `after` transitively
  set_conflicts(submissions, conflicts);
  std::unordered_map<std::int64_t, std::size_t> latest;  // of each stream
  std::vector<std::vector<std::int32_t>> before(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (submissions[i].stream >= 0) {
      const auto [found, is_first] = latest.try_emplace(submissions[i].stream, i);
      if (!is_first) conflicts.set(i, std::exchange(found->second, i));
    }
    conflicts.for_each_but(i, after, [&](std::size_t j) {
      before[i].push_back(static_cast<std::int32_t>(j));
      after.set(i, j);
      after.add(i, j);
    });
  }
  return before;
}

}  // namespace sg
