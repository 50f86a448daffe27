// SPDX-License-Identifier: Apache-2.0
// cuDNN on the emulated GPU, as far as the plugin calls it: sums in double precision. It is as strict as the plugin
// must expect: it proposes algorithms that the plugin does not use, has no kernel for some shapes, and nothing fused
// for others, and rounds sums of 16 bits before it adds a bias or Y.
#include "backends/cuda/libraries/dnn.hpp"

#include <streamgemm/backend.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/sim/layers.hpp"
#include "gpu.hpp"

#define API extern "C" __attribute__((visibility("default")))

namespace dnn = sg::cuda::dnn;
using emulated::call;

namespace sg::cuda::dnn {
struct context {
  cudaStream_t stream = nullptr;
};
struct tensor_descriptor {
  data_type type;
  int sizes[4], strides[4];  // of images, channels, rows, pixels
};
struct filter_descriptor {
  data_type type;
  tensor_format format;
  int sizes[4];  // output channels, channels of a group, rows, columns
};
struct convolution_descriptor {
  int pads[2], strides[2], dilations[2];
  int groups = 1;
  math_type math = default_math;
};
struct activation_descriptor {
  activation_mode mode;
};
}  // namespace sg::cuda::dnn

namespace {

enum : dnn::status { success = 0, bad_param = 2000, not_supported = 3000, no_memory = 4004, execution_failed = 5000 };

dnn::status status_of(cudaError_t error) noexcept {
  if (error == cudaSuccess) return success;
  cudaGetLastError();  // cuDNN has its own runtime
  return error == cudaErrorMemoryAllocation ? no_memory : execution_failed;
}

template <class T>
dnn::status create(T **out) {
  *out = new T{};
  emulated::keep(*out);
  return success;
}
template <class T>
dnn::status destroy(T *x) {
  emulated::drop(x);
  delete x;
  return success;
}

sg_dtype type_of(dnn::data_type type) noexcept {
  return type == dnn::f32 ? SG_DTYPE_F32 : type == dnn::f16 ? SG_DTYPE_F16 : SG_DTYPE_BF16;
}

struct problem {
  dnn::tensor_descriptor x, y;
  dnn::filter_descriptor w;
  dnn::convolution_descriptor how;

