// SPDX-License-Identifier: Apache-2.0
// One GEMM, described, run and checked element by element against extended precision.
#pragma once

#include <streamgemm/streamgemm.h>

#include <string>

#include "support/numbers.hpp"

namespace sg_test {

enum class batch_form { single, strided, shared_a, pointers };

struct gemm_case {
  sg_dtype in = SG_DTYPE_F64, out = SG_DTYPE_F64;
  std::int64_t m = 1, n = 1, k = 1;
  sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
  sg_layout layout_a = SG_LAYOUT_ROW_MAJOR, layout_b = SG_LAYOUT_ROW_MAJOR, layout_c = SG_LAYOUT_ROW_MAJOR;
  std::int64_t pad = 0;  // elements of each leading dimension beyond the matrix
  sg_scalar alpha{1, 0}, beta{0, 0};
  batch_form form = batch_form::single;
  std::int64_t batch = 1;
  sg_memory_kind place_a = SG_MEMORY_PAGEABLE, place_b = SG_MEMORY_PAGEABLE, place_c = SG_MEMORY_PAGEABLE;
  sg_compute compute = SG_COMPUTE_EXACT;
  bool has_bias = false;
  bool own_bias = false;  // each item of a batch has its own
  sg_bias bias_shape = SG_BIAS_PER_COLUMN;
  sg_memory_kind place_bias = SG_MEMORY_PAGEABLE;
  sg_activation activation = SG_ACTIVATION_NONE;
  bool integers = false;  // integer-valued operands, whose result must be exact to the bit
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  std::uint64_t seed = 1;

  std::string text() const;
};

// Runs the case. "" when every element is within the bound, no byte outside the footprint of C changed, and A, B and
// the bias are unchanged; otherwise the first fault. `stats`, if given, receives the job's.
std::string run_gemm_case(sg_context *context, const gemm_case &what, sg_job_statistics *stats = nullptr);

}  // namespace sg_test
