// SPDX-License-Identifier: Apache-2.0
// The operations of pool.h, on one thread, image by image.
#include "backends/common/pool.hpp"

#include <algorithm>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

template <class Real>
sg_status pool_images(const sg_backend_pool &what, workspace &space) noexcept {
  const sg_backend_windows &w = what.of;
  const std::int64_t size = element_size(what.type);
  const std::int64_t unpooled = std::int64_t{w.channels} * w.height * w.width;
  const std::int64_t pooled = std::int64_t{w.channels} * w.out_h * w.out_w;
  const bool is_short = sum_type_of(what.type) != what.type;
  const auto memory = [&](scratch use, std::int64_t elements) {
    return static_cast<Real *>(space.get(use, static_cast<std::size_t>(elements) * sizeof(Real)));
  };
  Real *of_x = nullptr, *of_y = nullptr, *of_dx = nullptr;  // copies of short elements
  if (is_short) {
    of_x = memory(scratch::panel_a, unpooled), of_y = memory(scratch::panel_b, pooled);
    of_dx = memory(scratch::sums, unpooled);
    if (of_x == nullptr || of_y == nullptr || of_dx == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  }
  const auto image_at = [size](const void *of, std::int64_t image, std::int64_t stride) {
    return const_cast<char *>(static_cast<const char *>(of)) + image * stride * size;
  };
  const auto read = [&](const void *from, std::int64_t image, std::int64_t stride, Real *copy, std::int64_t elements) {
    if (from == nullptr) return static_cast<const Real *>(nullptr);
    const char *const at = image_at(from, image, stride);
    if (is_short) widen(copy, at, what.type, elements);
    return static_cast<const Real *>(is_short ? copy : reinterpret_cast<const Real *>(at));
  };
  const pooled_image<Real> image(what);
  poll end(space);
  const auto stops = [&end](std::int64_t taps) { return end.stops(taps); };
  for (std::int64_t n = 0; n < w.images; ++n) {
    const Real *const x = read(what.x, n, w.image, of_x, unpooled);
    if (what.y != nullptr) {
      char *const y = image_at(what.y, n, what.y_image);
      Real *const to = is_short ? of_y : reinterpret_cast<Real *>(y);
      if (!image.pool(x, to, stops)) return SG_STATUS_CANCELLED;
      if (is_short) narrow(y, what.type, to, pooled);
    } else {
      const Real *const dy = read(what.dy, n, what.y_image, of_y, pooled);
      char *const dx = image_at(what.dx, n, what.dx_image);
      Real *const to = is_short ? of_dx : reinterpret_cast<Real *>(dx);
      std::fill_n(to, unpooled, Real(0));
      if (!image.pool_gradient(x, dy, to, stops)) return SG_STATUS_CANCELLED;
      if (is_short) narrow(dx, what.type, to, unpooled);
    }
  }
  return SG_STATUS_OK;
}

}  // namespace

sg_status run_pool(const sg_backend_pool &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? pool_images<double>(what, space) : pool_images<float>(what, space);
}

}  // namespace sg::cpu
