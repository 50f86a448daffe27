// SPDX-License-Identifier: Apache-2.0
// GEMM: c = activation(alpha * op_a(a) * op_b(b) + beta * c + bias), item by item.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>
#include <span>

#include "ops/epilogue.hpp"
#include "ops/view.hpp"

namespace sg {

struct binding;
struct pointer_scratch;
struct command;
struct device_model;
struct operation;

namespace ops {

struct gemm : epilogue {
  enum : std::size_t { c, a, b };
  std::int64_t m = 0, n = 0, k = 0;
  sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
  sg_compute compute = SG_COMPUTE_EXACT;
  scalar_role alpha = scalar_role::one, beta = scalar_role::zero;
  static const operation entry;
};

}  // namespace ops

// Whether a GEMM has an operand with a pointer array.
bool has_pointer_arrays(const buffer_list &buffers, const command &gemm) noexcept;

struct gemm_shape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  sg_dtype in_type = SG_DTYPE_F32, out_type = SG_DTYPE_F32;
  sg_compute compute = SG_COMPUTE_EXACT;
  bool reads_c = false;
  std::int32_t units = 0;     // limit of multiprocessors; 0: all
  bool has_epilogue = false;  // a bias, an activation, or both
  bool in_group = false;      // batched with others in one call
};
gemm_shape shape_of_gemm(const buffer_list &buffers, const command &c);
gemm_shape shape_of_gemm(const sg_backend_gemm &gemm);

// The time of a kernel alone, without its launch, and its shares of chip and memory.
struct kernel_cost {
  double seconds = 0;
  double chip_share = 0;
  double memory_share = 0;
};
// Adds the share of the memory bandwidth for `bytes` in the kernel's time. A core draws at most its own share.
kernel_cost with_memory(const device_model &model, kernel_cost cost, double bytes);

// Whether the epilogue needs its own kernel.
bool has_separate_epilogue(const device_model &model, const gemm_shape &g);

// Number of waves of equal tiles that fill the chip `full` times. A partial last wave costs as much as a full one if it
// is the only one, and less the more waves precede it, because the units drift apart.
double waves_of(double full);

// Rate of the fastest arithmetic that is at least as accurate as `compute`. 0: none.
double gemm_rate_of(const device_model &model, sg_dtype in_type, sg_compute compute);

// Alone on the device, or on its core where lanes are cores. Throws SG_STATUS_UNSUPPORTED for a type without a rate.
kernel_cost gemm_cost(const device_model &model, const gemm_shape &gemm);
// Including the launch of a queued kernel.
double gemm_seconds(const device_model &model, const gemm_shape &gemm);
// Independent GEMMs in one launch: together they use chip and memory as far as each alone would.
double group_seconds(const device_model &model, std::span<const gemm_shape> gemms);
// The smallest batch of such GEMMs that is faster than unbatched calls, which use idle units by split-k. At least 1.
std::size_t min_batch_size(const device_model &model, const gemm_shape &gemm);

sg_backend_gemm lower_gemm(const buffer_list &buffers, const command &c, const binding &where,
                           pointer_scratch &scratch);

}  // namespace sg
