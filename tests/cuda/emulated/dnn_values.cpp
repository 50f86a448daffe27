// SPDX-License-Identifier: Apache-2.0
// What the plugin declares of cuDNN, against cuDNN's own header where there is one.
#include "backends/cuda/libraries/dnn.hpp"

#if __has_include(<cudnn.h>)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace dnn = sg::cuda::dnn;

static_assert(int{dnn::f32} == CUDNN_DATA_FLOAT && int{dnn::f16} == CUDNN_DATA_HALF);
static_assert(int{dnn::bf16} == CUDNN_DATA_BFLOAT16);
static_assert(int{dnn::nchw} == CUDNN_TENSOR_NCHW && int{dnn::nhwc} == CUDNN_TENSOR_NHWC);
static_assert(int{dnn::default_math} == CUDNN_DEFAULT_MATH && int{dnn::tensor_op_math} == CUDNN_TENSOR_OP_MATH);
static_assert(int{dnn::fma_math} == CUDNN_FMA_MATH);
static_assert(int{dnn::implicit_gemm} == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
static_assert(int{dnn::implicit_precomputed_gemm} == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
static_assert(int{dnn::explicit_gemm} == CUDNN_CONVOLUTION_FWD_ALGO_GEMM);
static_assert(int{dnn::algorithms} == CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
static_assert(int{dnn::relu} == CUDNN_ACTIVATION_RELU && int{dnn::identity} == CUDNN_ACTIVATION_IDENTITY);
static_assert(dnn::cross_correlation == CUDNN_CROSS_CORRELATION && dnn::propagate_nan == CUDNN_PROPAGATE_NAN);

using theirs = cudnnConvolutionFwdAlgoPerf_t;
static_assert(sizeof(dnn::proposal) == sizeof(theirs));
static_assert(offsetof(dnn::proposal, state) == offsetof(theirs, status));
static_assert(offsetof(dnn::proposal, workspace) == offsetof(theirs, memory));
static_assert(offsetof(dnn::proposal, math) == offsetof(theirs, mathType));
#if CUDNN_MAJOR >= 9
static_assert(dnn::is_out_of_memory(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED));
static_assert(dnn::is_out_of_memory(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED));
static_assert(dnn::is_unsupported(CUDNN_STATUS_NOT_SUPPORTED_SHAPE));
#endif
static_assert(dnn::is_unsupported(CUDNN_STATUS_NOT_SUPPORTED) && CUDNN_STATUS_SUCCESS == 0);

// Functions have as many arguments, each of the same size.
template <class R, class... A>
std::index_sequence<sizeof(A)...> arguments_of(R (*)(A...));
#define SAME(ours, theirs) \
  static_assert(std::is_same_v<decltype(arguments_of(dnn::functions{}.ours)), decltype(arguments_of(&theirs))>)
SAME(create, cudnnCreate);
SAME(set_stream, cudnnSetStream);
SAME(tensor_set, cudnnSetTensor4dDescriptorEx);
SAME(filter_set, cudnnSetFilter4dDescriptor);
SAME(convolution_set, cudnnSetConvolution2dDescriptor);
SAME(convolution_set_groups, cudnnSetConvolutionGroupCount);
SAME(convolution_set_math, cudnnSetConvolutionMathType);
SAME(activation_set, cudnnSetActivationDescriptor);
SAME(propose, cudnnGetConvolutionForwardAlgorithm_v7);
SAME(workspace, cudnnGetConvolutionForwardWorkspaceSize);
SAME(run, cudnnConvolutionForward);
SAME(run_fused, cudnnConvolutionBiasActivationForward);
#endif
