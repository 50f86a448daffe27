// SPDX-License-Identifier: Apache-2.0
// What a GEMM over many ranks must at least receive over a network, and how to cut it. In words: elements.
#pragma once

#include <cstdint>
#include <optional>

namespace sg::cli {

struct whole_gemm {
  std::int64_t m = 0, n = 0, k = 0;
  double products() const noexcept { return double(m) * double(n) * double(k); }
  double elements() const noexcept { return double(m) * double(n) + double(m) * double(k) + double(k) * double(n); }
};

// Words that some rank receives, whatever the algorithm, if the ranks share the work equally, each begins with its
// share of A and B and ends with that of C: memory-independent bound of Al Daas et al. (arXiv:2205.13407), and that of
// Smith et al. (arXiv:1702.02017) for ranks that hold `memory` words; 0: any number.
double least_received(const whole_gemm &what, double ranks, double memory);

// Ranks as a grid: p cut the rows of C, q its columns, r the depth.
struct rank_grid {
  std::int64_t p = 1, q = 1, r = 1;
  whole_gemm block(const whole_gemm &what) const noexcept;
  // Words that a rank receives: what it lacks of its blocks of A and B, and partial sums of its share of C's block.
  double received(const whole_gemm &what) const noexcept;
};
// The grid that receives least, of those whose blocks fit `memory` words (0: any); r is `depth` if that is not 0.
// Empty: there is none.
std::optional<rank_grid> best_grid(const whole_gemm &what, std::int64_t ranks, double memory, std::int64_t depth);

// The least number of ranks for which the network takes longer than the local work, if that takes `work` seconds in all
// and a word `seconds_of_word`; 0: no number.
double network_takes_over(const whole_gemm &what, double work, double seconds_of_word, double memory);

}  // namespace sg::cli
