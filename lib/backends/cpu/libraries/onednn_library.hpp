// SPDX-License-Identifier: Apache-2.0
// oneDNN's C functions, loaded with the first device, so that a process without devices loads none of its runtimes, and
// none is needed where it is not installed. Behind this header the names of the C functions are those of the loaded
// library, for its C++ header, too: a function that is not in the list is an undefined symbol when the library is
// linked.
#pragma once

#include <oneapi/dnnl/dnnl.h>

namespace sg::cpu {

// Each X(NAME) is dnnl_NAME. Meson says which of those with later numbers its headers have.
#ifdef SG_ONEDNN_HAS_MEMORY_CREATE_V2
#define SG_ONEDNN_MEMORY_CREATE_V2(X) X(memory_create_v2)
#else
#define SG_ONEDNN_MEMORY_CREATE_V2(X)
#endif
#ifdef SG_ONEDNN_HAS_MEMORY_DESC_GET_SIZE_V2
#define SG_ONEDNN_MEMORY_DESC_GET_SIZE_V2(X) X(memory_desc_get_size_v2)
#else
#define SG_ONEDNN_MEMORY_DESC_GET_SIZE_V2(X)
#endif
#ifdef SG_ONEDNN_HAS_PRIMITIVE_ATTR_SET_FPMATH_MODE_V2
#define SG_ONEDNN_PRIMITIVE_ATTR_SET_FPMATH_MODE_V2(X) X(primitive_attr_set_fpmath_mode_v2)
#else
#define SG_ONEDNN_PRIMITIVE_ATTR_SET_FPMATH_MODE_V2(X)
#endif
#if DNNL_VERSION_MAJOR >= 3
#define SG_ONEDNN_FUNCTIONS_OF_VERSION(X)        \
  SG_ONEDNN_MEMORY_CREATE_V2(X)                  \
  SG_ONEDNN_MEMORY_DESC_GET_SIZE_V2(X)           \
  SG_ONEDNN_PRIMITIVE_ATTR_SET_FPMATH_MODE_V2(X) \
  X(convolution_forward_primitive_desc_create)   \
  X(matmul_primitive_desc_create)                \
  X(memory_desc_clone)                           \
  X(memory_desc_create_with_strides)             \
  X(memory_desc_create_with_tag)                 \
  X(memory_desc_destroy)                         \
  X(memory_desc_query)
#else
#define SG_ONEDNN_FUNCTIONS_OF_VERSION(X)  \
  X(dilated_convolution_forward_desc_init) \
  X(matmul_desc_init)                      \
  X(memory_desc_init_by_strides)           \
  X(memory_desc_init_by_tag)               \
  X(post_ops_append_sum_v2)                \
  X(primitive_desc_iterator_create)        \
  X(primitive_desc_iterator_destroy)       \
  X(primitive_desc_iterator_fetch)
#endif
#define SG_ONEDNN_FUNCTIONS(X)          \
  SG_ONEDNN_FUNCTIONS_OF_VERSION(X)     \
  X(engine_create)                      \
  X(engine_destroy)                     \
  X(gemm_s8s8s32)                       \
  X(get_effective_cpu_isa)              \
  X(memory_create)                      \
  X(memory_desc_equal)                  \
  X(memory_desc_get_size)               \
  X(memory_destroy)                     \
  X(memory_set_data_handle)             \
  X(post_ops_append_sum)                \
  X(post_ops_create)                    \
  X(post_ops_destroy)                   \
  X(primitive_attr_create)              \
  X(primitive_attr_destroy)             \
  X(primitive_attr_set_fpmath_mode)     \
  X(primitive_attr_set_post_ops)        \
  X(primitive_attr_set_scratchpad_mode) \
  X(primitive_create)                   \
  X(primitive_desc_destroy)             \
  X(primitive_desc_query_md)            \
  X(primitive_destroy)                  \
  X(primitive_execute)                  \
  X(reorder_primitive_desc_create)      \
  X(sgemm)                              \
  X(stream_create)                      \
  X(stream_destroy)

struct onednn_library {
#define SG_ONEDNN_MEMBER(NAME) decltype(&::dnnl_##NAME) NAME;
  SG_ONEDNN_FUNCTIONS(SG_ONEDNN_MEMBER)
#undef SG_ONEDNN_MEMBER
  // Of its OpenMP runtime; NULL: it was built without.
  void (*set_num_threads)(int);
  int (*get_max_threads)();
};
extern onednn_library onednn_functions;

// Loads it, unless it is loaded or not installed: of the version that this library was built for.
void load_onednn() noexcept;
bool has_onednn() noexcept;  // does not change once load_onednn() has returned

}  // namespace sg::cpu

