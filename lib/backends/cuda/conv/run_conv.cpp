// SPDX-License-Identifier: Apache-2.0
// The command: which convolutions cuDNN computes as they are promised, and their run in a stream.
#include <algorithm>
#include <utility>

#include "backends/cuda/conv/convolution.hpp"
#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gpu/gpu.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/kernels/layers.hpp"
#include "backends/cuda/memory/call_stream.hpp"

namespace sg::cuda {
namespace {

constexpr std::uintptr_t alignment = 16;  // of cuDNN's vectors

// cuDNN pads both sides alike.
bool is_symmetric(std::int64_t size, std::int64_t pad, std::int64_t dilation, std::int64_t kernel, std::int64_t stride,
                  std::int64_t out) noexcept {
  const std::int64_t room = size + 2 * pad - dilation * (kernel - 1) - 1;
  return room >= 0 && room / stride + 1 == out;
}

// Some of cuDNN's kernels round sums of f16 and bf16 before they add a bias, or Y: seen on an H200 with bf16. ReLU of a
// rounded sum is exact; GELU is not. Images of one element do not say what the order of Y is. cuDNN's numbers are ints.
bool suits(const sg_backend_conv &c) noexcept {
  const sg_backend_windows &w = c.of;
  const double elements = double(w.channels) * w.height * w.width, results = double(c.out_channels) * w.out_h * w.out_w;
  const bool is_rounded_once = is_short_float(c.type) && c.bias == nullptr && c.activation != SG_ACTIVATION_GELU;
  return (c.type == SG_DTYPE_F32 || is_rounded_once) && w.images > 0 && elements > 1 && results > 0 &&
         std::max(elements, results) * double(w.images) < 0x1p31 &&
         is_symmetric(w.height, w.pad_top, w.dilation_h, w.kernel_h, w.stride_h, w.out_h) &&
         is_symmetric(w.width, w.pad_left, w.dilation_w, w.kernel_w, w.stride_w, w.out_w);
}

// An operand where cuDNN's kernels can read it: where it is, or a copy.
class placed {
 public:
  explicit placed(call_stream &in) noexcept : in_(in) {}
  ~placed() {
    if (own_ != given_) in_.release(own_);
  }
  placed(const placed &) = delete;
  placed &operator=(const placed &) = delete;

  // cuDNN's kernels read whole vectors: of an operand that ends within one, beyond its end.
  sg_status take(const void *given, std::int64_t bytes, bool reads) noexcept {
    given_ = own_ = const_cast<void *>(given);
    bytes_ = static_cast<std::size_t>(bytes);
    const bool ends_within = reads && bytes_ % alignment != 0;
    if (given == nullptr || (reinterpret_cast<std::uintptr_t>(given) % alignment == 0 && !ends_within))
      return SG_STATUS_OK;
    const sg_status status = take_room(bytes + static_cast<std::int64_t>(alignment));
    return status == SG_STATUS_OK && reads ? move(own_, given_) : status;
  }
  sg_status take_room(std::int64_t bytes) noexcept {
    void *room = nullptr;
    const sg_status status = in_.acquire(static_cast<std::uint64_t>(bytes), &room);
    if (status == SG_STATUS_OK) own_ = room;
    return status;
  }
  sg_status bring_back() noexcept { return own_ == given_ ? SG_STATUS_OK : move(given_, own_); }
  void *data() const noexcept { return own_; }

 private:
  sg_status move(void *to, const void *from) noexcept {
    return in_.owner().check(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDeviceToDevice, in_.native()),
                             "copying an operand of a convolution");
  }

