// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/conv.hpp"

#include <algorithm>
#include <initializer_list>

#include "base/checked.hpp"

namespace sg {
namespace {

bool is_dense_on_device(const operand &x) { return x.ld == x.rows || x.cols <= 1 || on_host(x); }  // copies are

class conv_forward : conv_build {
 public:
  conv_forward(const conv_form &f, const conv_cuts &cuts, const device_model &model, bool by_device)
      : conv_build(with_items(f), model, blocks_of(f, cuts, model, by_device), pageable(f)),
        cuts_(cuts),
        by_device_(by_device),
        direct_(f.is_direct()),
        by_images_(f.of.groups == 1 && !f.of.channels_last) {}

  schedule run() {
    w_ = f_.of.channels > 0 ? load_whole(which::w, filter_items(), filter_ready_) : -1;
    if (exists(f_.at(which::bias))) bias_ = load_whole(which::bias, f_.outputs_of_group(), filter_ready_);
    if (by_device_ && model_.lanes_are_cores) add_scratch();
    for (int lane = 0; lane < blocks_.lanes && !by_device_ && !direct_ && f_.of.channels > 0; ++lane)
      matrices_.push_back(
          builder_.add_device_buffer(f_.type(), matrix_elements(blocks_.most, f_.of.columns()) * size_of(f_.type())));
    slot_ring x_ring = ring_for(which::x), y_ring = ring_for(which::y);
    for (std::size_t i = 0; i < blocks_.parts.size(); ++i) {
      const range &part = blocks_.parts[i];
      placed_images x;
      if (f_.of.channels > 0)
        x = place(which::x, x_ring, part, true, items_of(f_.of.channels, f_.of.pixels(), f_.at(which::x)));
      const placed_images y =
          place(which::y, y_ring, part, false, items_of(f_.out_channels, positions(), f_.at(which::y)));
      std::vector<std::uint32_t> writers;
      for (const conv_block &b : blocks_.of_parts[i])
        if (by_device_)
          builder_.merge(writers, add_images(b, x, y));
        else if (f_.of.channels > 0)
          builder_.merge(writers, add_block(b, x, y));
        else
          add_bias(b, y, writers);
      bring_back(which::y, y, part, writers);
    }
    schedule made =
        builder_.finish((by_device_ ? "conv by device " : "conv ") + std::to_string(blocks_.count()) + " blocks");
    made.flops = flops_;
    return made;
  }

 private:
  static conv_form with_items(conv_form f) {
    const bool by_images = f.of.groups == 1 && !f.of.channels_last;
    operand &x = f.at(which::x), &y = f.at(which::y);
    x.item_stride = pixel_items(f, f.of.channels, f.of.pixels(), x.ld, by_images);
    f.at(which::w).item_stride = f.columns_of_group() * f.outputs_of_group();
    y.item_stride = pixel_items(f, f.out_channels, f.of.positions_of_image(), y.ld, by_images);
    f.at(which::bias).item_stride = f.outputs_of_group();
    return f;
  }

  static conv_blocks blocks_of(const conv_form &f, const conv_cuts &cuts, const device_model &model, bool by_device) {
    const operand &x = f.at(which::x), &y = f.at(which::y);
    if (by_device) return {f, {y.cols, 0, 1, true, true, false}, cuts, model};
    const bool merges =
        f.of.channels_last ? is_dense_on_device(y) && (!f.is_direct() || is_dense_on_device(x)) : f.of.groups == 1;
    const std::int64_t bytes =
        f.is_direct() ? 0 : (f.of.channels_last ? pitch_of(f.of.columns()) : f.of.columns()) * size_of(f.type());
    return {f, {y.cols, bytes, 1, merges, true}, cuts, model};
  }

  static pageable_bytes pageable(const conv_form &f) {
    pageable_bytes bytes;
    for (const which each : {which::x, which::w, which::bias})
      if (f.at(each).space == SG_MEMORY_PAGEABLE) bytes.in += bytes_of(f.at(each));
    if (f.at(which::y).space == SG_MEMORY_PAGEABLE) bytes.out = bytes_of(f.at(which::y));
    return bytes;
  }

