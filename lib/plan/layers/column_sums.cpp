// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/column_sums.hpp"

#include <bit>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/layers/slot_ring.hpp"

namespace sg {

column_sums::column_sums(schedule_builder &builder, std::int32_t group, range columns, std::int64_t blocks,
                         std::uint16_t lane_index, int lanes)
    : builder_(builder),
      group_(group),
      columns_(columns),
      lane_(lane_index),
      lanes_(lanes),
      by_columns_(builder.of(group).op_a == SG_OP_N),
      width_(rows_of_group(builder.of(group).k)),
      levels_(std::bit_width(std::uint64_t(ceil_div(blocks, lanes * few)))),
      type_(accumulator_of(builder.of(group).a.type)),
      added_(std::size_t(lanes)) {
  if (width_ == 0) return;
  const std::int64_t of_level = checked_mul(width_ * lanes, (by_columns_ ? columns.size : 1) * size_of(type_), "sums");
  const std::int64_t rows = by_columns_ ? 1 : columns.size;
  const std::int64_t bytes = checked_mul(checked_mul(of_level, levels_, "sums"), rows, "sums");
  buffer_ = builder.add_device_buffer(type_, bytes, (by_columns_ ? columns.size : 1) * size_of(type_));
  of_levels_ = builder.add_alias(buffer_, type_, of_level);
}

// Levels that hold the sums of some blocks.
std::int64_t column_sums::levels_with(std::int64_t added) noexcept {
  return std::popcount(std::uint64_t(added / few)) + (added % few != 0);
}

// The partial sums of the first rows of a group, of some levels.
view column_sums::sums(std::int64_t level, std::int64_t levels, std::int64_t rows, int lane) const {
  const std::int64_t before = lane * width_ * size_of(type_);
  return by_columns_ ? view{of_levels_, level, levels, before * columns_.size, columns_.size, columns_.size, rows}
                     : view{of_levels_, level, levels, before, width_ * lanes_ * levels_, rows, columns_.size};
}

// Adds the sums of the levels from `first` + 1 on to those of the first one.
void column_sums::merge(std::int64_t first, std::int64_t levels, int lane) {
  if (levels <= 1) return;
  command c = builder_.scale(group_, sums(first, 1, width_, lane), scalar_role::one, std::uint16_t(lane_ + lane));
  c.views[ops::reduce::parts] = sums(first + 1, levels - 1, width_, lane);
  builder_.merge(last_, builder_.add(c));
}

std::uint32_t column_sums::add(std::int32_t buffer, std::int64_t offset, std::int64_t ld, std::int64_t rows,
                               std::span<const std::uint32_t> waits, int lane) {
  const std::int64_t size = size_of(builder_.of(group_).a.type), groups = rows / width_;
  const std::int64_t first = offset + columns_.first * (by_columns_ ? 1 : ld) * size;
  std::int64_t &added = added_[std::size_t(lane)];
  // A block begins a level, or is added to the last one.
  const bool begins = groups > 0 && added % few == 0;
  const std::int64_t level = levels_with(added) - (begins ? 0 : 1);
  std::uint32_t last = 0;
  const auto add_rows = [&](std::int64_t row, std::int64_t items, std::int64_t count, scalar_role beta) {
    if (count == 0 || items == 0) return;
    command c = builder_.scale(group_, sums(level, 1, count, lane), beta, std::uint16_t(lane_ + lane));
    const std::int64_t at = first + row * (by_columns_ ? ld : 1) * size;
    c.views[ops::reduce::parts] = by_columns_ ? view{buffer, 0, items, at, ld, columns_.size, count}
                                              : view{buffer, 0, items, at, ld, count, columns_.size};
    last = builder_.add(c, waits);
    builder_.merge(last_, last);
  };
  add_rows(0, groups, width_, begins ? scalar_role::zero : scalar_role::one);
  add_rows(groups * width_, 1, rows % width_, scalar_role::one);
  if (groups == 0 || ++added % few != 0) return last;
  // The last levels hold 1, 1, 2, 4, ... times few blocks, which are as many as a level above.
  const int full = std::countr_zero(std::uint64_t(added / few));
  merge(level - full, full + 1, lane);
  return last;
}

std::uint32_t column_sums::finish(std::int32_t buffer, std::int64_t offset, std::span<const std::uint32_t> waits) {
  const problem &p = builder_.of(group_);
  const std::int64_t at = offset + columns_.first * size_of(p.c.type);
  const view to = by_columns_ ? view{buffer, 0, 1, at, columns_.size, columns_.size, 1}
                              : view{buffer, 0, 1, at, 1, 1, columns_.size};
  for (int lane = 0; lane < lanes_; ++lane) merge(0, levels_with(added_[std::size_t(lane)]), lane);
  command c = builder_.scale(group_, to, first_beta(p), lane_);
  if (width_ > 0)
    c.views[ops::reduce::parts] =
        by_columns_ ? view{buffer_, 0, width_ * lanes_, 0, columns_.size, columns_.size, 1}
                    : view{buffer_, 0, width_ * lanes_, 0, width_ * lanes_ * levels_, 1, columns_.size};
  std::vector<std::uint32_t> before(waits.begin(), waits.end());
  before.insert(before.end(), last_.begin(), last_.end());
  return builder_.add(c, before);
}

bias_gradient::bias_gradient(schedule_builder &builder, std::int32_t group, transfers &moves)
    : builder_(builder), group_(group), moves_(moves) {
  const problem &p = builder.of(group);
  if (!on_host(p.c)) return;
  copy_ = builder.add_device_buffer(p.c.type, p.m * size_of(p.c.type));
  if (!p.beta_zero)
    ready_ = {moves.in(operand_name::c, {{0, 1}, block_of_c({0, p.m}, {0, 1})}, {copy_, 0, 0, p.m, p.m}, {})};
}

void bias_gradient::finish(std::span<column_sums> sums) {
  const problem &p = builder_.of(group_);
  const std::int32_t own = operands_of_problem * group_ + std::int32_t(operand_name::c);
  std::vector<std::uint32_t> written;
  for (column_sums &each : sums) builder_.merge(written, each.finish(copy_ < 0 ? own : copy_, 0, ready_));
  if (copy_ >= 0) moves_.out(operand_name::c, {{0, 1}, block_of_c({0, p.m}, {0, 1})}, {copy_, 0, 0, p.m, p.m}, written);
}

namespace {

// On cores fewer columns are not worth another worker.
constexpr std::int64_t least_columns = 64;
// Rows of dY that cross the link at once.
constexpr double bytes_of_block = 16 << 20;

schedule with_blocks(const problem &p, const device_model &model, int lanes, std::int64_t blocks) {
  schedule_builder builder({&p, 1});
  const bool streams = on_host(p.a) && p.k > 0;
  const auto pageable = [](const operand &x) { return x.space == SG_MEMORY_PAGEABLE ? problem::bytes(x, 1) : 0; };
  transfers moves(builder, 0, model, {pageable(p.a) + pageable(p.c), pageable(p.c)});
  bias_gradient result(builder, 0, moves);
  std::vector<column_sums> sums;
  const auto parts = cut(p.m, model.lanes_are_cores ? std::min<std::int64_t>(lanes, p.m / least_columns) : 1, grain);
  const auto rows = cut(p.k, streams ? blocks : 1, rows_of_group(p.k));
  for (const range &columns : parts)
    sums.emplace_back(builder, 0, columns, std::int64_t(rows.size()), std::uint16_t(sums.size()));
  if (p.k > 0 && !streams)
    for (column_sums &each : sums) each.add(0, 0, p.a.ld, p.k, {});
  if (streams) {
    slot_ring slots(builder, p.a.type, rows, p.m);
    for (const range &block_rows : rows) {
      const block where = block_of_a(p, {0, p.m}, block_rows);
      slot_ring::slot &s = slots.next();
      const std::uint32_t copied = moves.in(operand_name::a, {{0, 1}, where}, {s.buffer, 0, 0, where.rows, 0}, s.users);
      const std::int32_t groups =
          builder.add_alias(s.buffer, p.a.type, stride_of_groups(p.op_a, p.k, where.rows) * size_of(p.a.type));
      s.users.clear();
      for (column_sums &each : sums)
        builder.merge(s.users, each.add(groups, 0, where.rows, block_rows.size, {{copied}}));
    }
  }
  result.finish(sums);
  return builder.finish("column sums");
}

}  // namespace

schedule build_column_sums(const problem &p, const device_model &model, int lanes, std::int64_t memory_limit) {
  const std::int64_t most = std::max<std::int64_t>(1, p.k / std::max<std::int64_t>(1, rows_of_group(p.k)));
  std::int64_t blocks = std::clamp(std::int64_t(problem::bytes(p.a, 1) / bytes_of_block), std::int64_t(1), most);
  for (;; blocks = std::min(most, 2 * blocks)) {
    schedule made = with_blocks(p, model, lanes, blocks);
    if (made.device_bytes <= memory_limit) return made;
    if (blocks == most || !on_host(p.a))
      throw error(SG_STATUS_OUT_OF_MEMORY, "the sums of columns need %lld bytes of device memory; the limit is %lld",
                  static_cast<long long>(made.device_bytes), static_cast<long long>(memory_limit));
  }
}

}  // namespace sg
