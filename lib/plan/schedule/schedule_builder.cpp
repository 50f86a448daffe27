// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule/schedule_builder.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "ops/operation.hpp"

namespace sg {

std::vector<range> cut(std::int64_t total, std::int64_t parts, std::int64_t grain) {
  parts = std::clamp<std::int64_t>(parts, 1, std::max<std::int64_t>(1, total));
  if (total < parts * grain) grain = 1;
  std::vector<range> ranges;
  std::int64_t first = 0;
  for (std::int64_t i = 1; i <= parts; ++i) {
    // (total * i) / parts without overflow.
    const std::int64_t exact = total / parts * i + total % parts * i / parts;
    const std::int64_t end = i == parts ? total : (exact + grain / 2) / grain * grain;
    if (end > first) ranges.push_back({first, end - first});
    first = std::max(first, end);
  }
  return ranges;
}

namespace {

// Bytes from an operand's first element to its last: of all items, or of each item with a pointer array.
std::int64_t footprint(const operand &x, std::int64_t batch) {
  if (x.rows == 0 || x.cols == 0) return 0;
  std::int64_t elements = checked_add(checked_mul(x.cols - 1, x.ld, "operand"), x.rows, "operand");
  if (!x.pointer_array) elements = checked_add(elements, checked_mul(batch - 1, x.item_stride, "operand"), "operand");
  return checked_mul(elements, size_of(x.type), "operand");
}

}  // namespace

std::int32_t schedule_builder::add_parameter(const parameter &x) {
  const operand &o = x.stored;
  const auto index = static_cast<std::int32_t>(s_.buffers.size());
  s_.buffers.push_back({buffer_kind::parameter, o.type, o.pointer_array, o.space,
                        step_bytes(o.item_stride, size_of(o.type), 0), 0, footprint(o, x.batch), index, x.name});
  parameters_.push_back(x);
  return index;
}

std::int32_t schedule_builder::add_device_buffer(sg_dtype type, std::int64_t bytes, std::int64_t item_stride) {
  s_.buffers.push_back({buffer_kind::device, type, false, SG_MEMORY_DEVICE, item_stride, s_.device_bytes, bytes});
  s_.device_bytes = checked_add(s_.device_bytes, round_up(bytes, 256), "device memory");
  return std::int32_t(s_.buffers.size() - 1);
}

std::int32_t schedule_builder::add_staging_buffer(sg_dtype type, std::int64_t bytes) {
  s_.buffers.push_back({buffer_kind::staging, type, false, SG_MEMORY_PINNED, 0, s_.staging_bytes, bytes});
  s_.staging_bytes = checked_add(s_.staging_bytes, round_up(bytes, 256), "staging memory");
  return std::int32_t(s_.buffers.size() - 1);
}

std::int32_t schedule_builder::add_placed_buffer(const buffer &placed) {
  s_.buffers.push_back(placed);
  if (placed.kind == buffer_kind::parameter) {
    parameters_.emplace_back();
    return std::int32_t(s_.buffers.size() - 1);
  }
  std::int64_t &arena = placed.kind == buffer_kind::device ? s_.device_bytes : s_.staging_bytes;
  arena = std::max(arena, checked_add(placed.offset, round_up(placed.bytes, 256), "arena"));
  return std::int32_t(s_.buffers.size() - 1);
}

std::int32_t schedule_builder::add_alias(std::int32_t index, sg_dtype type, std::int64_t item_stride) {
  buffer alias = s_.buffers[index];
  alias.type = type;
  alias.item_stride = item_stride;
  s_.buffers.push_back(alias);
  return std::int32_t(s_.buffers.size() - 1);
}

view schedule_builder::part_of(std::int32_t parameter, range items, block part) const {
  const operand &x = operand_at(parameter);
  const bool shared = is_shared(x);
  return {parameter,
          shared ? 0 : items.first,
          shared ? 1 : items.size,
          (part.row + part.col * x.ld) * size_of(x.type),
          x.ld,
          part.rows,
          part.cols};
}

command schedule_builder::multiply(const product &what, std::uint16_t lane_index, std::int32_t group) {
  ops::gemm gemm;
  gemm.m = what.m, gemm.n = what.n, gemm.k = what.k;
  gemm.op_a = what.op_a, gemm.op_b = what.op_b;
  gemm.compute = what.compute;
  gemm.alpha = what.alpha;
  gemm.beta = what.beta;
  command c;
  c.what = gemm;
  c.where = {lane_kind::compute, lane_index};
  c.group = group;
  return c;
}

command schedule_builder::scale(view out, scalar_role beta, std::uint16_t lane_index, std::int32_t group) {
  ops::reduce reduce;
  reduce.beta = beta;
  command c;
  c.what = reduce;
  c.where = {lane_kind::compute, lane_index};
  c.group = group;
  c.views[reduce.c] = out;
  return c;
}

void schedule_builder::merge(std::vector<std::uint32_t> &list, std::uint32_t index) const {
  const lane where = s_.commands[index].where;
  for (std::uint32_t &known : list)
    if (known == index || (in_order(where) && s_.commands[known].where == where)) {
      known = std::max(known, index);
      return;
    }
  list.push_back(index);
}

std::uint32_t schedule_builder::add(command c, std::span<const std::uint32_t> waits) {
  scratch_.clear();
  for (std::uint32_t wait : waits)
    if (!in_order(c.where) || !(s_.commands[wait].where == c.where)) merge(scratch_, wait);
  std::sort(scratch_.begin(), scratch_.end());
  c.first_wait = std::uint32_t(s_.waits.size());
  c.waits = std::uint32_t(scratch_.size());
  s_.waits.insert(s_.waits.end(), scratch_.begin(), scratch_.end());
  std::uint16_t &lanes = s_.lanes[int(c.where.kind)];
  lanes = std::max<std::uint16_t>(lanes, c.where.index + 1);
  set_access_modes(c);
  const bytes_moved moved = bytes_moved_by(s_.buffers, c);
  s_.bytes_in += moved.in;
  s_.bytes_out += moved.out;
  s_.bytes_peer += moved.peer;
  s_.commands.push_back(c);
  return std::uint32_t(s_.commands.size() - 1);
}

schedule schedule_builder::finish(std::string strategy) {
  s_.strategy = std::move(strategy);
  return std::move(s_);
}

}  // namespace sg