  // Of copies.
  std::int64_t items_of(std::int64_t channels, std::int64_t pixels_of_image, const operand &x) const {
    return pixel_items(f_, channels, pixels_of_image, x.rows, by_images_);
  }
  std::int64_t filter_items() const { return f_.columns_of_group() * f_.outputs_of_group(); }

  void finish(command &c, std::int64_t outputs, std::int64_t items) const {
    epilogue_of(c).activation = f_.activation;
    if (bias_ < 0) return;
    c.views[ops::epilogue::bias] =
        channels_last() ? view{bias_, 0, items, 0, outputs, outputs, 1} : view{bias_, 0, items, 0, 1, 1, outputs};
  }

  std::uint32_t add_block(const conv_block &b, const placed_images &x, const placed_images &y) {
    const std::uint16_t lane = next_lane();
    const sg_dtype type = f_.type();
    std::vector<std::uint32_t> waits = filter_ready_;
    waits.insert(waits.end(), y.ready.begin(), y.ready.end());
    view windows;
    std::uint32_t reader = 0;
    if (direct_) {
      windows = pixels(x, type, f_.of.channels, b, by_images_);
      waits.insert(waits.end(), x.ready.begin(), x.ready.end());
    } else {
      const std::int32_t matrix = matrices_[lane];
      reader = builder_.add(take_windows(f_.of, whole_images(x, type, f_.at(which::x).rows, b),
                                         whole_matrix(matrix, b, f_.of.columns()), lane, b.positions.first),
                            x.ready);
      windows = matrix_items(matrix, type, b, f_.of.columns(), by_images_);
    }
    const std::int64_t columns = f_.columns_of_group(), outputs = f_.outputs_of_group();
    const view filter{w_, 0, f_.of.groups, 0, columns, columns, outputs};
    const view result = pixels(y, f_.type(), f_.out_channels, b, by_images_);
    command c = channels_last()
                    ? gemm(result, filter, SG_TRANSPOSE_T, windows, SG_TRANSPOSE_N, columns, scalar_role::zero, lane)
                    : gemm(result, windows, SG_TRANSPOSE_N, filter, SG_TRANSPOSE_N, columns, scalar_role::zero, lane);
    finish(c, outputs, f_.of.groups);
    const std::uint32_t computed = builder_.add(c, waits);
    if (x.users) builder_.merge(*x.users, direct_ ? computed : reader);
    return computed;
  }

  std::uint32_t add_images(const conv_block &b, const placed_images &x, const placed_images &y) {
    const std::uint16_t lane = next_lane();
    std::vector<std::uint32_t> waits = filter_ready_;
    for (const placed_images *each : {&x, &y}) waits.insert(waits.end(), each->ready.begin(), each->ready.end());
    ops::conv what;
    static_cast<ops::windows &>(what) = f_.of;
    what.out_channels = std::int32_t(f_.out_channels);
    what.activation = f_.activation;
    command c;
    c.what = what;
    c.where = {lane_kind::compute, lane};
    c.views[ops::conv::y] = whole_images(y, f_.type(), f_.at(which::y).rows, b);
    c.views[ops::conv::x] = whole_images(x, f_.type(), f_.at(which::x).rows, b);
    c.views[ops::conv::w] = view{w_, 0, 1, 0, f_.columns_of_group(), f_.columns_of_group(), f_.out_channels};
    if (bias_ >= 0) c.views[ops::conv::bias] = view{bias_, 0, 1, 0, f_.out_channels, f_.out_channels, 1};
    if (!matrices_.empty()) {
      const std::int64_t elements = scratch_ / size_of(f_.type());
      c.views[ops::conv::scratch] = view{matrices_[lane], 0, 1, 0, elements, elements, 1};
    }
    flops_ += 2.0 * double(b.count()) * double(f_.out_channels) * double(f_.columns_of_group());
    const std::uint32_t computed = builder_.add(c, waits);
    if (x.users) builder_.merge(*x.users, computed);
    return computed;
  }

