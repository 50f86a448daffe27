// SPDX-License-Identifier: Apache-2.0
// Convolutions by oneDNN's primitive, which is generated for a shape and cached by each worker. NHWC images are taken
// as they are; NCHW images are brought to its own order and back, which is still faster than its kernel for that order,
// as many rows at a time as the command's scratch memory has room for. Filters are brought to its order by each call,
// because they may have changed.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/libraries/onednn.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "conv_bands.hpp"
#include "layers.hpp"
#include "windows.hpp"

namespace sg::cpu {
namespace {

using dims = dnnl::memory::dims;
using tag = dnnl::memory::format_tag;

// A band without its addresses; it has no padding.
struct conv_key {
  conv_band band;
  explicit conv_key(const conv_band &what) noexcept : band(what) {
    sg_backend_conv &of = band.of;
    of.x = of.w = nullptr;
    of.y = of.scratch = nullptr;
    of.scratch_bytes = 0;
    if (of.bias != nullptr) of.bias = &has_bias;
  }
  bool operator==(const conv_key &other) const noexcept { return std::memcmp(&band, &other.band, sizeof band) == 0; }
  static constexpr char has_bias = 0;
};
static_assert(sizeof(sg_backend_conv) == 224 && sizeof(conv_band) == 232);

// The memory of a command from its beginning on.
struct scratch_room {
  char *next;
  std::size_t left;

  // NULL: there is no room for as many.
  void *take(std::size_t bytes) noexcept {
    const std::size_t rounded = (bytes + 63) / 64 * 64;
    if (rounded > left) return nullptr;
    left -= rounded;
    return std::exchange(next, next + rounded);
  }
};

// Between the caller's order and oneDNN's; none where they are one.
struct reordering {
  dnnl::memory own;  // oneDNN's
  dnnl::memory given;
  dnnl::reorder run;
  bool moves = false;
  std::size_t bytes = 0;

  void prepare(const dnnl::memory::desc &user, const dnnl::memory::desc &chosen, bool comes_in,
               const dnnl::primitive_attr &attributes, std::size_t &scratchpad) {
    given = dnnl::memory(user, engine(), DNNL_MEMORY_NONE);
    moves = user != chosen;
    own = moves ? dnnl::memory(chosen, engine(), DNNL_MEMORY_NONE) : given;
    if (!moves) return;
    bytes = chosen.get_size();
    const dnnl::reorder::primitive_desc desc(engine(), comes_in ? user : chosen, engine(), comes_in ? chosen : user,
                                             attributes);
    run = dnnl::reorder(desc);
    scratchpad = std::max(scratchpad, desc.scratchpad_desc().get_size());
  }
  dnnl_status_t execute(dnnl_stream_t stream, bool comes_in, const dnnl::memory &scratchpad) const {
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, (comes_in ? given : own).get()},
                                    {DNNL_ARG_TO, (comes_in ? own : given).get()},
                                    {DNNL_ARG_SCRATCHPAD, scratchpad.get()}};
    return dnnl_primitive_execute(run.get(), stream, 3, args);
  }
};

