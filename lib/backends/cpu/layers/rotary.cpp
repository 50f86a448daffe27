// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

// Cosines and sines of one position at a time, in the accumulator's type.
template <class R>
class rotation {
 public:
  // Each has room for half as many as are rotated.
  rotation(const sg_backend_rotary &what, R *cos, R *sin, double *frequencies) noexcept
      : what_(what), half_(what.rotated_size / 2), cos_(cos), sin_(sin), frequencies_(frequencies) {
    if (what.cos != nullptr) return;
    for (std::int64_t j = 0; j < half_; ++j)
      frequencies[j] = std::pow(what.theta, -double(2 * j) / double(what.rotated_size));
  }

  void move_to(std::int64_t position) noexcept {
    if (what_.cos != nullptr) {
      load(cos_, what_.cos, position * what_.cos_row);
      load(sin_, what_.sin, position * what_.sin_row);
    } else {
      for (std::int64_t j = 0; j < half_; ++j) {
        const double angle = double(position) * frequencies_[j];
        cos_[j] = static_cast<R>(std::cos(angle));
        sin_[j] = static_cast<R>(std::sin(angle));
      }
    }
    for (std::int64_t j = 0; what_.inverse && j < half_; ++j) sin_[j] = -sin_[j];
  }

 private:
  void load(R *to, const void *table, std::int64_t element) const noexcept {
    widen(to, static_cast<const char *>(table) + element * element_size(what_.table_type), what_.table_type, half_);
  }

  const sg_backend_rotary &what_;
  const std::int64_t half_;
  R *const cos_, *const sin_;
  double *const frequencies_;
};

template <class R>
sg_status rotate_rows(const sg_backend_rotary &what, workspace &space) noexcept {
  const std::int64_t size = element_size(what.type), half = what.rotated_size / 2;
  const bool converts = sizeof(R) != static_cast<std::size_t>(size);
  const auto reserve = [&](scratch use, std::int64_t elements, std::size_t bytes) {
    return space.get(use, static_cast<std::size_t>(elements) * bytes);
  };
  auto *const factors = static_cast<R *>(reserve(scratch::sums, 2 * half, sizeof(R)));
  auto *const frequencies = static_cast<double *>(reserve(scratch::panel_a, half, sizeof(double)));
  auto *const row = converts ? static_cast<R *>(reserve(scratch::converted, what.cols, sizeof(R))) : nullptr;
  if (factors == nullptr || frequencies == nullptr || (converts && row == nullptr)) return SG_STATUS_OUT_OF_MEMORY;
  rotation<R> angles(what, factors, factors + half, frequencies);
  poll end(space);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    const char *const x = static_cast<const char *>(what.x) + i * what.x_row * size;
    char *const y = static_cast<char *>(what.y) + i * what.y_row * size;
    R *const to = converts ? row : reinterpret_cast<R *>(y);
    if (converts)
      widen(row, x, what.type, what.cols);
    else if (x != y)
      std::memcpy(y, x, static_cast<std::size_t>(what.cols * size));
    angles.move_to(what.first_position + (what.first_row + i) % what.sequence_length);
    for (std::int64_t head = 0; head < what.cols; head += what.head_size)
      simd().layers->rotate(sum_type_of(what.type), what.pairs, to + head, factors, factors + half, half);
    if (converts) narrow(y, what.type, row, what.cols);
    if (end.stops(what.cols)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

}  // namespace

sg_status run_rotary(const sg_backend_rotary &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? rotate_rows<double>(what, space) : rotate_rows<float>(what, space);
}

}  // namespace sg::cpu
