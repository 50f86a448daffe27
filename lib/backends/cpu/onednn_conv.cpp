// SPDX-License-Identifier: Apache-2.0
// Convolutions by oneDNN's primitive, which is generated for a shape and cached by each worker. NHWC images are taken
// as they are; NCHW images are brought to its own order and back, which is still faster than its kernel for that order.
// Filters are brought to its order by each call, because they may have changed.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "layers.hpp"
#include "onednn.hpp"
#include "pack.hpp"
#include "simd.hpp"
#include "windows.hpp"

namespace sg::cpu {
namespace {

using dims = dnnl::memory::dims;
using tag = dnnl::memory::format_tag;

bool has_channels_last(const sg_backend_windows &w) noexcept { return w.channel == 1 && w.pixel == w.channels; }

// A command without its addresses; it has no padding.
struct conv_key {
  sg_backend_conv of;
  explicit conv_key(const sg_backend_conv &what) noexcept : of(what) {
    of.x = of.w = nullptr;
    of.y = nullptr;
    if (of.bias != nullptr) of.bias = &has_bias;
  }
  bool operator==(const conv_key &other) const noexcept { return std::memcmp(&of, &other.of, sizeof of) == 0; }
  static constexpr char has_bias = 0;
};
static_assert(sizeof(sg_backend_conv) == 200);

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
  explicit convolution(const sg_backend_conv &c) {
    const sg_backend_windows &w = c.of;
    const auto type = c.type == SG_DTYPE_BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
    const bool last = has_channels_last(w), inner = w.channels_inner != 0, grouped = w.groups > 1;
    const dims x_sizes = {w.images, w.channels, w.height, w.width};
    const dims y_sizes = {w.images, c.out_channels, w.out_h, w.out_w};
    const dims filter = grouped
                            ? dims{w.groups, c.out_channels / w.groups, w.channels / w.groups, w.kernel_h, w.kernel_w}
                            : dims{c.out_channels, w.channels, w.kernel_h, w.kernel_w};
    const tag filter_tag = grouped ? (inner ? tag::gohwi : tag::goihw) : (inner ? tag::ohwi : tag::oihw);
    const tag images = last ? tag::nhwc : tag::nchw, wanted = last ? tag::nhwc : tag::any;
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
    x_.prepare({x_sizes, type, images}, desc.src_desc(), true, attributes, scratchpad_bytes_);
    w_.prepare({filter, type, filter_tag}, desc.weights_desc(), true, attributes, scratchpad_bytes_);
    y_.prepare({y_sizes, type, images}, desc.dst_desc(), false, attributes, scratchpad_bytes_);
    bias_ = dnnl::memory(bias, engine(), DNNL_MEMORY_NONE);
    const auto bytes = static_cast<std::int64_t>(std::max<std::size_t>(scratchpad_bytes_, 1));
    scratchpad_ = dnnl::memory({dims{bytes}, dnnl::memory::data_type::u8, tag::x}, engine(), DNNL_MEMORY_NONE);
  }

  dnnl_status_t execute(dnnl_stream_t stream, const sg_backend_conv &c, workspace &space) {
    void *const scratchpad = space.get(scratch::library, scratchpad_bytes_);
    if (scratchpad == nullptr || !place(x_, c.x, scratch::panel_b, space) || !place(w_, c.w, scratch::panel_a, space) ||
        !place(y_, c.y, scratch::converted, space))
      return dnnl_out_of_memory;
    dnnl_memory_set_data_handle(scratchpad_.get(), scratchpad);
    dnnl_memory_set_data_handle(bias_.get(), const_cast<void *>(c.bias));
    for (const reordering *each : {&x_, &w_})
      if (each->moves)
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
  static bool place(const reordering &what, const void *given, scratch use, workspace &space) {
    dnnl_memory_set_data_handle(what.given.get(), const_cast<void *>(given));
    if (!what.moves) return true;
    void *const own = space.get(use, what.bytes);
    if (own != nullptr) dnnl_memory_set_data_handle(what.own.get(), own);
    return own != nullptr;
  }

  dnnl::convolution_forward primitive_;
  reordering x_, w_, y_;
  dnnl::memory bias_, scratchpad_;
  std::size_t scratchpad_bytes_ = 0;
};

// A worker's primitives, of the most recently used shapes.
class convolution_cache final : public provider_state {
 public:
  dnnl_status_t run(const sg_backend_conv &what, workspace &space) {
    const conv_key key(what);
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
      if (!memory_left(1 << 20)) return dnnl_out_of_memory;
      const std::lock_guard lock(fork_lock());
      chosen->primitive = std::make_unique<convolution>(what);
      chosen->key = key;
    }
    chosen->last_use = ++uses_;
    return chosen->primitive->execute(stream_.get(), what, space);
  }

 private:
  struct entry {
    conv_key key{sg_backend_conv{}};
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
// do not say what the order of Y is.
bool has_conv(const sg_backend_conv &what) noexcept {
  const sg_backend_windows &w = what.of;
  const bool is_bf16 = what.type == SG_DTYPE_BF16 && what.activation != SG_ACTIVATION_GELU;
  return (what.type == SG_DTYPE_F32 || (is_bf16 && has_isa(dnnl_cpu_isa_avx512_core_bf16))) && w.dilation_h == 1 &&
         w.dilation_w == 1 && w.pad_top < w.kernel_h && w.pad_left < w.kernel_w &&
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