  bool is_valid() const noexcept {
    for (int i = 0; i < 2; ++i) {
      const int room = x.sizes[2 + i] + 2 * how.pads[i] - how.dilations[i] * (w.sizes[2 + i] - 1) - 1;
      if (room < 0 || y.sizes[2 + i] != room / how.strides[i] + 1) return false;
    }
    return x.sizes[0] == y.sizes[0] && x.sizes[1] == w.sizes[1] * how.groups && y.sizes[1] == w.sizes[0] &&
           w.sizes[0] % how.groups == 0 && x.type == y.type && x.type == w.type &&
           (x.type != dnn::f32 || how.math == dnn::fma_math) && (x.strides[1] == 1) >= (w.format == dnn::nhwc);
  }
  // Windows as high as seven are in no algorithm; those of two rows only in the simplest one.
  bool has(dnn::algorithm by) const noexcept {
    if (w.sizes[2] == 7) return false;
    return by == dnn::implicit_gemm || (by <= dnn::explicit_gemm && w.sizes[2] != 2);
  }
  std::size_t workspace(dnn::algorithm by) const noexcept {
    return by == dnn::explicit_gemm               ? std::size_t{1} << 40
           : by == dnn::implicit_precomputed_gemm ? std::size_t{4096} * static_cast<std::size_t>(x.sizes[0])
                                                  : 0;
  }
  template <class Load>
  double sum(Load &&load, int n, int o, int row, int col) const {
    const int of_group = w.sizes[1], first = o / (w.sizes[0] / how.groups) * of_group;
    const int kernel_h = w.sizes[2], kernel_w = w.sizes[3];
    double sum = 0;
    for (int c = 0; c < of_group; ++c)
      for (int kh = 0; kh < kernel_h; ++kh)
        for (int kw = 0; kw < kernel_w; ++kw) {
          const int h = row * how.strides[0] - how.pads[0] + kh * how.dilations[0];
          const int v = col * how.strides[1] - how.pads[1] + kw * how.dilations[1];
          if (h < 0 || h >= x.sizes[2] || v < 0 || v >= x.sizes[3]) continue;
          const std::int64_t at = std::int64_t{n} * x.strides[0] + std::int64_t{first + c} * x.strides[1] +
                                  std::int64_t{h} * x.strides[2] + std::int64_t{v} * x.strides[3];
          const std::int64_t tap =
              w.format == dnn::nhwc ? (kh * kernel_w + kw) * of_group + c : (c * kernel_h + kh) * kernel_w + kw;
          sum += load(at, o * std::int64_t{of_group} * kernel_h * kernel_w + tap);
        }
    return sum;
  }
};

struct call_of {
  const void *x, *w, *bias;
  void *y, *workspace;
  std::size_t workspace_bytes;
  float keep;
  bool relu;
};

void convolve(const problem &p, const call_of &c) {
  if (c.workspace_bytes > 0) std::memset(c.workspace, 0x5a, c.workspace_bytes);
  sg::sim::with_layer_type(type_of(p.x.type), [&]<class Type>() {
    using stored = typename Type::stored;
    const auto *x = static_cast<const stored *>(c.x), *w = static_cast<const stored *>(c.w);
    const auto *bias = static_cast<const stored *>(c.bias);
    auto *y = static_cast<stored *>(c.y);
    const auto product = [&](std::int64_t i, std::int64_t j) { return Type::load(x[i]) * Type::load(w[j]); };
    for (int n = 0; n < p.y.sizes[0]; ++n)
      for (int o = 0; o < p.y.sizes[1]; ++o)
        for (int row = 0; row < p.y.sizes[2]; ++row)
          for (int col = 0; col < p.y.sizes[3]; ++col) {
            stored &to = y[std::int64_t{n} * p.y.strides[0] + std::int64_t{o} * p.y.strides[1] +
                           std::int64_t{row} * p.y.strides[2] + std::int64_t{col} * p.y.strides[3]];
            double sum = p.sum(product, n, o, row, col);
            if (sizeof(stored) == 2) sum = Type::load(Type::store(sum));
            if (c.keep != 0) sum += double(c.keep) * Type::load(to);
            if (bias != nullptr) sum += Type::load(bias[o]);
            to = Type::store(c.relu && sum < 0 ? 0 : sum);
          }
  });
}

dnn::status submit(dnn::handle handle, const problem &p, dnn::algorithm by, const call_of &c) {
  if (const dnn::status status = status_of(emulated::enter(call::command))) return status;
  if (!p.is_valid() || !p.has(by) || c.workspace_bytes < p.workspace(by)) return bad_param;
  for (const void *each : {c.x, c.w, c.bias, static_cast<const void *>(c.y)})
    if (reinterpret_cast<std::uintptr_t>(each) % 16 != 0) return bad_param;
  const void *workspace = c.workspace_bytes > 0 ? c.workspace : nullptr;
  if (const dnn::status status = status_of(emulated::reach(handle->stream, {c.x, c.w, c.bias, c.y, workspace})))
    return status;
  return status_of(emulated::enqueue(handle->stream, [=] { convolve(p, c); }));
}

float scalar(const void *at) noexcept { return *static_cast<const float *>(at); }

}  // namespace

