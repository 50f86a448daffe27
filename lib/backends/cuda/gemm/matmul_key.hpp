// SPDX-License-Identifier: Apache-2.0
// The properties of a GEMM on which the choice of its kernel may depend.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sg::cuda {

struct matmul_key {
  std::int64_t m, n, k, lda, ldb, ldc;
  std::int64_t op_a, op_b, in_type, out_type, compute, units;
  std::int64_t align_a, align_b, align_c;  // bytes, at most 256
  std::int64_t epilogue;                   // a cublasLtEpilogue_t

  bool operator==(const matmul_key &) const = default;
  static constexpr std::size_t fields = 16;
  std::array<std::int64_t, fields> all() const noexcept {
    return {m, n, k, lda, ldb, ldc, op_a, op_b, in_type, out_type, compute, units, align_a, align_b, align_c, epilogue};
  }
  static matmul_key of(const std::array<std::int64_t, fields> &x) noexcept {
    return {x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13], x[14], x[15]};
  }
};

struct matmul_key_hash {
  std::size_t operator()(const matmul_key &key) const noexcept {
    std::size_t hash = 0;
    for (const std::int64_t x : key.all()) hash = (hash ^ static_cast<std::size_t>(x)) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
  }
};

}  // namespace sg::cuda
