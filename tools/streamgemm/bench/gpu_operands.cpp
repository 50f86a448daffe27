// SPDX-License-Identifier: Apache-2.0
#include "gpu_operands.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <thread>

#include "../outcome.hpp"

namespace sg::cli {

namespace {

// Towards zero; numbers below the normal range become zero.
std::uint16_t f16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::int32_t exponent = std::int32_t(bits >> 23 & 0xff) - 127 + 15;
  return std::uint16_t(bits >> 16 & 0x8000) |
         (exponent <= 0 ? 0 : std::uint16_t(exponent << 10 | (bits >> 13 & 0x3ff)));
}

double value_of(sg_dtype dtype, const char *from) {
  if (dtype == SG_DTYPE_F64) return *reinterpret_cast<const double *>(from);
  if (dtype == SG_DTYPE_F32) return *reinterpret_cast<const float *>(from);
  const std::uint32_t half = *reinterpret_cast<const std::uint16_t *>(from);
  if (dtype == SG_DTYPE_BF16) return std::bit_cast<float>(half << 16);
  const int exponent = int(half >> 10 & 0x1f), fraction = int(half & 0x3ff);
  if (exponent == 0x1f) return fraction != 0 ? NAN : HUGE_VAL;
  const double size = exponent > 0 ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return (half & 0x8000) != 0 ? -size : size;
}

constexpr std::int64_t most_products = 20'000'000;  // of the elements that are compared, which are a thousand at most

}  // namespace

std::string gpu_case::host_name() const {
  const auto memory = [](bool is_pinned) { return is_pinned ? "pinned" : "pageable"; };
  std::string name = label + " " + memory(pinned[0]);
  if (pinned[0] != pinned[1] || pinned[0] != pinned[2])
    name += std::string("/") + memory(pinned[1]) + "/" + memory(pinned[2]);
  return name;
}

void fill(const gpu_case &of, char *memory, std::int64_t bytes, std::uint32_t seed) {
  const std::int64_t count = bytes / of.size();
  const std::int64_t workers = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::int64_t w = 0; w < workers; ++w)
    threads.emplace_back([=, dtype = of.dtype] {
      std::uint32_t state = seed * 747796405u + std::uint32_t(w) * 2891336453u + 1;
      for (std::int64_t i = count * w / workers; i < count * (w + 1) / workers; ++i) {
        state = state * 1664525u + 1013904223u;
        const float value = float(std::int32_t(state) >> 8) / float(1 << 23);
        if (dtype == SG_DTYPE_F64)
          reinterpret_cast<double *>(memory)[i] = value;
        else if (dtype == SG_DTYPE_F32)
          reinterpret_cast<float *>(memory)[i] = value;
        else if (dtype == SG_DTYPE_F16)
          reinterpret_cast<std::uint16_t *>(memory)[i] = f16_of(value);
        else
          reinterpret_cast<std::uint16_t *>(memory)[i] = std::uint16_t(std::bit_cast<std::uint32_t>(value) >> 16);
      }
    });
  for (std::thread &thread : threads) thread.join();
}

seen_sample::seen_sample(const operands &x)
    : x_(x), count_(int(std::clamp<std::int64_t>(most_products / x.of.k, 16, 1000))) {
  for (int i = 0; i < count_; ++i) known_.push_back(known(i));
}

std::int64_t seen_sample::row(int i) const { return (std::int64_t(i) * 7919 + i / 3) % x_.of.m; }
std::int64_t seen_sample::col(int i) const { return x_.of.n * i / count_; }
char *seen_sample::at(int i) const { return x_.c + (row(i) + col(i) * (x_.of.m + x_.of.pad)) * x_.of.size(); }

double seen_sample::known(int i) const {
  const gpu_case &of = x_.of;
  const std::int64_t ld_a = of.rows_a() + of.pad, ld_b = of.rows_b() + of.pad;
  double sum = 0;
  for (std::int64_t p = 0; p < of.k; ++p) {
    const std::int64_t in_a = of.op_a == SG_TRANSPOSE_N ? row(i) + p * ld_a : p + row(i) * ld_a;
    const std::int64_t in_b = of.op_b == SG_TRANSPOSE_N ? p + col(i) * ld_b : col(i) + p * ld_b;
    sum += value_of(of.dtype, x_.a + in_a * of.size()) * value_of(of.dtype, x_.b + in_b * of.size());
  }
  return sum;
}

void seen_sample::poison() const {
  for (int i = 0; i < count_; ++i) std::memset(at(i), 0xff, std::size_t(x_.of.size()));
}

void seen_sample::compare(const std::string &variant) const {
  const double per_gemm = x_.of.dtype == SG_DTYPE_F64         ? 1e-14
                          : x_.of.dtype != SG_DTYPE_F32       ? 2e-2
                          : x_.of.compute == SG_COMPUTE_EXACT ? 1e-5
                                                              : 3e-3;
  for (int i = 0; i < count_; ++i) {
    const double now = value_of(x_.of.dtype, at(i));
    if (!(std::abs(now - known_[std::size_t(i)]) <= per_gemm * std::sqrt(double(x_.of.k)) * 4))
      throw failure(exit_code::verification, "the result of " + variant + " is wrong at " + x_.of.label + ": " +
                                                 std::to_string(now) + ", not " +
                                                 std::to_string(known_[std::size_t(i)]));
  }
}

}  // namespace sg::cli
