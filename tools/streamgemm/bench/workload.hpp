// SPDX-License-Identifier: Apache-2.0
// The GEMMs of a case of a CPU suite: operands, results, and the results of the first variant.
#pragma once

#include <streamgemm/gemm.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sg::cli {

struct shape {
  std::int64_t m, n, k;
  double flops() const { return 2.0 * double(m) * double(n) * double(k); }
  std::string text() const;  // "4096^3", "64x64x1024"
};

// `count` independent GEMMs of one shape and type, whose A and B are `distinct` pairs cyclically (0: as many as GEMMs);
// row-major and tight. The operands are small integers, so that every library must give the same bits in every type.
class workload {
 public:
  workload(shape size, sg_dtype in, int count, int distinct = 0);

  int count() const { return count_; }
  const shape &size() const { return size_; }
  sg_dtype in() const { return in_; }
  const std::byte *a(int i) const { return a_.data() + i % distinct_ * size_.m * size_.k * sg_dtype_size(in_); }
  const std::byte *b(int i) const { return b_.data() + i % distinct_ * size_.k * size_.n * sg_dtype_size(in_); }
  std::byte *c(int i) { return c_.data() + i * size_.m * size_.n * sg_dtype_size(out_); }
  sg_gemm_desc desc(int i);

  // Times `work` over a poisoned C and compares the result with the first variant's. Throws failure when they differ.
  double checked(const std::string &variant, const std::function<void()> &work);

 private:
  shape size_;
  sg_dtype in_, out_;
  int count_, distinct_;
  std::vector<std::byte> a_, b_, c_, first_;
};

}  // namespace sg::cli
