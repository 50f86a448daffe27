// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/dnn/conv.hpp"

#include <algorithm>
#include <new>
#include <optional>

#include "backends/common/types.hpp"
#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/log.hpp"
#include "backends/cuda/gpu/gpu.hpp"
#include "backends/cuda/kernels/conv_depthwise.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/kernels/layers.hpp"
#include "backends/cuda/memory/call_stream.hpp"

namespace sg::cuda {
namespace {

using dnn::executable;

constexpr std::uintptr_t alignment = 16;  // of cuDNN's vectors
// As the matrices of windows by default.
constexpr std::size_t most_workspace = std::size_t{256} << 20;
constexpr std::size_t enough_ways = 3;

enum tensor : std::int64_t { of_x, of_w, of_y, of_bias };

bool has_channels_last(const sg_backend_windows &w) noexcept { return w.channel == 1 && w.pixel == w.channels; }

// The padding behind the last row or column; nothing: the windows are not those of a padded image.
std::optional<std::int64_t> padding_behind(std::int64_t size, std::int64_t pad, std::int64_t dilation,
                                           std::int64_t kernel, std::int64_t stride, std::int64_t out) noexcept {
  const std::int64_t span = dilation * (kernel - 1) + 1, behind = (out - 1) * stride + span - size - pad;
  const std::int64_t padded = std::max<std::int64_t>(behind, 0);
  if ((size + pad + padded - span) / stride + 1 != out) return {};
  // The same on both sides, if the windows allow it: cuDNN has more kernels for it.
  if (pad > padded && size + 2 * pad >= span && (size + 2 * pad - span) / stride + 1 == out) return pad;
  return padded;
}

sg_dtype filter_type(const sg_backend_conv &c) noexcept { return c.w_type != 0 ? c.w_type : c.type; }

// Images of one element do not say what the order of Y is. cuDNN's numbers are ints. Its gradients of W in f32 from
// images of bf16 were wrong (9.19 on an H100, one column of windows).
std::optional<dnn::computation::convolution> windows_of(const sg_backend_conv &c) noexcept {
  const sg_backend_windows &w = c.of;
  const double elements = double(w.channels) * w.height * w.width, results = double(c.out_channels) * w.out_h * w.out_w;
  const auto below = padding_behind(w.height, w.pad_top, w.dilation_h, w.kernel_h, w.stride_h, w.out_h);
  const auto right = padding_behind(w.width, w.pad_left, w.dilation_w, w.kernel_w, w.stride_w, w.out_w);
  if (w.images <= 0 || elements <= 1 || results <= 0 || std::max(elements, results) * double(w.images) >= 0x1p31 ||
      !below || !right || (c.type != SG_DTYPE_F32 && !is_short_float(c.type)) || filter_type(c) != c.type)
    return {};
  return dnn::computation::convolution{
      {w.pad_top, w.pad_left}, {*below, *right}, {w.stride_h, w.stride_w}, {w.dilation_h, w.dilation_w}};
}

dnn::data_type type_of(sg_dtype type) noexcept {
  return type == SG_DTYPE_F32 ? dnn::f32 : type == SG_DTYPE_F16 ? dnn::f16 : dnn::bf16;
}

dnn::extent tensor_of(bool last, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) noexcept {
  if (last) return {{n, c, h, w}, {c * h * w, 1, w * c, c}};
  return dnn::extent::dense(n, c, h, w);
}

// Winograd's and Fourier's methods are less accurate than sums of products. Exact f32 has no tf32.
std::uint32_t refused_notes(const sg_backend_conv &c) noexcept {
  std::uint32_t notes = 1u << dnn::uses_winograd | 1u << dnn::uses_winograd_of_4 | 1u << dnn::uses_winograd_of_6 |
                        1u << dnn::uses_winograd_of_13 | 1u << dnn::uses_fourier | 1u << dnn::narrows_sums;
  if (c.gradient == SG_BACKEND_CONV_OF_Y || dnn::wants_same_bits()) notes |= 1u << dnn::is_nondeterministic;
  if (c.type == SG_DTYPE_F32) notes |= 1u << dnn::uses_tensor_cores | 1u << dnn::narrows_inputs;
  return notes;
}

struct fused_end {
  bool bias = false, relu = false;
};

void describe(dnn::computation &to, const sg_backend_conv &c, const dnn::computation::convolution &how,
              const fused_end &end) {
  const sg_backend_windows &w = c.of;
  const bool last = has_channels_last(w);
  const dnn::data_type type = type_of(c.type);
  const auto images = to.stored(of_x, tensor_of(last, w.images, w.channels, w.height, w.width), type);
  const auto filters = to.stored(of_w, tensor_of(last, c.out_channels, w.channels / w.groups, w.kernel_h, w.kernel_w),
                                 type_of(filter_type(c)));
  const dnn::extent of_results = tensor_of(last, w.images, c.out_channels, w.out_h, w.out_w);
  const auto results = to.stored(of_y, of_results, type);
  const dnn::descriptor_kind which = c.gradient == SG_BACKEND_CONV_OF_X   ? dnn::convolution_data_gradient
                                     : c.gradient == SG_BACKEND_CONV_OF_W ? dnn::convolution_filter_gradient
                                                                          : dnn::convolution_forward;
  if (!end.bias && !end.relu) return to.convolve(which, how, images, filters, results);
  auto sums = to.within(of_results, dnn::f32);
  to.convolve(which, how, images, filters, sums);
  if (end.bias) {
    const auto bias = to.stored(of_bias, tensor_of(last, 1, c.out_channels, 1, 1), type);
    const auto more = end.relu ? to.within(of_results, dnn::f32) : results;
    to.apply(dnn::add, dnn::f32, more, sums, bias);
    sums = more;
  }
  if (end.relu) to.apply(dnn::relu, dnn::f32, results, sums);
}

const executable *find(gpu &owner, dnn::executable_cache &known, const sg_backend_conv &c, const fused_end &end) {
  const auto how = windows_of(c);
  if (!how) return nullptr;
  const sg_backend_windows &w = c.of;
  const dnn::executable_cache::shape shape = {2 + c.gradient, w.images,
                                              w.channels,     w.groups,
                                              w.height,       w.width,
                                              w.kernel_h,     w.kernel_w,
                                              w.stride_h,     w.stride_w,
                                              w.pad_top,      w.pad_left,
                                              w.dilation_h,   w.dilation_w,
                                              w.out_h,        w.out_w,
                                              c.out_channels, c.type,
                                              end.bias,       end.relu,
                                              c.w_type,       has_channels_last(w)};
  return known.find(owner, shape, [&](dnn::handle by) {
    dnn::computation made;
    describe(made, c, *how, end);
    auto found = made.finish(by, {refused_notes(c), most_workspace, enough_ways});
    // Without its end, it is tried again, unless that would round twice.
    const bool is_last = (!end.bias && !end.relu) || (end.bias && is_short_float(c.type));
    if (found == nullptr && is_last)
      log_fallback("cuDNN has no convolution of %d x %d x %d with %d of %d x %d, of type %d: it is GEMMs", w.channels,
                   w.height, w.width, c.out_channels, w.kernel_h, w.kernel_w, int{c.type});
    return found;
  });
}

// The executable of a command, and the bias and activation that a kernel of their own applies afterwards.
struct way_to_run {
  const executable *by = nullptr;
  bool adds_bias = false;
  sg_activation activation = SG_ACTIVATION_NONE;
};

// ReLU of a rounded sum is exact; a bias that is added to it, and GELU of it, are not. cuDNN 9.19 fuses the end of f32
// images, and ReLU of groups, in kernels that took up to 42 times as long as those of the convolution alone on an H100
// (3x3 windows of 1280 channels; no record is kept).
fused_end fused_end_of(const sg_backend_conv &c) noexcept {
  const bool has_bias = c.bias != nullptr, has_relu = c.activation == SG_ACTIVATION_RELU;
  if (!is_short_float(c.type)) return {};
  return {has_bias, has_relu && (has_bias || c.of.groups == 1)};
}

way_to_run find_way(gpu &owner, dnn::executable_cache &known, const sg_backend_conv &c) noexcept {
  try {
    const fused_end wanted = fused_end_of(c);
    const bool rounds = is_short_float(c.type), has_bias = c.bias != nullptr;
    if (rounds && c.activation == SG_ACTIVATION_GELU) return {};
    if (wanted.bias || wanted.relu)
      if (const executable *found = find(owner, known, c, wanted))
        return {found, has_bias && !wanted.bias, wanted.relu ? SG_ACTIVATION_NONE : c.activation};
    if (wanted.bias && wanted.relu)
      if (const executable *found = find(owner, known, c, {true, false})) return {found, false, c.activation};
    if (rounds && has_bias) return {};
    return {find(owner, known, c, {}), has_bias, c.activation};
  } catch (const std::bad_alloc &) {
    return {};
  }
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

// Brings filters to the order of the images, or back: OHWI are a matrix of the single pixels of OIHW.
sg_status reorder_filters(call_stream &in, const sg_backend_conv &c, const void *from, void *to,
                          bool to_channels_last) noexcept {
  const std::int64_t channels = c.of.channels / c.of.groups, taps = std::int64_t{c.of.kernel_h} * c.of.kernel_w;
  sg_backend_windows w{};
  w.images = c.out_channels, w.image = channels * taps, w.channel = taps, w.row = c.of.kernel_w, w.pixel = 1;
  w.positions = c.out_channels * taps, w.position = channels, w.column = 1;
  w.channels = static_cast<std::int32_t>(channels), w.groups = 1;
  w.height = w.out_h = c.of.kernel_h, w.width = w.out_w = c.of.kernel_w;
  w.kernel_h = w.kernel_w = w.stride_h = w.stride_w = w.dilation_h = w.dilation_w = 1;
  constexpr const char *what = "starting to reorder filters";
  const sg_dtype type = filter_type(c);
  if (to_channels_last) {
    const sg_backend_im2col take{
        {sizeof take, SG_BACKEND_IM2COL}, w, from, to, static_cast<std::int32_t>(element_size(type)), 0};
    return in.owner().check(launch_im2col(take, in.native()), what);
  }
  const sg_backend_col2im put{{sizeof put, SG_BACKEND_COL2IM}, w, from, to, type, type, 0, 0};
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

// With less memory by a way that needs less.
sg_status run(call_stream &in, dnn::stream_resources &by, const way_to_run &way, const sg_backend_conv &c) noexcept {
  dnn::handle handle = nullptr;
  if (const sg_status status = by.handle_of(in.native(), handle)) return status;
  const executable::bound tensors[] = {{of_x, c.x}, {of_w, c.w}, {of_y, c.y}, {of_bias, c.bias}};
  const std::size_t bound = c.bias != nullptr && !way.adds_bias ? 4 : 3;
  const auto &ways = way.by->ways();
  for (std::size_t i = 0;; ++i) {
    void *workspace = nullptr;
    if (ways[i].workspace > 0) {
      const sg_status status = in.acquire(ways[i].workspace, &workspace);
      if (status == SG_STATUS_OUT_OF_MEMORY && i + 1 < ways.size()) continue;
      if (status != SG_STATUS_OK) return status;
    }
    const dnn::status outcome = way.by->run(handle, ways[i], {tensors, bound}, workspace);
    in.release(workspace);
    if (outcome != 0) return dnn::failure(outcome, "starting a convolution");
    const void *bias = way.adds_bias ? c.bias : nullptr;
    return bias == nullptr && way.activation == SG_ACTIVATION_NONE ? SG_STATUS_OK : finish(in, c, bias, way.activation);
  }
}

}  // namespace

bool supports_conv(gpu &on, dnn::executable_cache &known, const sg_backend_conv &what) noexcept {
  if (is_depthwise(what)) return true;
  if (!windows_of(what) || dnn::load() == nullptr || on.usable() != SG_STATUS_OK) return false;
  const current here(on.context());
  return find_way(on, known, what).by != nullptr;
}

sg_status run_conv(call_stream &in, dnn::stream_resources &by, const sg_backend_conv &what) noexcept {
  if (is_depthwise(what)) return in.owner().check(launch_conv_depthwise(what, in.native()), "starting a convolution");
  const way_to_run way = dnn::load() == nullptr ? way_to_run{} : find_way(in.owner(), by.known(), what);
  if (way.by == nullptr)
    return fail(SG_STATUS_UNSUPPORTED, "cuDNN has no convolution of %d x %d x %d with %d of %d x %d, of type %d",
                what.of.channels, what.of.height, what.of.width, what.out_channels, what.of.kernel_h, what.of.kernel_w,
                int{what.type});
  const std::int64_t size = element_size(what.type);
  const bool x_is_result = what.gradient == SG_BACKEND_CONV_OF_X;
  const bool w_is_result = what.gradient == SG_BACKEND_CONV_OF_W, y_is_result = !x_is_result && !w_is_result;
  placed x(in), w(in), bias(in), y(in);
  const std::int64_t filter = std::int64_t{what.of.channels} / what.of.groups * what.of.kernel_h * what.of.kernel_w;
  sg_status status = x.take(what.x, what.of.images * what.of.image * size, !x_is_result);
  const bool has_two_orders = what.of.kernel_h * what.of.kernel_w > 1 && what.of.channels > what.of.groups;
  const bool last = has_channels_last(what.of), is_reordered = has_two_orders && last != (what.of.channels_inner != 0);
  const std::int64_t w_bytes = what.out_channels * filter * element_size(filter_type(what));
  if (status == SG_STATUS_OK) status = is_reordered ? w.take_room(w_bytes) : w.take(what.w, w_bytes, !w_is_result);
  if (status == SG_STATUS_OK && is_reordered && !w_is_result)
    status = reorder_filters(in, what, what.w, w.data(), last);
  if (status == SG_STATUS_OK) status = bias.take(what.bias, what.out_channels * size, true);
  if (status == SG_STATUS_OK) status = y.take(what.y, what.of.images * what.y_image * size, !y_is_result);
  if (status != SG_STATUS_OK) return status;
  sg_backend_conv here = what;
  here.x = x.data(), here.w = w.data(), here.bias = bias.data(), here.y = y.data();
  status = run(in, by, way, here);
  if (status != SG_STATUS_OK) return status;
  if (x_is_result) return x.bring_back();
  if (y_is_result) return y.bring_back();
  return is_reordered ? reorder_filters(in, what, w.data(), what.w, !last) : w.bring_back();
}

}  // namespace sg::cuda
