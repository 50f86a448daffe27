// SPDX-License-Identifier: Apache-2.0
// The masks of an attention on a block of its scores, on one thread.
#include "backends/common/score_mask.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "backends/common/types.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

template <class Real>
constexpr Real hidden_score = -std::numeric_limits<Real>::infinity();

template <class Real>
void add_bias(Real *scores, const Real *bias, std::int64_t n) noexcept {
  for (std::int64_t j = 0; j < n; ++j) {
    const Real sum = scores[j] + bias[j];
    scores[j] = bias[j] == hidden_score<Real> ? bias[j] : sum;
  }
}

template <class Real>
void hide_invisible(Real *scores, const std::uint8_t *visible, std::int64_t n) noexcept {
  for (std::int64_t j = 0; j < n; ++j) scores[j] = visible[j] != 0 ? scores[j] : hidden_score<Real>;
}

template <class Real>
sg_status mask_scores(const sg_backend_score_mask &what, workspace &space) noexcept {
  const std::int64_t size = element_size(what.bias_type);
  Real *widened = nullptr;
  if (what.bias.data != nullptr && what.bias_type != what.type) {
    widened = static_cast<Real *>(space.get(scratch::converted, static_cast<std::size_t>(what.cols) * sizeof(Real)));
    if (widened == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  }
  poll end(space);
  for (std::int64_t r = 0; r < what.rows; ++r) {
    const score_row x = score_row_of(what, r, what.query_lengths, what.key_lengths);
    Real *const scores = static_cast<Real *>(what.scores) + r * what.scores_row;
    const std::int64_t n = x.end - x.first, first = what.first_key + x.first;
    std::fill(scores, scores + x.first, hidden_score<Real>);
    std::fill(scores + x.end, scores + what.cols, hidden_score<Real>);
    if (n > 0 && what.bias.data != nullptr) {
      const void *bias = static_cast<const char *>(what.bias.data) + (x.index_in(what.bias) + first) * size;
      if (widened != nullptr) widen(widened, bias, what.bias_type, n), bias = widened;
      add_bias(scores + x.first, static_cast<const Real *>(bias), n);
    }
    if (n > 0 && what.visible.data != nullptr)
      hide_invisible(scores + x.first,
                     static_cast<const std::uint8_t *>(what.visible.data) + x.index_in(what.visible) + first, n);
    if (end.stops(what.cols)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

}  // namespace

sg_status run_score_mask(const sg_backend_score_mask &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? mask_scores<double>(what, space) : mask_scores<float>(what, space);
}

}  // namespace sg::cpu
