// SPDX-License-Identifier: Apache-2.0
// Scale and add, in the accumulator's type, rounded once.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "address_space.hpp"
#include "element.hpp"
#include "ending.hpp"

namespace sg::sim {

template <sg_dtype type>
void scale_and_add(const sg_backend_axpby &what, const std::byte *a, std::byte *c) {
  using traits = element<type>;
  constexpr int planes = traits::planes;
  using stored = typename traits::stored;
  using real = typename traits::sum;
  const ending<type> end{nullptr, false, what.activation};
  const bool reads_c = what.beta.re != 0 || (planes == 2 && what.beta.im != 0);
  // Adds a factor times the element at `from` to `sum`. Skips a factor of 1: multiplying would change complex
  // infinities.
  const auto add = [](real(&sum)[2], const sg_scalar &factor, const stored *from) {
    const auto re = static_cast<real>(traits::load(from[0]));
    const auto im = static_cast<real>(planes == 2 ? traits::load(from[planes - 1]) : 0);
    const auto by_re = static_cast<real>(factor.re), by_im = static_cast<real>(factor.im);
    if (by_re == 1 && (planes == 1 || by_im == 0)) {
      sum[0] += re;
      sum[1] += im;
      return;
    }
    sum[0] += planes == 2 ? by_re * re - by_im * im : scaled<type>(by_re, re);
    sum[1] += by_re * im + by_im * re;
  };
  for (std::int64_t j = 0; j < what.n; ++j)
    for (std::int64_t i = 0; i < what.m; ++i) {
      auto *to = reinterpret_cast<stored *>(c) + (i + j * what.ldc) * planes;
      real sum[2] = {0, 0};
      if (reads_c) add(sum, what.beta, to);
      if (a) add(sum, what.alpha, reinterpret_cast<const stored *>(a) + (i + j * what.lda) * planes);
      for (int plane = 0; plane < planes; ++plane) to[plane] = end.store(sum[plane], i, j, plane);
    }
}

// `a` may be NULL. The command's own pointers are not used.
inline void run_axpby(const sg_backend_axpby &what, const std::byte *a, std::byte *c) {
  with_type(what.type, [&]<sg_dtype type>() {
    if constexpr (requires { &element<type>::store; }) scale_and_add<type>(what, a, c);
  });
}

// The command's task, with its operands resolved in the device's memory. Throws if they are not there.
inline std::function<void()> work_of(const address_space &memory, const sg_backend_axpby &what) {
  const auto extent = [&](std::int64_t ld) {
    return static_cast<std::uint64_t>(((what.n - 1) * ld + what.m) * element_size(what.type));
  };
  const std::byte *a = what.a ? memory.device_bytes(what.a, extent(what.lda), "A of a scale-and-add") : nullptr;
  std::byte *c = memory.device_bytes(what.c, extent(what.ldc), "C of a scale-and-add");
  return [what, a, c] { run_axpby(what, a, c); };
}

}  // namespace sg::sim
