// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "base/checked.hpp"
#include "ops/conv.hpp"
#include "plan/layers/column_sums.hpp"
#include "plan/layers/conv.hpp"

namespace sg {
namespace {

// Windows of the pixels themselves: makes one matrix of several images.
ops::windows each_pixel(const conv_form &f) {
  ops::windows made = f.of;
  made.channels = made.image_channels = std::int32_t(f.out_channels);
  made.height = f.of.out_h, made.width = f.of.out_w;
  made.kernel_h = made.kernel_w = made.stride_h = made.stride_w = made.dilation_h = made.dilation_w = 1;
  made.pad_top = made.pad_left = 0;
  return made;
}

class conv_backward : conv_build {
 public:
  conv_backward(const conv_form &f, const conv_cuts &cuts, const device_model &model, bool by_device)
      : conv_backward(f, model, blocks_of(f, cuts, model, by_device), by_device) {}

  schedule run() {
    if (dx_) w_ = load_whole(which::w, filter_items(), w_ready_);
    make_room();
    slot_ring x_ring, dx_ring, dy_ring;
    if (dw_) x_ring = ring_for(which::x);
    if (dx_) dx_ring = ring_for(which::dx);
    if (has_windows_) dy_ring = ring_for(which::y);
    for (std::size_t i = 0; i < blocks_.parts.size(); ++i) {
      const range &part = blocks_.parts[i];
      placed_images x, dx, dy;
      if (dw_ && has_windows_) x = place(which::x, x_ring, part, true, x_items());
      if (dx_) dx = place(which::dx, dx_ring, part, false, x_items());
      if (has_windows_) dy = place_dy(dy_ring, part);
      std::vector<std::uint32_t> writers;
      if (dx_ && !has_windows_) writers.push_back(clear(dx, part));
      if (dx_by_device_ || dw_by_device_) add_images({part, {0, positions()}}, x, dx, dy, writers);
      for (const conv_block &b : blocks_.of_parts[i]) add_block(b, x, dx, dy, writers);
      if (dx_) bring_back(which::dx, dx, part, writers);
    }
    if (bias_) bias_->finish(sums_);
    if (dw_ && !dw_by_device_) finish_filter();
    const bool is_whole = dx_by_device_ == dx_ && dw_by_device_ == dw_;
    schedule made =
        builder_.finish(is_whole && has_windows_ ? "conv backward by device"
                                                 : "conv backward " + std::to_string(blocks_.count()) + " blocks");
    made.flops = flops_;
    return made;
  }

 private:
  conv_backward(const conv_form &f, const device_model &model, const conv_blocks &blocks, bool by_device)
      : conv_build(with_items(f), model, blocks, pageable(f)),
        type_(f.type()),
        sum_type_(accumulator_of(type_)),
        dx_(exists(f.at(which::dx))),
        dw_(exists(f.at(which::dw))),
        dx_by_device_(by_device && f.by_device && dx_),
        dw_by_device_(by_device && f.dw_by_device && dw_),
        has_windows_(blocks_.count() > 0),
        direct_(f.is_direct()) {}

  static conv_form with_items(conv_form f) {
    f.at(which::x).item_stride = f.at(which::dx).item_stride = pixel_items(f, f.of.channels, f.of.pixels(), 0, false);
    f.at(which::w).item_stride = f.columns_of_group() * f.outputs_of_group();
    f.at(which::y).item_stride = pixel_items(f, f.out_channels, f.of.positions_of_image(), 0, false);
    return f;
  }

  static conv_blocks blocks_of(const conv_form &f, const conv_cuts &cuts, const device_model &model, bool by_device) {
    const operand &x = f.at(which::x), &dx = f.at(which::dx), &dy = f.at(which::y);
    const auto is_dense = [](const operand &of) {
      return !exists(of) || of.ld == of.rows || of.cols <= 1 || on_host(of);
    };
    const bool merges = !f.of.channels_last || (is_dense(dy) && (!f.is_direct() || (is_dense(x) && is_dense(dx))));
    // NCHW images of a block become one matrix, dY too.
    const std::int64_t columns = f.of.channels_last ? (f.is_direct() ? 0 : pitch_of(f.of.columns())) : f.of.columns();
    const bool has_windows = exists(dy);
    const bool has_gemms = !by_device || (exists(dx) && !f.by_device) || (exists(f.at(which::dw)) && !f.dw_by_device);
    const bool repacks = !f.of.channels_last && (has_gemms || exists(f.at(which::dbias)));
    const std::int64_t bytes = (has_gemms ? columns * size_of(accumulator_of(dy.type)) : 0) +
                               (repacks ? f.out_channels * size_of(dy.type) : 0);
    // Each block that adds to an image rounds it.
    const bool splits = !exists(dx) || f.is_direct() || accumulator_of(dy.type) == dy.type;
    return {
        f, {std::max(dx.cols, dy.cols), bytes, f.of.channels_last ? 1 : 2, merges, has_windows, splits}, cuts, model};
  }

