// SPDX-License-Identifier: Apache-2.0
#include "attention.hpp"

#include <algorithm>
#include <cmath>

#include "softmax.hpp"

namespace sg_reference {

real loss_of(const attention_shape &s, const attention_values &values, const std::vector<real> &dout, real scale) {
  real loss = 0;
  std::vector<real> weights(static_cast<std::size_t>(s.keys));
  const auto at = [](const std::vector<real> &of, std::int64_t index) { return of[std::size_t(index)]; };
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const std::int64_t of = b * s.kv_heads + h / (s.heads / s.kv_heads), row = (b * s.heads + h) * s.queries + i;
        const std::int64_t visible = s.causal ? std::clamp<std::int64_t>(i + s.mask_offset + 1, 0, s.keys) : s.keys;
        for (std::int64_t j = 0; j < visible; ++j) {
          real score = 0;
          for (std::int64_t d = 0; d < s.width; ++d)
            score += at(values.q, row * s.width + d) * at(values.k, (of * s.keys + j) * s.width + d);
          weights[std::size_t(j)] = scale * score;
        }
        softmax(weights.data(), s.keys, visible);
        for (std::int64_t j = 0; j < visible; ++j)
          for (std::int64_t d = 0; d < s.value_width; ++d)
            loss += weights[std::size_t(j)] * at(values.v, (of * s.keys + j) * s.value_width + d) *
                    at(dout, row * s.value_width + d);
      }
  return loss;
}

}  // namespace sg_reference