API std::size_t cudnnGetVersion() { return 90100; }
API const char *cudnnGetErrorString(dnn::status status) {
  switch (status) {
    case no_memory: return "the resource allocation of the emulated cuDNN failed";
    case execution_failed: return "the emulated cuDNN failed to launch";
    default: return "another status of the emulated cuDNN";
  }
}
API dnn::status cudnnCreate(dnn::handle *out) {
  if (const dnn::status status = status_of(emulated::enter(call::allocation))) return status;
  return create(out);
}
API dnn::status cudnnDestroy(dnn::handle x) { return destroy(x); }
API dnn::status cudnnSetStream(dnn::handle x, cudaStream_t stream) {
  x->stream = stream;
  return success;
}
API dnn::status cudnnCreateTensorDescriptor(dnn::tensor *out) { return create(out); }
API dnn::status cudnnDestroyTensorDescriptor(dnn::tensor x) { return destroy(x); }
API dnn::status cudnnSetTensor4dDescriptorEx(dnn::tensor x, dnn::data_type type, int n, int c, int h, int w, int of_n,
                                             int of_c, int of_h, int of_w) {
  *x = {type, {n, c, h, w}, {of_n, of_c, of_h, of_w}};
  return std::min({n, c, h, w}) > 0 ? success : bad_param;
}
API dnn::status cudnnCreateFilterDescriptor(dnn::filter *out) { return create(out); }
API dnn::status cudnnDestroyFilterDescriptor(dnn::filter x) { return destroy(x); }
API dnn::status cudnnSetFilter4dDescriptor(dnn::filter x, dnn::data_type type, dnn::tensor_format format, int k, int c,
                                           int h, int w) {
  *x = {type, format, {k, c, h, w}};
  return std::min({k, c, h, w}) > 0 ? success : bad_param;
}
API dnn::status cudnnCreateConvolutionDescriptor(dnn::convolution *out) { return create(out); }
API dnn::status cudnnDestroyConvolutionDescriptor(dnn::convolution x) { return destroy(x); }
API dnn::status cudnnSetConvolution2dDescriptor(dnn::convolution x, int pad_h, int pad_w, int stride_h, int stride_w,
                                                int dilation_h, int dilation_w, int mode, dnn::data_type type) {
  *x = {{pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}};
  return mode == dnn::cross_correlation && type == dnn::f32 ? success : bad_param;
}
API dnn::status cudnnSetConvolutionGroupCount(dnn::convolution x, int groups) {
  x->groups = groups;
  return success;
}
API dnn::status cudnnSetConvolutionMathType(dnn::convolution x, dnn::math_type math) {
  x->math = math;
  return success;
}
API dnn::status cudnnCreateActivationDescriptor(dnn::activation *out) { return create(out); }
API dnn::status cudnnDestroyActivationDescriptor(dnn::activation x) { return destroy(x); }
API dnn::status cudnnSetActivationDescriptor(dnn::activation x, dnn::activation_mode mode, int, double) {
  x->mode = mode;
  return success;
}

API dnn::status cudnnGetConvolutionForwardAlgorithm_v7(dnn::handle, dnn::tensor x, dnn::filter w, dnn::convolution how,
                                                       dnn::tensor y, int most, int *count, dnn::proposal *out) {
  *count = 0;
  const problem p{*x, *y, *w, *how};
  if (!p.is_valid()) return bad_param;
  constexpr int winograd = 6;
  for (const int each : {winograd, 2, 1, 0})
    for (const dnn::math_type math : {dnn::tensor_op_math, dnn::default_math}) {
      if (*count == most) return success;
      const auto by = static_cast<dnn::algorithm>(each);
      const bool known = each == winograd || p.has(by);
      out[(*count)++] = {by, known ? success : not_supported, float(*count), p.workspace(by), 1, math, {}};
    }
  return success;
}
API dnn::status cudnnGetConvolutionForwardWorkspaceSize(dnn::handle, dnn::tensor x, dnn::filter w, dnn::convolution how,
                                                        dnn::tensor y, dnn::algorithm by, std::size_t *out) {
  const problem p{*x, *y, *w, *how};
  if (!p.is_valid() || !p.has(by)) return not_supported;
  *out = p.workspace(by);
  return success;
}

API dnn::status cudnnConvolutionForward(dnn::handle handle, const void *alpha, dnn::tensor x_desc, const void *x,
                                        dnn::filter w_desc, const void *w, dnn::convolution how, dnn::algorithm by,
                                        void *workspace, std::size_t workspace_bytes, const void *beta,
                                        dnn::tensor y_desc, void *y) {
  if (scalar(alpha) != 1) return not_supported;
  return submit(handle, {*x_desc, *y_desc, *w_desc, *how}, by,
                {x, w, nullptr, y, workspace, workspace_bytes, scalar(beta), false});
}

API dnn::status cudnnConvolutionBiasActivationForward(dnn::handle handle, const void *alpha, dnn::tensor x_desc,
                                                      const void *x, dnn::filter w_desc, const void *w,
                                                      dnn::convolution how, dnn::algorithm by, void *workspace,
                                                      std::size_t workspace_bytes, const void *alpha_z, dnn::tensor,
                                                      const void *, dnn::tensor, const void *bias,
                                                      dnn::activation activation, dnn::tensor y_desc, void *y) {
  const problem p{*x_desc, *y_desc, *w_desc, *how};
  if (scalar(alpha) != 1 || scalar(alpha_z) != 0 || how->groups > 1 ||
      (activation->mode == dnn::identity && by != dnn::implicit_precomputed_gemm))
    return not_supported;
  return submit(handle, p, by, {x, w, bias, y, workspace, workspace_bytes, 0, activation->mode == dnn::relu});
}