  static pageable_bytes pageable(const conv_form &f) {
    pageable_bytes bytes;
    const auto amount = [&](which of) {
      const operand &x = f.at(of);
      return exists(x) && x.space == SG_MEMORY_PAGEABLE ? bytes_of(x) : 0.0;
    };
    bytes.in = amount(which::x) + amount(which::w) + amount(which::y);
    const double sums = amount(which::dw) + amount(which::dbias);
    bytes.out = amount(which::dx) + sums;
    if (f.accumulates) bytes.in += sums;
    return bytes;
  }

  std::int64_t filter_items() const { return f_.columns_of_group() * f_.outputs_of_group(); }
  std::int64_t x_items() const { return pixel_items(f_, f_.of.channels, f_.of.pixels(), 0, false); }
  std::int64_t filter_bytes() const {
    return checked_mul(checked_mul(f_.columns_of_group(), f_.out_channels, "W"), size_of(sum_type_), "W");
  }

  sums_of_columns sums() const {
    return {blocks_.least, f_.out_channels, channels_last(), type_, f_.at(which::dbias).type, f_.accumulates};
  }

  placed_images place_dy(slot_ring &ring, const range &part) {
    return place(which::y, ring, part, true, pixel_items(f_, f_.out_channels, positions(), 0, false));
  }

  void make_room() {
    if (exists(f_.at(which::dbias))) {
      bias_.emplace(builder_, index_of(which::dbias), f_.accumulates, moves_);
      sums_.emplace_back(builder_, sums(), range{0, f_.out_channels}, blocks_.count(), std::uint16_t(0), blocks_.lanes);
    }
    if (!has_windows_) return;
    for (int lane = 0; lane < blocks_.lanes; ++lane) {
      if (has_gemms() && (!direct_ || !channels_last()))
        matrices_.push_back(
            builder_.add_device_buffer(sum_type_, matrix_elements(blocks_.most, f_.of.columns()) * size_of(sum_type_)));
      if (!channels_last() && (has_gemms() || !sums_.empty()))
        dy_matrices_.push_back(
            builder_.add_device_buffer(type_, matrix_elements(blocks_.most, f_.out_channels) * size_of(type_)));
    }
    if (dw_ && !dw_by_device_)
      filter_sums_ =
          builder_.add_device_buffer(sum_type_, checked_mul(filter_bytes(), blocks_.lanes, "W"), filter_bytes());
    has_sums_.resize(std::size_t(blocks_.lanes));
  }

  std::uint32_t clear(const placed_images &dx, const range &part) {
    const conv_block all{part, {0, 0}};
    return builder_.add(builder_.scale(whole_images(dx, type_, f_.at(which::dx).rows, all), scalar_role::zero, 0),
                        dx.ready);
  }

  // Whether the pixels of X are the matrix of the block's windows.
  bool is_matrix(const conv_block &b) const { return channels_last() || b.images.size == 1; }

  bool has_gemms() const { return (dx_ && !dx_by_device_) || (dw_ && !dw_by_device_); }

  // The gradients that the device has commands for, of whole images.
  void add_images(const conv_block &b, const placed_images &x, const placed_images &dx, const placed_images &dy,
                  std::vector<std::uint32_t> &writers) {
    const auto add = [&](sg_backend_conv_gradient gradient, const placed_images &of_x, which x_is, const view &w,
                         const std::vector<std::uint32_t> &before) {
      ops::conv what;
      static_cast<ops::windows &>(what) = f_.of;
      what.out_channels = std::int32_t(f_.out_channels);
      what.gradient = gradient;
      command c;
      c.what = what;
      c.where = {lane_kind::compute, next_lane()};
      c.views[ops::conv::y] = whole_images(dy, type_, f_.at(which::y).rows, b);
      c.views[ops::conv::x] = whole_images(of_x, type_, f_.at(x_is).rows, b);
      c.views[ops::conv::w] = w;
      std::vector<std::uint32_t> waits = before;
      for (const placed_images *each : {&of_x, &dy}) waits.insert(waits.end(), each->ready.begin(), each->ready.end());
      flops_ += 2.0 * double(b.count()) * double(f_.out_channels) * double(f_.columns_of_group());
      return builder_.add(c, waits);
    };
    const std::int64_t columns = f_.columns_of_group();
    if (dx_by_device_)
      builder_.merge(writers, add(SG_BACKEND_CONV_OF_X, dx, which::dx,
                                  view{w_, 0, 1, 0, columns, columns, f_.out_channels}, w_ready_));
    if (dw_by_device_)
      add(SG_BACKEND_CONV_OF_W, x, which::x, view{index_of(which::dw), 0, 1, 0, columns, columns, f_.out_channels}, {});
  }

