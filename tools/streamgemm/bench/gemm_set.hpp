// SPDX-License-Identifier: Apache-2.0
// GEMMs whose operands are in device memory or in pinned host memory, described as submissions, and their expected
// results.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "../library.hpp"
#include "workload.hpp"

namespace sg::cli {

using submissions = std::vector<sg_gemm_desc>;

struct gemm_kind {
  sg_dtype in = SG_DTYPE_F32, out = SG_DTYPE_F32;
  sg_transpose op_b = SG_TRANSPOSE_N;
  bool one_sum = false;  // all GEMMs are added up in one C, one after another
  bool pinned = false;   // the operands are in pinned host memory, not on the device
};

// Row-major and tight. The operands are small integers, so that every way of computing the GEMMs gives the same bits.
class gemm_set {
 public:
  gemm_set(sg_context *context, std::vector<shape> shapes, const gemm_kind &kind = {});

  int count() const { return int(shapes_.size()); }
  // The operands' memory, from that of the first A to the end of the last C.
  std::byte *data() const { return data_; }
  std::int64_t bytes() const { return begin_c_ + bytes_c_; }
  double flops() const;
  submissions one_by_one() const;
  // GEMMs first, first + step, ... as one submission; they have one shape.
  sg_gemm_desc batch(int first, int count, int step = 1) const;

  // The contents of C before the GEMMs are computed: never a number that could pass for a result.
  void reset();
  // Throws failure unless C holds the results: a part of every C is compared with a reference computed here, and all of
  // it with the results of the first call of this function.
  void verify(const std::string &variant);

 private:
  struct offsets {
    std::int64_t a, b, c;  // in bytes
  };
  sg_gemm_desc desc(int i) const;
  double expected(int i, std::int64_t row, std::int64_t col) const;
  double found(const std::byte *at) const;

  sg_context *context_;
  std::vector<shape> shapes_;
  gemm_kind kind_;
  std::vector<offsets> at_;
  buffer_handle buffer_;          // the operands' memory on the device,
  std::shared_ptr<void> pinned_;  // or in the host's
  std::byte *data_ = nullptr;
  std::int64_t begin_c_ = 0, bytes_c_ = 0;
  std::vector<std::byte> first_;
};

}  // namespace sg::cli
