// SPDX-License-Identifier: Apache-2.0
// The values and the checks of the emulated cuBLAS: it rounds twice where a card may, and refuses what a card does.
#pragma once

#include <streamgemm/backend.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "backends/sim/arithmetic.hpp"
#include "backends/sim/axpby.hpp"
#include "backends/sim/element.hpp"

namespace emulated {

inline bool is_multiple(const void *x, std::int64_t of) noexcept {
  return reinterpret_cast<std::uintptr_t>(x) % static_cast<std::uintptr_t>(of) == 0;
}
// The host's checks of operands that are not pointer arrays.
inline bool are_refused(const sg_backend_gemm &g, std::initializer_list<const void *> operands) noexcept {
  const std::int64_t wanted = sg::is_complex(g.in_type)       ? sg::element_size(g.in_type)
                              : g.in_type == SG_DTYPE_I8      ? 4
                              : g.in_type == SG_DTYPE_F8_E4M3 ? 16
                                                              : 1;
  return !std::all_of(operands.begin(), operands.end(), [=](const void *x) { return is_multiple(x, wanted); });
}

// Whether sizes and addresses of an item are those of tensor cores, whose kernels round once before an epilogue.
inline bool suits_tensor_cores(const sg_backend_gemm &g, std::initializer_list<const void *> operands) noexcept {
  return (g.m | g.n | g.k | g.lda | g.ldb | g.ldc) % 8 == 0 &&
         std::all_of(operands.begin(), operands.end(), [](const void *x) { return is_multiple(x, 16); });
}

// Other kernels, and all that add beta * C, round the product to a C of 16 bits before that, and before the epilogue.
inline void multiply(const sg_backend_gemm &all, const sg::sim::item_list &a, const sg::sim::item_list &b,
                     const sg::sim::item_list &c, const void *bias = nullptr) {
  const auto at = [](const sg::sim::item_list &of, std::int64_t i) { return sg::sim::item_list{of.at(i), 0, {}}; };
  const sg::sim::item_list of_bias{static_cast<std::byte *>(const_cast<void *>(bias)), 0, {}};
  for (std::int64_t i = 0; i < all.batch; ++i) {
    sg_backend_gemm g = all;
    g.batch = 1;
    const bool ends = bias || g.activation;
    const bool suits = suits_tensor_cores(g, {a.at(i), b.at(i), c.at(i), bias}) && g.beta.re == 0;
    if (suits || !sg::is_short_float(g.out_type) || (g.beta.re == 0 && !ends)) {
      sg::sim::multiply(g, at(a, i), at(b, i), at(c, i), of_bias);
      continue;
    }
    const auto elements = static_cast<std::size_t>((g.n - 1) * g.ldc + g.m);
    std::vector<std::byte> before(g.m > 0 && g.n > 0 ? 2 * elements : 0);
    if (g.beta.re != 0) std::memcpy(before.data(), c.at(i), before.size());
    sg_backend_gemm product = g;
    product.beta = {0, 0}, product.bias = nullptr, product.activation = SG_ACTIVATION_NONE;
    sg::sim::multiply(product, at(a, i), at(b, i), at(c, i), {});
    sg_backend_axpby sum{};
    sum.m = g.m, sum.n = g.n, sum.lda = sum.ldc = g.ldc, sum.type = g.out_type;
    sum.alpha = g.beta, sum.beta = {1, 0};
    if (g.beta.re != 0) sg::sim::run_axpby(sum, before.data(), c.at(i));
    sg_backend_reduce end{};
    end.m = g.m, end.n = g.n, end.ldc = g.ldc, end.part_type = SG_DTYPE_F32, end.out_type = g.out_type;
    end.beta = {1, 0}, end.bias = bias, end.bias_per_row = g.bias_per_row, end.activation = g.activation;
    if (ends) sg::sim::add_parts(end, nullptr, c.at(i), static_cast<const std::byte *>(bias));
  }
}

}  // namespace emulated
