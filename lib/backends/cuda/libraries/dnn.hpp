// SPDX-License-Identifier: Apache-2.0
// cuDNN, loaded when the first convolution is planned; optional. Declared here, so that no header of it is needed to
// build the plugin: the values are the same in versions 8 and 9.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace sg::cuda::dnn {

using status = int;  // 0: success
using handle = struct context *;
using tensor = struct tensor_descriptor *;
using filter = struct filter_descriptor *;
using convolution = struct convolution_descriptor *;
using activation = struct activation_descriptor *;

enum data_type : int { f32 = 0, f16 = 2, bf16 = 9 };
enum tensor_format : int { nchw = 0, nhwc = 1 };
enum math_type : int { default_math = 0, tensor_op_math = 1, fma_math = 3 };
enum algorithm : int { implicit_gemm = 0, implicit_precomputed_gemm = 1, explicit_gemm = 2, algorithms = 8 };
enum activation_mode : int { relu = 1, identity = 5 };
inline constexpr int cross_correlation = 1, propagate_nan = 1;

// An algorithm that cuDNN proposes.
struct proposal {
  algorithm by;
  status state;
  float seconds;
  std::size_t workspace;
  int determinism;
  math_type math;
  int reserved[3];
};

struct functions {
  std::size_t (*version)();
  const char *(*text)(status);
  status (*create)(handle *);
  status (*destroy)(handle);
  status (*set_stream)(handle, cudaStream_t);
  status (*tensor_create)(tensor *);
  status (*tensor_destroy)(tensor);
  // Sizes and strides of images, channels, rows and pixels.
  status (*tensor_set)(tensor, data_type, int, int, int, int, int, int, int, int);
  status (*filter_create)(filter *);
  status (*filter_destroy)(filter);
  status (*filter_set)(filter, data_type, tensor_format, int, int, int, int);
  status (*convolution_create)(convolution *);
  status (*convolution_destroy)(convolution);
  // Paddings, strides and dilations of rows and pixels.
  status (*convolution_set)(convolution, int, int, int, int, int, int, int, data_type);
  status (*convolution_set_groups)(convolution, int);
  status (*convolution_set_math)(convolution, math_type);
  status (*activation_create)(activation *);
  status (*activation_destroy)(activation);
  status (*activation_set)(activation, activation_mode, int, double);
  status (*propose)(handle, tensor, filter, convolution, tensor, int, int *, proposal *);
  status (*workspace)(handle, tensor, filter, convolution, tensor, algorithm, std::size_t *);
  status (*run)(handle, const void *, tensor, const void *, filter, const void *, convolution, algorithm, void *,
                std::size_t, const void *, tensor, void *);
  status (*run_fused)(handle, const void *, tensor, const void *, filter, const void *, convolution, algorithm, void *,
                      std::size_t, const void *, tensor, const void *, tensor, const void *, activation, tensor,
                      void *);
};

constexpr bool is_out_of_memory(status x) noexcept { return x == 2 || x == 4003 || x == 4004; }
constexpr bool is_unsupported(status x) noexcept { return x == 9 || x / 1000 == 3; }

// nullptr: there is none, or SG_CUDA_CUDNN does not allow it. Any thread; looked for once, stays loaded.
const functions *load() noexcept;
// The functions after a successful load().
const functions &library() noexcept;

}  // namespace sg::cuda::dnn
