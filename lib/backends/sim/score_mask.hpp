// SPDX-License-Identifier: Apache-2.0
// The masks of an attention on a block of its scores.
#pragma once

#include <streamgemm/backend.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backends/common/score_mask.hpp"
#include "layers.hpp"

namespace sg::sim {

struct score_mask_operands {
  std::byte *scores;
  const std::byte *bias, *visible;
  const std::int32_t *query_lengths, *key_lengths;
};

// The command's own pointers are not used; those to masks may be NULL.
inline void run_score_mask(const sg_backend_score_mask &what, const score_mask_operands &from) {
  with_layer_type(what.bias_type, [&]<class Traits>() {
    using real = typename Traits::sum;
    for (std::int64_t r = 0; r < what.rows; ++r) {
      const score_row x = score_row_of(what, r, from.query_lengths, from.key_lengths);
      real *const scores = reinterpret_cast<real *>(from.scores) + r * what.scores_row;
      for (std::int64_t j = 0; j < what.cols; ++j) {
        const std::int64_t key = what.first_key + j;
        bool hides = j < x.first || j >= x.end;
        if (!hides && from.bias) {
          const auto bias = static_cast<real>(Traits::load(stored_at<Traits>(from.bias)[x.index_in(what.bias) + key]));
          hides = bias == -real(INFINITY);
          scores[j] += bias;
        }
        if (!hides && from.visible) hides = from.visible[x.index_in(what.visible) + key] == std::byte{0};
        if (hides) scores[j] = -real(INFINITY);
      }
    }
  });
}

}  // namespace sg::sim
