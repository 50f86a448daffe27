// SPDX-License-Identifier: Apache-2.0
// The operation of row_dot.h, on one thread. Parts of a sum are added pairwise, in f64: the parts of long sums of f32
// differ little in size, and the roundings of f32 would add up.
#include <algorithm>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/elements/pairwise.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

const void *element_at(const void *of, std::int64_t index, sg_dtype type) noexcept {
  return static_cast<const char *>(of) + index * element_size(type);
}

// Converts short elements, into memory for them.
struct widened_run {
  const void *operator()(const void *from, sg_dtype type, std::int64_t count) noexcept {
    if (sum_type_of(type) == type) return from;
    widen(values, from, type, count);
    return values;
  }
  static constexpr std::int64_t most = 2048;  // which stay in the first-level cache
  alignas(64) float values[most];
};

void store_sum(const sg_backend_row_dot &what, std::int64_t row, double sum) noexcept {
  void *const to = static_cast<char *>(what.y) + row * what.y_row * element_size(what.type);
  const auto single = static_cast<float>(sum);
  if (what.type == SG_DTYPE_F64)
    narrow(to, what.type, &sum, 1);
  else
    narrow(to, what.type, &single, 1);
}

// Rows without gaps between their elements.
template <class Real>
sg_status dot_contiguous_rows(const sg_backend_row_dot &what, workspace &space) noexcept {
  widened_run of_a, of_b;
  double levels[64];
  poll end(space);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    pairwise_sums sums(levels, SG_DTYPE_F64, 1);
    std::int64_t j = 0;
    do {  // once at least
      const std::int64_t count = std::min(widened_run::most, what.cols - j);
      const void *const a = of_a(element_at(what.a, i * what.a_row + j, what.type), what.type, count);
      const void *const b = of_b(element_at(what.b, i * what.b_row + j, what.type), what.type, count);
      Real part;
      simd().layers->dot(sum_type_of(what.type), &part, a, b, count);
      *static_cast<double *>(sums.next()) = part;
      sums.push();
      if (end.stops(count)) return SG_STATUS_CANCELLED;
      j += count;
    } while (j < what.cols);
    store_sum(what, i, *static_cast<const double *>(sums.total()));
  }
  return SG_STATUS_OK;
}

// Neighbouring rows, the elements of a column side by side.
template <class Real>
sg_status dot_columns(const sg_backend_row_dot &what, workspace &space) noexcept {
  constexpr std::int64_t at_once = 256, columns_of_part = 16;
  widened_run of_a, of_b;
  auto *const memory = space.get(scratch::sums, pairwise_sums::bytes(what.cols, SG_DTYPE_F64, at_once));
  if (memory == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  poll end(space);
  for (std::int64_t first = 0; first < what.rows; first += at_once) {
    const std::int64_t count = std::min(at_once, what.rows - first);
    pairwise_sums sums(memory, SG_DTYPE_F64, count);
    for (std::int64_t j = 0; j < what.cols; j += columns_of_part) {
      Real part[at_once] = {};
      for (std::int64_t k = j; k < std::min(j + columns_of_part, what.cols); ++k) {
        const auto *const a = static_cast<const Real *>(
            of_a(element_at(what.a, first * what.a_row + k * what.a_col, what.type), what.type, count));
        const auto *const b = static_cast<const Real *>(
            of_b(element_at(what.b, first * what.b_row + k * what.b_col, what.type), what.type, count));
        for (std::int64_t i = 0; i < count; ++i) part[i] += a[i] * b[i];
      }
      std::copy_n(part, count, static_cast<double *>(sums.next()));
      sums.push();
      if (end.stops(count * columns_of_part)) return SG_STATUS_CANCELLED;
    }
    const auto *const totals = static_cast<const double *>(sums.total());
    for (std::int64_t i = 0; i < count; ++i) store_sum(what, first + i, totals[i]);
  }
  return SG_STATUS_OK;
}

template <class Real>
sg_status dot_rows(const sg_backend_row_dot &what, workspace &space) noexcept {
  const bool is_by_columns = what.a_row == 1 && what.b_row == 1;
  return is_by_columns ? dot_columns<Real>(what, space) : dot_contiguous_rows<Real>(what, space);
}

}  // namespace

sg_status run_row_dot(const sg_backend_row_dot &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? dot_rows<double>(what, space) : dot_rows<float>(what, space);
}

}  // namespace sg::cpu
