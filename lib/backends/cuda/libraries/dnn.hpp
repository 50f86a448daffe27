// SPDX-License-Identifier: Apache-2.0
// cuDNN and its graph interface, loaded when the first command that it has is planned; optional. Declared here, so that
// building the plugin needs no header of cuDNN: the values are those of version 9.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sg::cuda::dnn {

using status = int;  // 0: success
using handle = struct context *;
using descriptor = void *;

enum data_type : int { f32 = 0, f16 = 2, i32 = 4, bf16 = 9, boolean = 11 };

enum descriptor_kind : int {
  pointwise_mode = 0,
  convolution_mode = 1,
  engine = 2,
  engine_configuration = 3,
  engine_heuristics = 4,
  execution_plan = 5,
  convolution_forward = 10,
  convolution_filter_gradient = 11,
  convolution_data_gradient = 12,
  pointwise = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor_descriptor = 17,
  matmul_mode = 18,
  matmul = 19,
  reduction_mode = 21,
  reduction = 22,
  reshape = 31,
};

// The types of attributes.
enum attribute_type : int {
  type_handle = 0,
  type_data_type = 1,
  type_boolean = 2,
  type_i64 = 3,
  type_f32 = 4,
  type_pointer = 6,
  type_convolution_kind = 7,
  type_heuristics = 8,
  type_nan = 10,
  type_numerical_note = 11,
  type_function = 14,
  type_descriptor = 15,
  type_reduction = 18,
};

enum function : int {
  add = 0,
  multiply = 1,
  divide = 6,
  subtract = 9,
  exponential = 13,
  logarithm = 15,
  identity = 21,
  relu = 100,
  greater_or_equal = 303,
  less = 304,
  logical_and = 400,
  index_along = 501,
  select = 601,
};
enum reduction_function : int { sum = 0, maximum = 3 };
enum numerical_note : int {
  uses_tensor_cores = 0,
  narrows_inputs = 1,
  narrows_sums = 2,
  uses_fourier = 3,
  is_nondeterministic = 4,
  uses_winograd = 5,
  uses_winograd_of_4 = 6,
  uses_winograd_of_6 = 7,
  uses_winograd_of_13 = 8,
  numerical_notes = 10,
};
inline constexpr int cross_correlation = 1, propagate_nan = 1, heuristics_a = 3, heuristics_fallback = 2;

struct functions {
  std::size_t (*version)();
  const char *(*text)(status);
  status (*create)(handle *);
  status (*destroy)(handle);
  status (*set_stream)(handle, cudaStream_t);
  status (*make)(int kind, descriptor *);
  status (*unmake)(descriptor);
  status (*set)(descriptor, int attribute, int type, std::int64_t count, const void *);
  status (*get)(descriptor, int attribute, int type, std::int64_t room, std::int64_t *count, void *);
  status (*finalize)(descriptor);
  status (*execute)(handle, descriptor plan, descriptor variant_pack);
};

constexpr bool is_out_of_memory(status x) noexcept { return x == 2 || x == 4003 || x == 4004; }

// nullptr: there is none, or SG_CUDA_CUDNN does not allow it. Any thread; looked for once, stays loaded.
const functions *load() noexcept;
// Whether only kernels that give the same bits at each run are wanted: SG_CUDA_CUDNN is "deterministic".
bool wants_same_bits() noexcept;
// The functions after a successful load().
const functions &library() noexcept;

}  // namespace sg::cuda::dnn