  void add_block(const conv_block &b, const placed_images &x, const placed_images &dx, const placed_images &dy,
                 std::vector<std::uint32_t> &writers) {
    if (!has_gemms() && sums_.empty()) return;
    const std::uint16_t lane = next_lane();
    // dY as one matrix, with the groups as items.
    std::vector<std::uint32_t> dy_ready = dy.ready;
    view dy_items;
    std::int32_t dy_buffer = dy.buffer;  // and whole, for sums
    view dy_whole;
    if (is_matrix(b)) {
      dy_items = dy_whole = pixels(dy, type_, f_.out_channels, b, false);
    } else {
      dy_whole = whole_matrix(dy_matrices_[lane], b, f_.out_channels);
      const std::uint32_t repacked = builder_.add(
          take_windows(each_pixel(f_), whole_images(dy, type_, f_.at(which::y).rows, b), dy_whole, lane, 0), dy.ready);
      if (dy.users) builder_.merge(*dy.users, repacked);
      dy_buffer = dy_matrices_[lane];
      dy_items = matrix_items(dy_buffer, type_, b, f_.out_channels, false);
      dy_ready.clear();
    }
    const auto reads_dy = [&](std::uint32_t command) {
      if (dy.users && is_matrix(b)) builder_.merge(*dy.users, command);
    };
    if (!sums_.empty()) reads_dy(add_sums(b, dy_whole, lane, dy_ready));
    if (dw_ && !dw_by_device_) reads_dy(add_filter_part(b, x, dy_items, lane, dy_ready));
    if (dx_ && !dx_by_device_) reads_dy(add_dx(b, dx, dy_items, lane, dy_ready, writers));
  }

  std::uint32_t add_sums(const conv_block &b, const view &whole, std::uint16_t lane,
                         std::span<const std::uint32_t> waits) {
    const std::int32_t buffer = alias(whole.buffer, type_, stride_of_groups(channels_last(), blocks_.least, whole.ld));
    return sums_.front().add(buffer, whole.offset, whole.ld, b.count(), waits, lane);
  }

  // The last command that reads dY.
  std::uint32_t add_filter_part(const conv_block &b, const placed_images &x, const view &dy, std::uint16_t lane,
                                const std::vector<std::uint32_t> &dy_ready) {
    std::vector<std::uint32_t> waits = dy_ready;
    view windows;
    const bool is_own = direct_ && is_matrix(b);
    std::uint32_t taken = 0;
    if (is_own) {
      windows = pixels(x, type_, f_.of.channels, b, false);
      waits.insert(waits.end(), x.ready.begin(), x.ready.end());
    } else {
      const std::int32_t matrix = alias(matrices_[lane], type_, 0);
      taken = builder_.add(take_windows(f_.of, whole_images(x, type_, f_.at(which::x).rows, b),
                                        whole_matrix(matrix, b, f_.of.columns()), lane, b.positions.first),
                           x.ready);
      windows = matrix_items(matrix, type_, b, f_.of.columns(), false);
    }
    const std::int64_t columns = f_.columns_of_group(), outputs = f_.outputs_of_group();
    const view part{alias(filter_sums_, sum_type_, columns * outputs),
                    0,
                    f_.of.groups,
                    lane * filter_bytes(),
                    columns,
                    columns,
                    outputs};
    const scalar_role beta = has_sums_[lane] ? scalar_role::one : scalar_role::zero;
    has_sums_[lane] = true;
    const command c = channels_last() ? gemm(part, windows, SG_TRANSPOSE_N, dy, SG_TRANSPOSE_T, b.count(), beta, lane)
                                      : gemm(part, windows, SG_TRANSPOSE_T, dy, SG_TRANSPOSE_N, b.count(), beta, lane);
    const std::uint32_t computed = builder_.add(c, waits);
    if (x.users) builder_.merge(*x.users, is_own ? computed : taken);
    builder_.merge(filter_parts_, computed);
    return computed;
  }