  call_stream &in_;
  void *given_ = nullptr, *own_ = nullptr;
  std::size_t bytes_ = 0;
};

// Brings filters to the order of the images: OHWI are a matrix of the single pixels of OIHW.
sg_status reorder_filters(call_stream &in, const sg_backend_conv &c, void *to) noexcept {
  const std::int64_t channels = c.of.channels / c.of.groups, taps = std::int64_t{c.of.kernel_h} * c.of.kernel_w;
  sg_backend_windows w{};
  w.images = c.out_channels, w.image = channels * taps, w.channel = taps, w.row = c.of.kernel_w, w.pixel = 1;
  w.positions = c.out_channels * taps, w.position = channels, w.column = 1;
  w.channels = static_cast<std::int32_t>(channels), w.groups = 1;
  w.height = w.out_h = c.of.kernel_h, w.width = w.out_w = c.of.kernel_w;
  w.kernel_h = w.kernel_w = w.stride_h = w.stride_w = w.dilation_h = w.dilation_w = 1;
  constexpr const char *what = "starting to reorder filters";
  if (has_channels_last(c.of)) {
    const sg_backend_im2col take{
        {sizeof take, SG_BACKEND_IM2COL}, w, c.w, to, static_cast<std::int32_t>(element_size(c.type)), 0};
    return in.owner().check(launch_im2col(take, in.native()), what);
  }
  const sg_backend_col2im put{{sizeof put, SG_BACKEND_COL2IM}, w, c.w, to, c.type, c.type, 0, 0};
  return in.owner().check(launch_col2im(put, in.native()), what);
}

// Y = activation(Y + bias), of f32 or without a bias.
sg_status finish(call_stream &in, const sg_backend_conv &c, const void *bias, sg_activation activation) noexcept {
  const std::int64_t of_image = std::int64_t{c.of.out_h} * c.of.out_w, outputs = c.out_channels;
  const bool last = has_channels_last(c.of), by_image = bias != nullptr && !last;
  sg_backend_reduce what{};
  what.header = {sizeof what, SG_BACKEND_REDUCE};
  what.part_type = SG_DTYPE_F32;
  what.out_type = c.type;
  what.beta.re = 1;
  what.m = bias == nullptr ? c.y_image : last ? outputs : of_image;
  what.n = bias == nullptr ? c.of.images : last ? of_image * c.of.images : outputs;
  what.ldc = what.m;
  what.bias = bias;
  what.bias_per_row = last;
  what.activation = activation;
  for (std::int64_t image = 0; image < (by_image ? c.of.images : 1); ++image) {
    what.c = static_cast<char *>(c.y) + image * c.y_image * element_size(c.type);
    if (const sg_status status =
            in.owner().check(launch_reduce(what, in.native()), "starting the end of a convolution"))
      return status;
  }
  return SG_STATUS_OK;
}

sg_status run(call_stream &in, conv_resources &by, const convolution &shape, const convolution::way &how,
              void *workspace, const sg_backend_conv &what) noexcept {
  dnn::handle handle = nullptr;
  if (const sg_status status = by.dnn_handle(in.native(), handle)) return status;
  const void *bias = what.bias;
  sg_activation activation = what.activation;
  dnn::status outcome = 0;
  bool is_fused = shape.fuses(how, what);
  if (is_fused) {
    outcome = shape.run_fused(handle, how, workspace, what);
    is_fused = !dnn::is_unsupported(outcome);
    if (is_fused) bias = nullptr;
    if (is_fused && activation == SG_ACTIVATION_RELU) activation = SG_ACTIVATION_NONE;
  }
  if (!is_fused) outcome = shape.run(handle, how, workspace, what);
  if (outcome != 0) return dnn_failure(outcome, "starting a convolution");
  return bias == nullptr && activation == SG_ACTIVATION_NONE ? SG_STATUS_OK : finish(in, what, bias, activation);
}

// With less memory by an algorithm that needs less.
sg_status run_with_workspace(call_stream &in, conv_resources &by, const convolution &shape,
                             const sg_backend_conv &what) noexcept {
  const auto &ways = shape.ways();
  for (std::size_t i = 0;; ++i) {
    const convolution::way &how = ways[i];
    if (how.workspace == 0) return run(in, by, shape, how, nullptr, what);
    void *workspace = nullptr;
    const sg_status status = in.acquire(how.workspace, &workspace);
    if (status == SG_STATUS_OUT_OF_MEMORY && i + 1 < ways.size()) continue;
    if (status != SG_STATUS_OK) return status;
    const sg_status outcome = run(in, by, shape, how, workspace, what);
    in.release(workspace);
    return outcome;
  }
}

}  // namespace

bool supports_conv(gpu &on, convolution_cache &known, const sg_backend_conv &what) noexcept {
  if (!suits(what) || dnn::load() == nullptr || on.usable() != SG_STATUS_OK) return false;
  const current here(on.context());
  return known.find(on, what) != nullptr;
}

sg_status run_conv(call_stream &in, conv_resources &by, const sg_backend_conv &what) noexcept {
  const bool has_one = suits(what) && dnn::load() != nullptr;
  const auto shape = has_one ? by.known().find(in.owner(), what) : nullptr;
  if (shape == nullptr)
    return fail(SG_STATUS_UNSUPPORTED, "cuDNN has no convolution of %d x %d x %d with %d of %d x %d, of type %d",
                what.of.channels, what.of.height, what.of.width, what.out_channels, what.of.kernel_h, what.of.kernel_w,
                int{what.type});
  const std::int64_t size = element_size(what.type);
  placed x(in), w(in), bias(in), y(in);
  const std::int64_t filter = std::int64_t{what.of.channels} / what.of.groups * what.of.kernel_h * what.of.kernel_w;
  sg_status status = x.take(what.x, what.of.images * what.of.image * size, true);
  const bool has_two_orders = what.of.kernel_h * what.of.kernel_w > 1 && what.of.channels > what.of.groups;
  const bool is_reordered = has_two_orders && has_channels_last(what.of) != (what.of.channels_inner != 0);
  const std::int64_t w_bytes = what.out_channels * filter * size;
  if (status == SG_STATUS_OK) status = is_reordered ? w.take_room(w_bytes) : w.take(what.w, w_bytes, true);
  if (status == SG_STATUS_OK && is_reordered) status = reorder_filters(in, what, w.data());
  if (status == SG_STATUS_OK) status = bias.take(what.bias, what.out_channels * size, true);
  if (status == SG_STATUS_OK) status = y.take(what.y, what.of.images * what.y_image * size, false);
  if (status != SG_STATUS_OK) return status;
  sg_backend_conv here = what;
  here.x = x.data(), here.w = w.data(), here.bias = bias.data(), here.y = y.data();
  status = run_with_workspace(in, by, *shape, here);
  return status == SG_STATUS_OK ? y.bring_back() : status;
}

}  // namespace sg::cuda
