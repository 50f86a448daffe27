// SPDX-License-Identifier: Apache-2.0
#include "workload.hpp"

#include <bit>
#include <cstring>
#include <random>

#include "../outcome.hpp"
#include "measure.hpp"

namespace sg::cli {

namespace {

std::vector<std::byte> random_operand(sg_dtype dtype, std::int64_t count, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<std::byte> result(static_cast<std::size_t>(count * sg_dtype_size(dtype)));
  for (std::int64_t i = 0; i < count; ++i) {
    const int value = int(random() >> 8 & 7) - 3;
    const auto single = float(value);
    const double wide = value;
    const auto half = std::uint16_t(std::bit_cast<std::uint32_t>(single) >> 16);
    const auto byte = std::int8_t(value);
    std::byte *at = result.data() + i * sg_dtype_size(dtype);
    switch (dtype) {
      case SG_DTYPE_F64: std::memcpy(at, &wide, 8); break;
      case SG_DTYPE_BF16: std::memcpy(at, &half, 2); break;
      case SG_DTYPE_I8: std::memcpy(at, &byte, 1); break;
      default: std::memcpy(at, &single, 4);
    }
  }
  return result;
}

sg_dtype output_of(sg_dtype in) { return in == SG_DTYPE_I8 ? SG_DTYPE_I32 : in == SG_DTYPE_BF16 ? SG_DTYPE_F32 : in; }

}  // namespace

std::string shape::text() const {
  if (m == n && n == k) return std::to_string(m) + "^3";
  return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
}

workload::workload(shape size, sg_dtype in, int count, int distinct)
    : size_(size),
      in_(in),
      out_(output_of(in)),
      count_(count),
      distinct_(distinct > 0 ? distinct : count),
      a_(random_operand(in, distinct_ * size.m * size.k, 1)),
      b_(random_operand(in, distinct_ * size.k * size.n, 2)),
      c_(static_cast<std::size_t>(count * size.m * size.n * sg_dtype_size(out_))) {}

sg_gemm_desc workload::desc(int i) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = {const_cast<std::byte *>(a(i)), size_.m, size_.k, 0, in_, SG_LAYOUT_ROW_MAJOR};
  desc.b = {const_cast<std::byte *>(b(i)), size_.k, size_.n, 0, in_, SG_LAYOUT_ROW_MAJOR};
  desc.c = {c(i), size_.m, size_.n, 0, out_, SG_LAYOUT_ROW_MAJOR};
  return desc;
}

double workload::checked(const std::string &variant, const std::function<void()> &work) {
  std::memset(c_.data(), 0xff, c_.size());
  const double seconds = timed(work);
  if (first_.empty())
    first_ = c_;
  else if (first_ != c_)
    throw failure(exit_code::verification, variant + " and the first variant disagree at " + size_.text());
  return seconds;
}

}  // namespace sg::cli