// NOLINTBEGIN: the names are oneDNN's
#define SG_ONEDNN(NAME) (::sg::cpu::onednn_functions.NAME)
#if DNNL_VERSION_MAJOR >= 3
#define dnnl_convolution_forward_primitive_desc_create SG_ONEDNN(convolution_forward_primitive_desc_create)
#define dnnl_matmul_primitive_desc_create SG_ONEDNN(matmul_primitive_desc_create)
#define dnnl_memory_desc_clone SG_ONEDNN(memory_desc_clone)
#define dnnl_memory_desc_create_with_strides SG_ONEDNN(memory_desc_create_with_strides)
#define dnnl_memory_desc_create_with_tag SG_ONEDNN(memory_desc_create_with_tag)
#define dnnl_memory_desc_destroy SG_ONEDNN(memory_desc_destroy)
#define dnnl_memory_desc_query SG_ONEDNN(memory_desc_query)
#define dnnl_memory_create_v2 SG_ONEDNN(memory_create_v2)
#define dnnl_memory_desc_get_size_v2 SG_ONEDNN(memory_desc_get_size_v2)
#define dnnl_primitive_attr_set_fpmath_mode_v2 SG_ONEDNN(primitive_attr_set_fpmath_mode_v2)
#else
#define dnnl_dilated_convolution_forward_desc_init SG_ONEDNN(dilated_convolution_forward_desc_init)
#define dnnl_matmul_desc_init SG_ONEDNN(matmul_desc_init)
#define dnnl_memory_desc_init_by_strides SG_ONEDNN(memory_desc_init_by_strides)
#define dnnl_memory_desc_init_by_tag SG_ONEDNN(memory_desc_init_by_tag)
#define dnnl_post_ops_append_sum_v2 SG_ONEDNN(post_ops_append_sum_v2)
#define dnnl_primitive_desc_iterator_create SG_ONEDNN(primitive_desc_iterator_create)
#define dnnl_primitive_desc_iterator_destroy SG_ONEDNN(primitive_desc_iterator_destroy)
#define dnnl_primitive_desc_iterator_fetch SG_ONEDNN(primitive_desc_iterator_fetch)
#endif
#define dnnl_engine_create SG_ONEDNN(engine_create)
#define dnnl_engine_destroy SG_ONEDNN(engine_destroy)
#define dnnl_gemm_s8s8s32 SG_ONEDNN(gemm_s8s8s32)
#define dnnl_get_effective_cpu_isa SG_ONEDNN(get_effective_cpu_isa)
#define dnnl_memory_create SG_ONEDNN(memory_create)
#define dnnl_memory_desc_equal SG_ONEDNN(memory_desc_equal)
#define dnnl_memory_desc_get_size SG_ONEDNN(memory_desc_get_size)
#define dnnl_memory_destroy SG_ONEDNN(memory_destroy)
#define dnnl_memory_set_data_handle SG_ONEDNN(memory_set_data_handle)
#define dnnl_post_ops_append_sum SG_ONEDNN(post_ops_append_sum)
#define dnnl_post_ops_create SG_ONEDNN(post_ops_create)
#define dnnl_post_ops_destroy SG_ONEDNN(post_ops_destroy)
#define dnnl_primitive_attr_create SG_ONEDNN(primitive_attr_create)
#define dnnl_primitive_attr_destroy SG_ONEDNN(primitive_attr_destroy)
#define dnnl_primitive_attr_set_fpmath_mode SG_ONEDNN(primitive_attr_set_fpmath_mode)
#define dnnl_primitive_attr_set_post_ops SG_ONEDNN(primitive_attr_set_post_ops)
#define dnnl_primitive_attr_set_scratchpad_mode SG_ONEDNN(primitive_attr_set_scratchpad_mode)
#define dnnl_primitive_create SG_ONEDNN(primitive_create)
#define dnnl_primitive_desc_destroy SG_ONEDNN(primitive_desc_destroy)
#define dnnl_primitive_desc_query_md SG_ONEDNN(primitive_desc_query_md)
#define dnnl_primitive_destroy SG_ONEDNN(primitive_destroy)
#define dnnl_primitive_execute SG_ONEDNN(primitive_execute)
#define dnnl_reorder_primitive_desc_create SG_ONEDNN(reorder_primitive_desc_create)
#define dnnl_sgemm SG_ONEDNN(sgemm)
#define dnnl_stream_create SG_ONEDNN(stream_create)
#define dnnl_stream_destroy SG_ONEDNN(stream_destroy)
// NOLINTEND
