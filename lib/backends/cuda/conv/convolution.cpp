// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/conv/convolution.hpp"

#include <algorithm>
#include <new>

#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/log.hpp"
#include "backends/cuda/driver/process_end.hpp"
#include "backends/cuda/gpu/gpu.hpp"

namespace sg::cuda {
namespace {

constexpr std::size_t most_shapes = 512;
// As the matrices of windows by default.
constexpr std::size_t most_workspace = std::size_t{256} << 20;

dnn::data_type type_of(sg_dtype type) noexcept {
  return type == SG_DTYPE_F32 ? dnn::f32 : type == SG_DTYPE_F16 ? dnn::f16 : dnn::bf16;
}

// Winograd's and Fourier's are less accurate than sums of products.
bool adds_products(dnn::algorithm by) noexcept {
  return by == dnn::implicit_gemm || by == dnn::implicit_precomputed_gemm || by == dnn::explicit_gemm;
}

bool set(dnn::tensor of, dnn::data_type type, bool last, std::int64_t images, std::int64_t channels, std::int64_t rows,
         std::int64_t cols) noexcept {
  const auto n = [](std::int64_t value) { return static_cast<int>(value); };
  return dnn::library().tensor_set(of, type, n(images), n(channels), n(rows), n(cols), n(channels * rows * cols),
                                   last ? 1 : n(rows * cols), n(last ? cols * channels : cols),
                                   last ? n(channels) : 1) == 0;
}

}  // namespace

sg_status dnn_failure(dnn::status status, const char *what) noexcept {
  return fail(dnn::is_out_of_memory(status) ? SG_STATUS_OUT_OF_MEMORY : SG_STATUS_BACKEND_FAILURE, "%s: %s", what,
              dnn::library().text(status));
}

convolution::~convolution() {
  const dnn::functions &by = dnn::library();
  for (const dnn::tensor each : {x_, y_, bias_})
    if (each != nullptr) by.tensor_destroy(each);
  if (w_ != nullptr) by.filter_destroy(w_);
  if (how_ != nullptr) by.convolution_destroy(how_);
  for (const dnn::activation each : {relu_, none_})
    if (each != nullptr) by.activation_destroy(each);
}

bool convolution::describe(dnn::handle handle, const sg_backend_conv &what) {
  return make_descriptors(what) && find_ways(handle, what.type == SG_DTYPE_F32);
}

bool convolution::make_descriptors(const sg_backend_conv &c) noexcept {
  const dnn::functions &by = dnn::library();
  const sg_backend_windows &w = c.of;
  const dnn::data_type type = type_of(c.type);
  const bool last = has_channels_last(w);
  return by.tensor_create(&x_) == 0 && by.tensor_create(&y_) == 0 && by.tensor_create(&bias_) == 0 &&
         by.filter_create(&w_) == 0 && by.convolution_create(&how_) == 0 && by.activation_create(&relu_) == 0 &&
         by.activation_create(&none_) == 0 && set(x_, type, last, w.images, w.channels, w.height, w.width) &&
         set(y_, type, last, w.images, c.out_channels, w.out_h, w.out_w) &&
         set(bias_, type, last, 1, c.out_channels, 1, 1) &&
         by.filter_set(w_, type, last ? dnn::nhwc : dnn::nchw, c.out_channels, w.channels / w.groups, w.kernel_h,
                       w.kernel_w) == 0 &&
         by.convolution_set(how_, w.pad_top, w.pad_left, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w,
                            dnn::cross_correlation, dnn::f32) == 0 &&
         by.convolution_set_groups(how_, w.groups) == 0 &&
         by.activation_set(relu_, dnn::relu, dnn::propagate_nan, 0) == 0 &&
         by.activation_set(none_, dnn::identity, dnn::propagate_nan, 0) == 0;
}

// Exact f32 has no tf32. Others may run on tensor cores: with the arithmetic of the first proposal.
bool convolution::find_ways(dnn::handle handle, bool is_f32) {
  const dnn::functions &by = dnn::library();
  dnn::math_type math = is_f32 ? dnn::fma_math : dnn::tensor_op_math;
  if (by.convolution_set_math(how_, math) != 0) return false;
  constexpr int most = 2 * dnn::algorithms;  // with both kinds of arithmetic
  dnn::proposal all[most] = {};
  int count = 0;
  if (by.propose(handle, x_, w_, how_, y_, most, &count, all) != 0) return false;
  for (int i = 0; i < count; ++i) {
    const dnn::proposal &each = all[i];
    if (each.state != 0 || !adds_products(each.by)) continue;
    if (ways_.empty() && !is_f32) {
      math = each.math;
      if (by.convolution_set_math(how_, math) != 0) return false;
    }
    if (!is_f32 && each.math != math) continue;
    std::size_t workspace = 0;
    if (by.workspace(handle, x_, w_, how_, y_, each.by, &workspace) != 0 || workspace > most_workspace) continue;
    if (ways_.empty() || workspace < ways_.back().workspace) ways_.push_back({each.by, workspace});
  }
  return !ways_.empty();
}

bool convolution::fuses(const way &how, const sg_backend_conv &what) const noexcept {
  return what.bias != nullptr && (what.activation == SG_ACTIVATION_RELU || how.by == dnn::implicit_precomputed_gemm);
}

dnn::status convolution::run(dnn::handle handle, const way &how, void *workspace,
                             const sg_backend_conv &what) const noexcept {
  const float one = 1, zero = 0;
  return dnn::library().run(handle, &one, x_, what.x, w_, what.w, how_, how.by, workspace, how.workspace, &zero, y_,
                            what.y);
}

dnn::status convolution::run_fused(dnn::handle handle, const way &how, void *workspace,
                                   const sg_backend_conv &what) const noexcept {
  const float one = 1, zero = 0;
  return dnn::library().run_fused(handle, &one, x_, what.x, w_, what.w, how_, how.by, workspace, how.workspace, &zero,
                                  y_, what.y, bias_, what.bias, what.activation == SG_ACTIVATION_RELU ? relu_ : none_,
                                  y_, what.y);
}

convolution_cache::shape convolution_cache::shape_of(const sg_backend_conv &c) noexcept {
  const sg_backend_windows &w = c.of;
  return {w.images,   w.channels,           w.groups,       w.height,     w.width,   w.kernel_h, w.kernel_w,
          w.stride_h, w.stride_w,           w.dilation_h,   w.dilation_w, w.pad_top, w.pad_left, w.out_h,
          w.out_w,    has_channels_last(w), c.out_channels, c.type};
}

std::shared_ptr<const convolution> convolution_cache::find(gpu &owner, const sg_backend_conv &what) noexcept {
  try {
    const shape wanted = shape_of(what);
    const std::lock_guard lock(lock_);
    const auto known = known_.find(wanted);
    if (known != known_.end()) return known->second;
    if (handle_ == nullptr) {
      const dnn::status status = dnn::library().create(&handle_);
      if (status != 0) {
        handle_ = nullptr;
        log_fallback("cuDNN does not start on cuda:%d, convolutions are GEMMs: %s", owner.ordinal(),
                     dnn::library().text(status));
        return nullptr;
      }
      process_end::watch_again();
    }
    if (known_.size() == most_shapes) known_.clear();
    auto fresh = std::make_shared<convolution>();
    if (!fresh->describe(handle_, what)) {
      fresh.reset();
      log_fallback("cuDNN has no convolution of %d x %d x %d with %d of %d x %d, of type %d: it is GEMMs",
                   what.of.channels, what.of.height, what.of.width, what.out_channels, what.of.kernel_h,
                   what.of.kernel_w, int{what.type});
    }
    return known_.emplace(wanted, std::move(fresh)).first->second;
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

void convolution_cache::release() noexcept {
  known_.clear();
  if (handle_ != nullptr) dnn::library().destroy(handle_);
  handle_ = nullptr;
}

sg_status conv_resources::dnn_handle(cudaStream_t native, dnn::handle &out) noexcept {
  if (dnn_ == nullptr) {
    dnn::handle fresh = nullptr;
    if (const dnn::status status = dnn::library().create(&fresh)) return dnn_failure(status, "cuDNN does not start");
    if (const dnn::status status = dnn::library().set_stream(fresh, native)) {
      dnn::library().destroy(fresh);
      return dnn_failure(status, "cuDNN does not start");
    }
    dnn_ = fresh;
  }
  out = dnn_;
  return SG_STATUS_OK;
}

void conv_resources::free() noexcept {
  if (dnn_ != nullptr) dnn::library().destroy(dnn_);
}

}  // namespace sg::cuda
