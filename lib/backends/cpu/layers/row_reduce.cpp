// SPDX-License-Identifier: Apache-2.0
// The operation of row_reduce.h, on one thread.
#include <algorithm>

#include "backends/common/rows.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/elements/pairwise.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

constexpr std::int64_t most_run = 2048;  // elements that stay in the first-level cache

// Elements of X in the type of the arithmetic, in `memory` if they are short.
template <class Real>
const Real *run_of(const sg_backend_row_reduce &what, std::int64_t first, std::int64_t count, float *memory) noexcept {
  const void *const from = static_cast<const char *>(what.x) + first * element_size(what.type);
  if (sum_type_of(what.type) == what.type) return static_cast<const Real *>(from);
  widen(memory, from, what.type, count);
  return reinterpret_cast<const Real *>(memory);
}

// Sums are of double: their parts of a long row of f32 differ little in size, and the roundings of f32 would add up.
void store_reduced(const sg_backend_row_reduce &what, std::int64_t row, double value) noexcept {
  if (what.reduction == SG_REDUCTION_MEAN) value /= static_cast<double>(what.cols);
  void *const to = static_cast<char *>(what.y) + row * what.y_row * element_size(what.type);
  const auto single = static_cast<float>(value);
  narrow(to, what.type, what.type == SG_DTYPE_F64 ? static_cast<const void *>(&value) : &single, 1);
}

template <class Real>
sg_status reduce_contiguous_rows(const sg_backend_row_reduce &what, workspace &space) noexcept {
  alignas(64) float memory[most_run];
  double levels[64];
  const bool sums_up = is_sum(what.reduction), is_max = what.reduction == SG_REDUCTION_MAX;
  poll end(space);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    pairwise_sums sums(levels, SG_DTYPE_F64, 1);
    Real best = no_extreme<Real>(is_max);
    std::int64_t j = 0;
    do {  // once at least
      const std::int64_t count = std::min(most_run, what.cols - j);
      const Real *const x = count > 0 ? run_of<Real>(what, i * what.x_row + j, count, memory) : nullptr;
      if (sums_up) {
        *static_cast<double *>(sums.next()) = pairwise_sum<Real>(0, count, [x](std::int64_t k) { return x[k]; });
        sums.push();
      } else {
        best = extreme_of(best, extreme(x, count, is_max), is_max);
      }
      if (end.stops(count)) return SG_STATUS_CANCELLED;
      j += count;
    } while (j < what.cols);
    store_reduced(what, i, sums_up ? *static_cast<const double *>(sums.total()) : double(best));
  }
  return SG_STATUS_OK;
}

// Neighbouring rows, the elements of a column side by side.
template <class Real>
sg_status reduce_columns(const sg_backend_row_reduce &what, workspace &space) noexcept {
  constexpr std::int64_t at_once = 256, columns_of_part = 16;
  alignas(64) float memory[at_once];
  const bool sums_up = is_sum(what.reduction), is_max = what.reduction == SG_REDUCTION_MAX;
  auto *const levels = space.get(scratch::sums, pairwise_sums::bytes(what.cols, SG_DTYPE_F64, at_once));
  if (levels == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  poll end(space);
  for (std::int64_t first = 0; first < what.rows; first += at_once) {
    const std::int64_t count = std::min(at_once, what.rows - first);
    pairwise_sums sums(levels, SG_DTYPE_F64, count);
    Real best[at_once];
    std::fill_n(best, at_once, no_extreme<Real>(is_max));
    for (std::int64_t j = 0; j < what.cols; j += columns_of_part) {
      Real part[at_once] = {};
      for (std::int64_t k = j; k < std::min(j + columns_of_part, what.cols); ++k) {
        const Real *const x = run_of<Real>(what, first * what.x_row + k * what.x_col, count, memory);
        if (sums_up)
          for (std::int64_t i = 0; i < count; ++i) part[i] += x[i];
        else
          for (std::int64_t i = 0; i < count; ++i) best[i] = extreme_of(best[i], x[i], is_max);
      }
      if (sums_up) {
        std::copy_n(part, count, static_cast<double *>(sums.next()));
        sums.push();
      }
      if (end.stops(count * columns_of_part)) return SG_STATUS_CANCELLED;
    }
    const auto *const totals = sums_up ? static_cast<const double *>(sums.total()) : nullptr;
    for (std::int64_t i = 0; i < count; ++i) store_reduced(what, first + i, sums_up ? totals[i] : double(best[i]));
  }
  return SG_STATUS_OK;
}

template <class Real>
sg_status reduce_rows(const sg_backend_row_reduce &what, workspace &space) noexcept {
  const bool by_columns = what.x_row == 1 && what.x_col != 1 && what.cols > 0;
  return by_columns ? reduce_columns<Real>(what, space) : reduce_contiguous_rows<Real>(what, space);
}

}  // namespace

sg_status run_row_reduce(const sg_backend_row_reduce &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? reduce_rows<double>(what, space) : reduce_rows<float>(what, space);
}

}  // namespace sg::cpu
