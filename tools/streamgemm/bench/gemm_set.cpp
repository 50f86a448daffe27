// SPDX-License-Identifier: Apache-2.0
#include "gemm_set.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sg::cli {

namespace {

constexpr std::int64_t alignment = 256;

// Element `i` of an operand, from -3 to 4.
int element(std::int64_t i) {
  const auto mixed = std::uint64_t(i + 1) * 0x9e3779b97f4a7c15u;
  return int(mixed >> 61) - 3;
}

void put(std::byte *to, sg_dtype dtype, int value) {
  const auto single = float(value);
  const double wide = value;
  const auto half = std::uint16_t(std::bit_cast<std::uint32_t>(single) >> 16);  // exact: three bits
  switch (dtype) {
    case SG_DTYPE_F64: std::memcpy(to, &wide, 8); break;
    case SG_DTYPE_BF16: std::memcpy(to, &half, 2); break;
    default: std::memcpy(to, &single, 4);
  }
}

float rounded_to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

}  // namespace

gemm_set::gemm_set(sg_context *context, std::vector<shape> shapes, const gemm_kind &kind)
    : context_(context), shapes_(std::move(shapes)), kind_(kind), at_(shapes_.size()) {
  std::int64_t end = 0;
  const auto place = [&](std::int64_t elements, sg_dtype dtype) {
    const std::int64_t start = end;
    end += (elements * sg_dtype_size(dtype) + alignment - 1) / alignment * alignment;
    return start;
  };
  for (std::size_t i = 0; i < shapes_.size(); ++i) at_[i].a = place(shapes_[i].m * shapes_[i].k, kind_.in);
  for (std::size_t i = 0; i < shapes_.size(); ++i) at_[i].b = place(shapes_[i].k * shapes_[i].n, kind_.in);
  begin_c_ = end;
  for (std::size_t i = 0; i < shapes_.size(); ++i)
    at_[i].c = kind_.one_sum && i > 0 ? begin_c_ : place(shapes_[i].m * shapes_[i].n, kind_.out);
  bytes_c_ = end - begin_c_;

  void *memory = nullptr;
  if (kind_.pinned) {
    check(sg_host_alloc(context_, std::uint64_t(end), &memory), "pinned memory");
    pinned_ = std::shared_ptr<void>(memory, [context](void *block) { sg_host_free(context, block); });
  } else {
    sg_buffer *made = nullptr;
    check(sg_buffer_create(context_, std::uint64_t(end), &made), "device memory");
    buffer_.reset(made);
    check(sg_buffer_data(made, &memory), "device memory");
  }
  data_ = static_cast<std::byte *>(memory);

  const std::int64_t size = sg_dtype_size(kind_.in);
  std::vector<std::byte> host(static_cast<std::size_t>(begin_c_));
  for (std::int64_t i = 0; i < begin_c_ / size; ++i) put(host.data() + i * size, kind_.in, element(i));
  check(sg_copy(context_, data_, host.data(), host.size(), nullptr), "copy of the operands");
}

double gemm_set::flops() const {
  double sum = 0;
  for (const shape &x : shapes_) sum += x.flops();
  return sum;
}

sg_gemm_desc gemm_set::desc(int i) const {
  const shape &x = shapes_[std::size_t(i)];
  const offsets &at = at_[std::size_t(i)];
  const bool plain = kind_.op_b == SG_TRANSPOSE_N;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = {data_ + at.a, x.m, x.k, x.k, kind_.in, SG_LAYOUT_ROW_MAJOR};
  desc.b = {data_ + at.b, plain ? x.k : x.n, plain ? x.n : x.k, plain ? x.n : x.k, kind_.in, SG_LAYOUT_ROW_MAJOR};
  desc.c = {data_ + at.c, x.m, x.n, x.n, kind_.out, SG_LAYOUT_ROW_MAJOR};
  desc.op_b = kind_.op_b;
  desc.beta.re = kind_.one_sum ? 1 : 0;
  return desc;
}

submissions gemm_set::one_by_one() const {
  submissions all;
  for (int i = 0; i < count(); ++i) all.push_back(desc(i));
  return all;
}

sg_gemm_desc gemm_set::batch(int first, int count, int step) const {
  sg_gemm_desc desc = this->desc(first);
  if (count == 1) return desc;
  const offsets &here = at_[std::size_t(first)], &next = at_[std::size_t(first) + std::size_t(step)];
  desc.batch = count;
  desc.stride_a = (next.a - here.a) / sg_dtype_size(kind_.in);
  desc.stride_b = (next.b - here.b) / sg_dtype_size(kind_.in);
  desc.stride_c = (next.c - here.c) / sg_dtype_size(kind_.out);
  return desc;
}

void gemm_set::reset() {
  const std::vector<std::byte> poison(static_cast<std::size_t>(bytes_c_),
                                      kind_.one_sum ? std::byte{0} : std::byte{0xff});
  check(sg_copy(context_, data_ + begin_c_, poison.data(), poison.size(), nullptr), "copy of the results");
}

double gemm_set::expected(int i, std::int64_t row, std::int64_t col) const {
  const shape &x = shapes_[std::size_t(i)];
  const std::int64_t size = sg_dtype_size(kind_.in), a = at_[std::size_t(i)].a / size, b = at_[std::size_t(i)].b / size;
  double sum = 0;
  for (std::int64_t k = 0; k < x.k; ++k)
    sum += element(a + row * x.k + k) * element(b + (kind_.op_b == SG_TRANSPOSE_N ? k * x.n + col : col * x.k + k));
  return sum;
}

double gemm_set::found(const std::byte *at) const {
  double wide;
  float single;
  std::uint16_t half;
  switch (kind_.out) {
    case SG_DTYPE_F64: return std::memcpy(&wide, at, 8), wide;
    case SG_DTYPE_BF16: return std::memcpy(&half, at, 2), std::bit_cast<float>(std::uint32_t{half} << 16);
    default: return std::memcpy(&single, at, 4), single;
  }
}

void gemm_set::verify(const std::string &variant) {
  std::vector<std::byte> now(static_cast<std::size_t>(bytes_c_));
  check(sg_copy(context_, now.data(), data_ + begin_c_, now.size(), nullptr), "copy of the results");
  const auto differs = [&](const std::string &where) {
    throw failure(exit_code::verification, variant + " computed something else" + where);
  };
  constexpr int looks = 16;  // of each C
  for (int i = 0; i < (kind_.one_sum ? 1 : count()); ++i)
    for (int look = 0; look < looks; ++look) {
      const shape &x = shapes_[std::size_t(i)];
      const std::int64_t row = look * (x.m - 1) / (looks - 1), col = look * 7919 % x.n;
      double wanted = expected(i, row, col);
      for (int other = 1; kind_.one_sum && other < count(); ++other) wanted += expected(other, row, col);
      if (kind_.out == SG_DTYPE_BF16) wanted = rounded_to_bf16(float(wanted));
      const std::byte *at =
          now.data() + at_[std::size_t(i)].c - begin_c_ + (row * x.n + col) * sg_dtype_size(kind_.out);
      if (!(found(at) == wanted))
        differs(": " + std::to_string(found(at)) + " instead of " + std::to_string(wanted) + " at (" +
                std::to_string(row) + ", " + std::to_string(col) + ") of GEMM " + std::to_string(i) + ", " + x.text());
    }
  if (first_.empty()) first_ = now;
  if (first_ != now) differs(" than the first variant");
}

}  // namespace sg::cli