  std::uint32_t add_dx(const conv_block &b, const placed_images &dx, const view &dy, std::uint16_t lane,
                       const std::vector<std::uint32_t> &dy_ready, std::vector<std::uint32_t> &writers) {
    const bool is_own = direct_ && is_matrix(b);
    std::vector<std::uint32_t> waits = w_ready_;
    waits.insert(waits.end(), dy_ready.begin(), dy_ready.end());
    if (is_own) waits.insert(waits.end(), dx.ready.begin(), dx.ready.end());
    const std::int64_t columns = f_.columns_of_group(), outputs = f_.outputs_of_group();
    const view filter{w_, 0, f_.of.groups, 0, columns, columns, outputs};
    const view windows = is_own ? pixels(dx, type_, f_.of.channels, b, false)
                                : matrix_items(matrices_[lane], sum_type_, b, f_.of.columns(), false);
    const command c = channels_last()
                          ? gemm(windows, filter, SG_TRANSPOSE_N, dy, SG_TRANSPOSE_N, outputs, scalar_role::zero, lane)
                          : gemm(windows, dy, SG_TRANSPOSE_N, filter, SG_TRANSPOSE_T, outputs, scalar_role::zero, lane);
    const std::uint32_t computed = builder_.add(c, waits);
    if (is_own) {
      builder_.merge(writers, computed);
      return computed;
    }
    ops::col2im what;
    static_cast<ops::windows &>(what) = f_.of;
    what.first_position = b.positions.first;
    what.accumulates = b.positions.first > 0;
    command add;
    add.what = what;
    add.where = {lane_kind::compute, lane};
    add.views[ops::col2im::image] = whole_images(dx, type_, f_.at(which::dx).rows, b);
    add.views[ops::col2im::matrix] = whole_matrix(matrices_[lane], b, f_.of.columns());
    std::vector<std::uint32_t> before = dx.ready;
    if (what.accumulates) before.push_back(added_);
    added_ = builder_.add(add, before);
    builder_.merge(writers, added_);
    return computed;
  }

  // dW = the sum of the lanes' parts (+ dW).
  void finish_filter() {
    const operand &dw = f_.at(which::dw);
    const block all{0, 0, dw.rows, dw.cols};
    view to = builder_.part_of(index_of(which::dw), {0, 1}, all);
    std::vector<std::uint32_t> ready = filter_parts_;
    const bool copies = on_host(dw);
    if (copies) {
      to = {builder_.add_device_buffer(dw.type, checked_mul(dw.rows, dw.cols, "dW") * size_of(dw.type)),
            0,
            1,
            0,
            dw.rows,
            dw.rows,
            dw.cols};
      if (f_.accumulates)
        ready.push_back(moves_.in(index_of(which::dw), {{0, 1}, all}, {to.buffer, 0, 0, dw.rows, 0}, {}));
    }
    std::vector<std::uint32_t> written;
    const scalar_role beta = f_.accumulates ? scalar_role::job : scalar_role::zero;
    const int lanes = model_.lanes_are_cores ? blocks_.lanes : 1;
    std::uint16_t lane = 0;
    for (const range &some : cut(dw.cols, lanes)) {
      const std::int64_t column = some.first * dw.rows;
      view part = to;
      part.offset += some.first * to.ld * size_of(dw.type), part.cols = some.size;
      command c = builder_.scale(part, beta, lane++);
      if (has_windows_)
        c.views[ops::reduce::parts] =
            view{filter_sums_, 0, blocks_.lanes, column * size_of(sum_type_), dw.rows, dw.rows, some.size};
      builder_.merge(written, builder_.add(c, ready));
    }
    if (copies) moves_.out(index_of(which::dw), {{0, 1}, all}, {to.buffer, 0, 0, dw.rows, 0}, written);
  }

  sg_dtype type_, sum_type_;
  bool dx_, dw_, dx_by_device_, dw_by_device_, has_windows_, direct_;
  std::optional<bias_gradient> bias_;
  std::vector<column_sums> sums_;  // one, or none
  std::int32_t w_ = -1, filter_sums_ = -1;
  std::vector<std::uint32_t> w_ready_, filter_parts_;
  std::vector<std::int32_t> matrices_, dy_matrices_;  // by lane
  std::vector<bool> has_sums_;                        // by lane
  std::uint32_t added_ = 0;                           // the last col2im
};

}  // namespace

schedule build_conv_backward(const conv_form &f, const conv_cuts &cuts, const device_model &model, bool by_device) {
  return conv_backward(f, cuts, model, by_device).run();
}

}  // namespace sg
