// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/conv_build.hpp"

#include <algorithm>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace sg {

namespace {

// For each lane: on cores a matrix of windows stays in a cache.
constexpr std::int64_t usual_matrices = std::int64_t(256) << 20, usual_matrix_of_core = std::int64_t(1) << 20;
// Less is not worth a command of its own on a device with few lanes.
constexpr std::int64_t least_bytes_of_block = std::int64_t(16) << 20;
constexpr std::int64_t blocks_that_overlap = 4;

}  // namespace

std::int64_t usual_conv_workspace(const device_model &model, int lanes) {
  return model.lanes_are_cores ? usual_matrix_of_core * lanes : std::min(usual_matrices, model.usable_memory() / 4);
}

conv_blocks::conv_blocks(const conv_form &f, const needs &of, const conv_cuts &cuts, const device_model &model)
    : parts(cut(of.images, cuts.parts)) {
  const bool cores = model.lanes_are_cores;
  const std::int64_t of_image = f.of.positions_of_image(), total = of.has_windows ? of.images * of_image : 0;
  const std::int64_t bytes = of.bytes;
  of_parts.resize(parts.size());
  if (total == 0) return;
  const std::int64_t workspace = cuts.workspace > 0 ? cuts.workspace : usual_conv_workspace(model, cuts.lanes);
  const std::int64_t granule =
      bytes > 0 ? round_up(bytes * grain, 256) + 256 * (of.buffers - 1) : 0;  // of a few windows
  if (granule > workspace)
    throw error(SG_STATUS_OUT_OF_MEMORY, "the matrix of %lld windows needs %lld bytes of workspace; the limit is %lld",
                static_cast<long long>(grain), static_cast<long long>(granule), static_cast<long long>(workspace));
  lanes = cores ? cuts.lanes : std::min(cuts.lanes, 2);
  if (bytes > 0) lanes = int(std::clamp<std::int64_t>(workspace / granule, 1, lanes));
  const std::int64_t room = bytes > 0 ? workspace / lanes / granule * grain : total;
  const double all_bytes = double(total) * double(bytes);
  const std::int64_t wanted =
      cores ? lanes
            : std::clamp<std::int64_t>(std::int64_t(all_bytes / double(least_bytes_of_block)), 1, blocks_that_overlap);
  const std::int64_t least_size = of.splits_images ? 1 : of_image;
  const std::int64_t size = std::min(room, std::max(least_size, ceil_div(total, wanted)));
  const std::int64_t several = of.merges ? std::max<std::int64_t>(1, size / of_image) : 1;
  const std::int64_t pieces = ceil_div(of_image, std::min(size, of_image));
  if (double(of.images) / double(several) * double(pieces) > double(most_asked_commands / 6))
    throw error(SG_STATUS_OUT_OF_MEMORY, "with a workspace of %lld bytes a convolution would have too many blocks",
                static_cast<long long>(workspace));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const range &part = parts[i];
    for (const range &some : cut(part.size, ceil_div(part.size, several)))
      for (const range &windows : cut(of_image, pieces, grain))
        of_parts[i].push_back({{part.first + some.first, some.size}, windows});
  }
  least = total;
  for (const auto &blocks : of_parts)
    for (const conv_block &b : blocks) most = std::max(most, b.count()), least = std::min(least, b.count());
  lanes = int(std::min<std::int64_t>(lanes, count()));
}

std::int64_t conv_blocks::count() const noexcept {
  std::int64_t sum = 0;
  for (const auto &blocks : of_parts) sum += std::int64_t(blocks.size());
  return sum;
}

namespace {

schedule_builder builder_for(const conv_form &f) {
  static constexpr const char *forward[] = {"X", "W", "the bias", "Y"},
                              *backward[] = {"X", "W", "", "dY", "dX", "dW", "dbias"};
  schedule_builder made;
  const std::span<const char *const> names =
      f.is_backward ? std::span<const char *const>(backward) : std::span<const char *const>(forward);
  for (std::size_t i = 0; i < names.size(); ++i)
    made.add_parameter(
        {f.operands[i], names[i], i >= std::size_t(f.is_backward ? conv_parameter::dx : conv_parameter::y)});
  return made;
}

}  // namespace

conv_build::conv_build(conv_form f, const device_model &model, const conv_blocks &blocks, pageable_bytes pageable)
    : f_(std::move(f)), model_(model), blocks_(blocks), builder_(builder_for(f_)), moves_(builder_, model, pageable) {}

std::int32_t conv_build::alias(std::int32_t buffer, sg_dtype type, std::int64_t item_stride) {
  std::int32_t &known = aliases_.try_emplace({buffer, type, item_stride}, -1).first->second;
  if (known < 0) known = builder_.add_alias(buffer, type, item_stride * size_of(type));
  return known;
}

std::int64_t conv_build::matrix_elements(std::int64_t most_windows, std::int64_t columns) const {
  return channels_last() ? checked_mul(pitch_of(columns), most_windows, "windows")
                         : checked_mul(pitch_of(most_windows), columns, "windows");
}

