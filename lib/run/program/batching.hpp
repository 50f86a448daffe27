// SPDX-License-Identifier: Apache-2.0
// Decides which GEMMs of a possible batch are launched unbatched: a batch takes as long as its deepest GEMM needs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

namespace sg {

// For `count` GEMMs in descending order of min_batch_size (ops/gemm.hpp): the number at the front to leave unbatched
// for the least total time. `least(i)` is the min_batch_size of the i-th. The unit of time is one unbatched GEMM: the
// batch takes the min_batch_size of its first GEMM.
template <class Least>
std::size_t faster_unbatched(std::size_t count, Least &&least) noexcept {
  std::size_t best = 0, best_time = count;
  for (std::size_t unbatched = 0; unbatched <= count; ++unbatched) {
    const std::size_t time = unbatched + (unbatched < count ? least(unbatched) : 0);
    if (unbatched > 0 && time >= best_time) continue;
    best = unbatched;
    best_time = time;
  }
  return best;
}

// The indices of the GEMMs to leave unbatched. Only GEMMs of one `kind(i)` can share a batch.
template <class Kind, class Least>
std::vector<std::size_t> unbatched_items(std::vector<std::size_t> gemms, Kind &&kind, Least &&least) {
  std::sort(gemms.begin(), gemms.end(), [&](std::size_t x, std::size_t y) {
    return std::tuple(kind(x), least(y), x) < std::tuple(kind(y), least(x), y);
  });
  std::vector<std::size_t> result;
  for (std::size_t first = 0, end; first < gemms.size(); first = end) {
    for (end = first; end < gemms.size() && kind(gemms[end]) == kind(gemms[first]);) ++end;
    const std::size_t unbatched = faster_unbatched(end - first, [&](std::size_t i) { return least(gemms[first + i]); });
    for (std::size_t i = first; i < first + unbatched; ++i) result.push_back(gemms[i]);
  }
  return result;
}

}  // namespace sg
