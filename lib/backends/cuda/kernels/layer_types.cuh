// SPDX-License-Identifier: Apache-2.0
// The element types of layers.h as types.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <streamgemm/types.h>

namespace sg::cuda {

template <class T>
struct element_type {
  using type = T;
};

// Calls body(element_type<T>()), which returns an error.
template <class Body>
cudaError_t with_layer_type(sg_dtype type, Body &&body) {
  switch (type) {
    case SG_DTYPE_F64: return body(element_type<double>());
    case SG_DTYPE_F32: return body(element_type<float>());
    case SG_DTYPE_F16: return body(element_type<__half>());
    case SG_DTYPE_BF16: return body(element_type<__nv_bfloat16>());
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