view conv_build::whole_matrix(std::int32_t buffer, const conv_block &b, std::int64_t columns) const {
  const std::int64_t pitch = matrix_pitch(b, columns);
  return channels_last() ? view{buffer, 0, 1, 0, pitch, columns, b.count()}
                         : view{buffer, 0, 1, 0, pitch, b.count(), columns};
}

view conv_build::matrix_items(std::int32_t buffer, sg_dtype type, const conv_block &b, std::int64_t columns,
                              bool by_images) {
  const std::int64_t pitch = matrix_pitch(b, columns), of_group = columns / f_.of.groups;
  if (channels_last()) return {alias(buffer, type, of_group), 0, f_.of.groups, 0, pitch, of_group, b.count()};
  if (by_images) return {alias(buffer, type, b.positions.size), 0, b.images.size, 0, pitch, b.positions.size, columns};
  return {alias(buffer, type, of_group * pitch), 0, f_.of.groups, 0, pitch, b.count(), of_group};
}

std::int64_t conv_build::pixel_items(const conv_form &f, std::int64_t channels, std::int64_t positions, std::int64_t ld,
                                     bool by_images) noexcept {
  const std::int64_t of_group = channels / f.of.groups;
  return f.of.channels_last ? of_group : by_images ? ld : of_group * positions;
}

view conv_build::pixels(const placed_images &x, sg_dtype type, std::int64_t channels, const conv_block &b,
                        bool by_images) const {
  const std::int64_t size = size_of(type), image = b.images.first - x.first, of_group = channels / f_.of.groups;
  if (channels_last())
    return {x.buffer, 0,        f_.of.groups, (image * x.ld + b.positions.first * channels) * size,
            channels, of_group, b.count()};
  if (by_images)
    return {x.buffer, image, b.images.size, b.positions.first * size, positions(), b.positions.size, channels};
  return {x.buffer, 0, f_.of.groups, (image * x.ld + b.positions.first) * size, positions(), b.count(), of_group};
}

view conv_build::whole_images(const placed_images &x, sg_dtype type, std::int64_t elements, const conv_block &b) const {
  return {x.buffer, 0, 1, (b.images.first - x.first) * x.ld * size_of(type), x.ld, elements, b.images.size};
}

command conv_build::gemm(const view &c, const view &a, sg_transpose op_a, const view &b, sg_transpose op_b,
                         std::int64_t k, scalar_role beta, std::uint16_t lane) {
  flops_ += flops_per_mac(SG_DTYPE_F32) * double(c.rows) * double(c.cols) * double(k) * double(c.items);
  command made = builder_.multiply({c.rows, c.cols, k, op_a, op_b, f_.compute, scalar_role::one, beta}, lane);
  made.views[ops::gemm::c] = c;
  made.views[ops::gemm::a] = a;
  made.views[ops::gemm::b] = b;
  return made;
}

command conv_build::take_windows(const ops::windows &of, const view &images, const view &matrix, std::uint16_t lane,
                                 std::int64_t first_position) const {
  ops::im2col what;
  static_cast<ops::windows &>(what) = of;
  what.first_position = first_position;
  command c;
  c.what = what;
  c.where = {lane_kind::compute, lane};
  c.views[ops::im2col::image] = images;
  c.views[ops::im2col::matrix] = matrix;
  return c;
}

std::int32_t conv_build::load_whole(which of, std::int64_t item_stride, std::vector<std::uint32_t> &ready) {
  const operand &x = f_.at(of);
  if (!on_host(x)) return index_of(of);
  const std::int64_t bytes = checked_mul(checked_mul(x.rows, x.cols, "an operand"), size_of(x.type), "an operand");
  const std::int32_t buffer = builder_.add_device_buffer(x.type, bytes, item_stride * size_of(x.type));
  ready.push_back(moves_.in(index_of(of), {{0, 1}, {0, 0, x.rows, x.cols}}, {buffer, 0, 0, x.rows, 0}, {}));
  return buffer;
}

slot_ring conv_build::ring_for(which of) {
  const operand &x = f_.at(of);
  return on_host(x) && x.rows > 0 ? slot_ring(builder_, x.type, blocks_.parts, x.rows) : slot_ring();
}

placed_images conv_build::place(which of, slot_ring &ring, const range &part, bool copies_in,
                                std::int64_t item_stride) {
  const operand &x = f_.at(of);
  if (!on_host(x)) return {index_of(of), 0, x.ld, {}, nullptr};
  slot_ring::slot &slot = ring.next();
  placed_images made{alias(slot.buffer, x.type, item_stride), part.first, x.rows, std::exchange(slot.users, {}),
                     &slot.users};
  if (copies_in)
    made.ready = {moves_.in(index_of(of), {{0, 1}, {0, part.first, x.rows, part.size}}, {slot.buffer, 0, 0, x.rows, 0},
                            made.ready)};
  return made;
}

void conv_build::bring_back(which result, const placed_images &x, const range &part,
                            std::span<const std::uint32_t> writers) {
  if (!x.users) return;
  const operand &to = f_.at(result);
  *x.users = {moves_.out(index_of(result), {{0, 1}, {0, part.first, to.rows, part.size}}, {x.buffer, 0, 0, to.rows, 0},
                         writers)};
}

}  // namespace sg