class convolution {
 public:
  explicit convolution(const conv_band &band) {
    const sg_backend_conv &c = band.of;
    const sg_backend_windows &w = c.of;
    const auto type = c.type == SG_DTYPE_BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
    const bool last = has_channels_last(w), inner = w.channels_inner != 0, grouped = w.groups > 1;
    const dims x_sizes = {w.images, w.channels, w.height, w.width};
    const dims y_sizes = {w.images, c.out_channels, w.out_h, w.out_w};
    const dims filter = grouped
                            ? dims{w.groups, c.out_channels / w.groups, w.channels / w.groups, w.kernel_h, w.kernel_w}
                            : dims{c.out_channels, w.channels, w.kernel_h, w.kernel_w};
    const tag filter_tag = grouped ? (inner ? tag::gohwi : tag::goihw) : (inner ? tag::ohwi : tag::oihw);
    const tag wanted = last ? tag::nhwc : tag::any;
    const auto given = [&](const dims &sizes, std::int64_t image, std::int64_t channel) {
      const bool dense = channel == sizes[2] * sizes[3] && (sizes[0] == 1 || image == sizes[1] * channel);
      return last    ? dnnl::memory::desc(sizes, type, tag::nhwc)
             : dense ? dnnl::memory::desc(sizes, type, tag::nchw)
                     : dnnl::memory::desc(sizes, type, dims{image, channel, sizes[3], 1});
    };
    const dnnl::memory::desc x(x_sizes, type, wanted), y(y_sizes, type, wanted), f(filter, type, tag::any);
    const dnnl::memory::desc bias(dims{c.out_channels}, type, tag::x);
    const auto behind = [](std::int64_t out, std::int64_t stride, std::int64_t kernel, std::int64_t size,
                           std::int64_t pad) {
      return std::max<std::int64_t>(0, (out - 1) * stride + kernel - size - pad);
    };
    const dims strides = {w.stride_h, w.stride_w}, dilations = {0, 0}, before = {w.pad_top, w.pad_left};
    const dims after = {behind(w.out_h, w.stride_h, w.kernel_h, w.height, w.pad_top),
                        behind(w.out_w, w.stride_w, w.kernel_w, w.width, w.pad_left)};
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::primitive_attr exact = attributes;
    exact.set_fpmath_mode(dnnl::fpmath_mode::strict);
    constexpr auto kind = dnnl::prop_kind::forward_inference;
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    const bool has_bias = c.bias != nullptr;
#if DNNL_VERSION_MAJOR >= 3
    using primitive_desc = dnnl::convolution_forward::primitive_desc;
    const primitive_desc desc =
        has_bias ? primitive_desc(engine(), kind, direct, x, f, bias, y, strides, dilations, before, after, exact)
                 : primitive_desc(engine(), kind, direct, x, f, y, strides, dilations, before, after, exact);
#else
    using form = dnnl::convolution_forward::desc;
    const dnnl::convolution_forward::primitive_desc desc(
        has_bias ? form(kind, direct, x, f, bias, y, strides, dilations, before, after)
                 : form(kind, direct, x, f, y, strides, dilations, before, after),
        exact, engine());
#endif
    primitive_ = dnnl::convolution_forward(desc);
    scratchpad_bytes_ = desc.scratchpad_desc().get_size();
    x_.prepare(given(x_sizes, w.image, w.channel), desc.src_desc(), true, attributes, scratchpad_bytes_);
    filters_ = desc.weights_desc();
    w_.prepare({filter, type, filter_tag}, filters_, true, attributes, scratchpad_bytes_);
    y_.prepare(given(y_sizes, c.y_image, band.y_channel), desc.dst_desc(), false, attributes, scratchpad_bytes_);
    bias_ = dnnl::memory(bias, engine(), DNNL_MEMORY_NONE);
    const auto bytes = static_cast<std::int64_t>(std::max<std::size_t>(scratchpad_bytes_, 1));
    scratchpad_ = dnnl::memory({dims{bytes}, dnnl::memory::data_type::u8, tag::x}, engine(), DNNL_MEMORY_NONE);
  }

  // `before`: the convolution of the command's band before, whose filters are in place; NULL: none.
  dnnl_status_t execute(dnnl_stream_t stream, const sg_backend_conv &c, const convolution *before, workspace &space) {
    void *const scratchpad = space.get(scratch::library, scratchpad_bytes_);
    scratch_room room{static_cast<char *>(c.scratch), static_cast<std::size_t>(c.scratch_bytes)};
    if (scratchpad == nullptr || !place(w_, c.w, room, scratch::panel_a, space) ||
        !place(x_, c.x, room, scratch::panel_b, space) || !place(y_, c.y, room, scratch::converted, space))
      return dnnl_out_of_memory;
    dnnl_memory_set_data_handle(scratchpad_.get(), scratchpad);
    dnnl_memory_set_data_handle(bias_.get(), const_cast<void *>(c.bias));
    const bool has_filters = before != nullptr && before->filters_ == filters_;
    for (const reordering *each : {&x_, &w_})
      if (each->moves && (each != &w_ || !has_filters))
        if (const dnnl_status_t status = each->execute(stream, true, scratchpad_); status != dnnl_success)
          return status;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, x_.own.get()},
                                    {DNNL_ARG_WEIGHTS, w_.own.get()},
                                    {DNNL_ARG_DST, y_.own.get()},
                                    {DNNL_ARG_SCRATCHPAD, scratchpad_.get()},
                                    {DNNL_ARG_BIAS, bias_.get()}};
    const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), stream, c.bias != nullptr ? 5 : 4, args);
    return status != dnnl_success || !y_.moves ? status : y_.execute(stream, false, scratchpad_);
  }

 private:
  // In the command's memory; in the worker's, if this order of oneDNN's needs more than the planner knows of.
  static bool place(const reordering &what, const void *given, scratch_room &room, scratch use, workspace &space) {
    dnnl_memory_set_data_handle(what.given.get(), const_cast<void *>(given));
    if (!what.moves) return true;
    void *own = room.take(what.bytes);
    if (own == nullptr) own = space.get(use, what.bytes);
    if (own != nullptr) dnnl_memory_set_data_handle(what.own.get(), own);
    return own != nullptr;
  }

  dnnl::convolution_forward primitive_;
  reordering x_, w_, y_;
  dnnl::memory bias_, scratchpad_;
  dnnl::memory::desc filters_;
  std::size_t scratchpad_bytes_ = 0;
};