  // Each lane has its share of the workspace, as far as its images need it, and room for the filters.
  void add_scratch() {
    const conv_scratch least = conv_scratch_of(f_);
    const std::int64_t workspace = cuts_.workspace > 0 ? cuts_.workspace : usual_conv_workspace(model_, cuts_.lanes);
    const std::int64_t images = ceil_div(blocks_.most, positions());
    const std::int64_t all_rows = checked_mul(checked_mul(least.row, f_.of.out_h, "scratch"), images, "scratch");
    scratch_ = round_up(least.filters, 256) + std::min(workspace / blocks_.lanes, all_rows) / 256 * 256;
    for (int lane = 0; lane < blocks_.lanes; ++lane)
      matrices_.push_back(builder_.add_device_buffer(f_.type(), scratch_));
  }

  // Without channels the bias is all there is.
  void add_bias(const conv_block &b, const placed_images &y, std::vector<std::uint32_t> &writers) {
    std::vector<std::uint32_t> waits = filter_ready_;
    waits.insert(waits.end(), y.ready.begin(), y.ready.end());
    for (std::int64_t i = 0; i < b.images.size; ++i) {
      const std::int64_t image = (b.images.first + i - y.first) * y.ld, step = channels_last() ? f_.out_channels : 1;
      const std::int64_t offset = (image + b.positions.first * step) * size_of(f_.type());
      const view out = channels_last()
                           ? view{y.buffer, 0, 1, offset, f_.out_channels, f_.out_channels, b.positions.size}
                           : view{y.buffer, 0, 1, offset, positions(), b.positions.size, f_.out_channels};
      command c = builder_.scale(out, scalar_role::zero, 0);
      finish(c, f_.out_channels, 1);
      builder_.merge(writers, builder_.add(c, waits));
    }
  }

  const conv_cuts cuts_;
  bool by_device_, direct_, by_images_;
  std::int32_t w_ = -1, bias_ = -1;
  std::vector<std::uint32_t> filter_ready_;  // and the bias
  std::vector<std::int32_t> matrices_;       // by lane; by device: its scratch memory
  std::int64_t scratch_ = 0;                 // bytes of each
};

}  // namespace

conv_scratch conv_scratch_of(const conv_form &f) {
  constexpr std::int64_t block = 16;
  const auto blocked = [](std::int64_t channels) { return round_up(channels, block); };
  const auto product = [](std::initializer_list<std::int64_t> factors) {
    std::int64_t all = 1;
    for (const std::int64_t each : factors) all = checked_mul(all, each, "a copy of an operand");
    return all;
  };
  const std::int64_t size = size_of(f.type()), in = f.of.channels / f.of.groups, out = f.outputs_of_group();
  conv_scratch made;
  made.filters = in == 1 && out == 1 ? product({blocked(f.of.groups), f.of.taps(), size})
                                     : product({f.of.groups, blocked(in), blocked(out), f.of.taps(), size});
  const bool is_plain = f.of.channels == 1 || f.of.channels == 3;  // grey or coloured pixels are not blocked
  if (!f.of.channels_last)
    made.row =
        checked_add(product({is_plain ? f.of.channels : blocked(f.of.channels), f.of.kernel_h, f.of.width, size}),
                    product({blocked(f.out_channels), f.of.out_w, size}), "a copy of an operand");
  return made;
}

schedule build_conv(const conv_form &f, const conv_cuts &cuts, const device_model &model, bool by_device) {
  return conv_forward(f, cuts, model, by_device).run();
}

bool has_dense_images(const conv_form &f) {
  return is_dense_on_device(f.at(conv_parameter::x)) && is_dense_on_device(f.at(conv_parameter::y));
}

}  // namespace sg
