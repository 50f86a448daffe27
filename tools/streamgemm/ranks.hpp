// SPDX-License-Identifier: Apache-2.0
// Lower bound of the traffic of a GEMM over many ranks, and the grids that divide it. A word is an element.
#pragma once

#include <cstdint>
#include <optional>

namespace sg::cli {

struct element_bytes {
  double in = 0, out = 0;  // of A and B, of C
};

struct whole_gemm {
  std::int64_t m = 0, n = 0, k = 0;
  double products() const noexcept { return double(m) * double(n) * double(k); }
  double elements() const noexcept { return double(m) * double(n) + double(m) * double(k) + double(k) * double(n); }
  double bytes(const element_bytes &size) const noexcept {
    return size.in * double(k) * (double(m) + double(n)) + size.out * double(m) * double(n);
  }
};

// Words that some rank receives in every algorithm in which the ranks share the work equally, each begins with its
// share of A and B and ends with that of C: the memory-independent bound of Al Daas et al. (arXiv:2205.13407). Bounds
// by the memory of a rank (Smith et al., arXiv:1702.02017: 2 mnk / (P sqrt(S)) - 2 S) are below 0 where a whole block
// fits, as in these grids: then S is at least 3 (mnk / P)^(2/3).
double least_received(const whole_gemm &what, double ranks);

// Ranks as a grid: p cut the rows of C, q its columns, r the depth.
struct rank_grid {
  std::int64_t p = 1, q = 1, r = 1;
  whole_gemm block(const whole_gemm &what) const noexcept;
  // Bytes that a rank receives: the other ranks' shares of its blocks of A and B, and partial sums of its share of C's
  // block.
  double received(const whole_gemm &what, const element_bytes &size) const noexcept;
};
// The grid that receives least, of those whose blocks fit `memory` bytes (0: any); r is `depth` if that is not 0.
// Empty: there is none.
std::optional<rank_grid> best_grid(const whole_gemm &what, const element_bytes &size, std::int64_t ranks, double memory,
                                   std::int64_t depth);

// The least number of ranks for which the network takes longer than the local work, if that takes `work` seconds in all
// and a word `seconds_of_word`; 0: no number.
double network_takes_over(const whole_gemm &what, double work, double seconds_of_word);

}  // namespace sg::cli