// A worker's primitives, of the most recently used shapes.
class convolution_cache final : public provider_state {
 public:
  dnnl_status_t run(const sg_backend_conv &what, workspace &space) {
    const conv_bands bands(what);
    const convolution *before = nullptr;
    for (std::int64_t i = 0; i < bands.count(); ++i) {
      const conv_band band = bands.at(i);
      convolution *const chosen = of(band);
      if (chosen == nullptr) return dnnl_out_of_memory;
      const dnnl_status_t status = chosen->execute(stream_.get(), band.of, before, space);
      if (status != dnnl_success) return status;
      before = chosen;
    }
    return dnnl_success;
  }

 private:
  // NULL: out of memory.
  convolution *of(const conv_band &band) {
    const conv_key key(band);
    entry *chosen = &entries_[0];
    for (entry &e : entries_) {
      if (e.last_use != 0 && e.key == key) {
        chosen = &e;
        break;
      }
      if (e.last_use < chosen->last_use) chosen = &e;
    }
    if (chosen->last_use == 0 || !(chosen->key == key)) {
      chosen->last_use = 0;
      if (!memory_left(1 << 20)) return nullptr;
      const std::lock_guard lock(fork_lock());
      chosen->primitive = std::make_unique<convolution>(band);
      chosen->key = key;
    }
    chosen->last_use = ++uses_;
    return chosen->primitive.get();
  }

  struct entry {
    conv_key key{conv_band{}};
    std::uint64_t last_use = 0;  // 0: empty
    std::unique_ptr<convolution> primitive;
  };

  dnnl::stream stream_{engine()};
  std::uint64_t uses_ = 0;
  entry entries_[64];
};

// Of contiguous results.
void activate(const sg_backend_conv &what) noexcept {
  const std::int64_t elements = what.of.images * what.y_image;
  if (what.type == SG_DTYPE_F32) return simd().finish(SG_DTYPE_F32, what.y, nullptr, false, what.activation, elements);
  constexpr std::int64_t step = 1024;
  alignas(64) float wide[step];
  for (std::int64_t first = 0; first < elements; first += step) {
    const std::int64_t count = std::min(step, elements - first);
    char *const at = static_cast<char *>(what.y) + first * element_size(what.type);
    widen(wide, at, what.type, count);
    simd().finish(SG_DTYPE_F32, wide, nullptr, false, what.activation, count);
    narrow(at, what.type, wide, count);
  }
}

}  // namespace

// A GELU of rounded bf16 would be rounded twice. For dilated windows oneDNN has no fast kernels. Images of one element
// do not say what the order of Y is. Each band has rows of the image.
bool has_conv(const sg_backend_conv &what) noexcept {
  const sg_backend_windows &w = what.of;
  const bool is_bf16 = what.type == SG_DTYPE_BF16 && what.activation != SG_ACTIVATION_GELU;
  return has_onednn() && what.gradient == SG_BACKEND_CONV_OF_Y &&
         (what.type == SG_DTYPE_F32 || (is_bf16 && has_isa(dnnl_cpu_isa_avx512_core_bf16))) && w.dilation_h == 1 &&
         w.dilation_w == 1 && w.pad_top < w.kernel_h && w.pad_left < w.kernel_w &&
         std::int64_t{w.out_h - 1} * w.stride_h - w.pad_top < w.height &&
         std::int64_t{w.channels} * w.height * w.width > 1;
}

sg_status run_conv(const sg_backend_conv &what, workspace &space) noexcept {
  const sg_status status = guarded(space, [&] {
    if (space.onednn_conv == nullptr) {
      const std::lock_guard lock(fork_lock());
      space.onednn_conv = std::make_unique<convolution_cache>();
    }
    return static_cast<convolution_cache &>(*space.onednn_conv).run(what, space);
  });
  if (status == SG_STATUS_OK && what.activation != SG_ACTIVATION_NONE) activate(what);
  return status;
}

}  // namespace sg::cpu
