// SPDX-License-Identifier: Apache-2.0
// Rotary embedding, in the arithmetic of layers.h; angles in f64.
#pragma once

#include <streamgemm/backend.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "address_space.hpp"
#include "layers.hpp"

namespace sg::sim {

// `cos` and `sin` may be NULL. The command's own pointers are not used.
inline void run_rotary(const sg_backend_rotary &what, const std::byte *x, std::byte *y, const std::byte *cos,
                       const std::byte *sin) {
  const std::int64_t half = what.rotated_size / 2;
  const bool halves = what.pairs == SG_ROTARY_HALVES;
  with_layer_type(what.table_type, [&]<class Table>() {
    with_layer_type(what.type, [&]<class Traits>() {
      using real = typename Traits::sum;
      const auto *from = stored_at<Traits>(x);
      auto *to = stored_at<Traits>(y);
      for (std::int64_t i = 0; i < what.rows; ++i, from += what.x_row, to += what.y_row) {
        const std::int64_t p = what.first_position + (what.first_row + i) % what.sequence_length;
        for (std::int64_t head = 0; head < what.cols; head += what.head_size) {
          for (std::int64_t j = 0; j < half; ++j) {
            const double angle = double(p) * std::pow(what.theta, -double(2 * j) / double(what.rotated_size));
            const double c = cos ? Table::load(stored_at<Table>(cos)[p * what.cos_row + j]) : std::cos(angle);
            const double s = sin ? Table::load(stored_at<Table>(sin)[p * what.sin_row + j]) : std::sin(angle);
            const auto real_c = static_cast<real>(c), signed_s = static_cast<real>(what.inverse ? -s : s);
            const std::int64_t first = head + (halves ? j : 2 * j), second = head + (halves ? j + half : 2 * j + 1);
            const auto a = static_cast<real>(Traits::load(from[first])),
                       b = static_cast<real>(Traits::load(from[second]));
            to[first] = Traits::store(a * real_c - b * signed_s);
            to[second] = Traits::store(a * signed_s + b * real_c);
          }
          for (std::int64_t j = head + what.rotated_size; j < head + what.head_size; ++j) to[j] = from[j];
        }
      }
    });
  });
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_rotary &what) {
  const std::byte *x = memory.device_bytes(what.x, strided_extent(what.rows, what.x_row, what.cols, 1, what.type),
                                           "X of a rotary embedding");
  std::byte *y = memory.device_bytes(what.y, strided_extent(what.rows, what.y_row, what.cols, 1, what.type),
                                     "Y of a rotary embedding");
  const std::int64_t last = std::min(what.first_row + what.rows, what.sequence_length);
  const auto table = [&](const void *at, std::int64_t row, const char *name) -> const std::byte * {
    const std::int64_t positions = what.first_position + last;
    return at ? memory.device_bytes(at, strided_extent(positions, row, what.rotated_size / 2, 1, what.table_type), name)
              : nullptr;
  };
  const std::byte *cos = table(what.cos, what.cos_row, "cosines of a rotary embedding");
  const std::byte *sin = table(what.sin, what.sin_row, "sines of a rotary embedding");
  return [what, x, y, cos, sin] { run_rotary(what, x, y, cos, sin); };
}

}  // namespace sg::sim
