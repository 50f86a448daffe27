// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/column_sums.hpp"

#include <bit>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/layers/slot_ring.hpp"

namespace sg {

column_sums::column_sums(schedule_builder &builder, const sums_of_columns &of, range columns, std::int64_t blocks,
                         std::uint16_t lane_index, int lanes)
    : builder_(builder),
      of_(of),
      columns_(columns),
      lane_(lane_index),
      lanes_(lanes),
      width_(rows_of_group(of.rows)),
      levels_(std::bit_width(std::uint64_t(ceil_div(blocks, lanes * few)))),
      type_(accumulator_of(of.type)),
      added_(std::size_t(lanes)) {
  if (width_ == 0) return;
  const std::int64_t of_level =
      checked_mul(width_ * lanes, (of_.by_columns ? columns.size : 1) * size_of(type_), "sums");
  const std::int64_t rows = of_.by_columns ? 1 : columns.size;
  const std::int64_t bytes = checked_mul(checked_mul(of_level, levels_, "sums"), rows, "sums");
  buffer_ = builder.add_device_buffer(type_, bytes, (of_.by_columns ? columns.size : 1) * size_of(type_));
  of_levels_ = builder.add_alias(buffer_, type_, of_level);
}

// Levels that hold the sums of some blocks.
std::int64_t column_sums::levels_with(std::int64_t added) noexcept {
  return std::popcount(std::uint64_t(added / few)) + (added % few != 0);
}

// The partial sums of the first rows of a group, of some levels.
view column_sums::sums(std::int64_t level, std::int64_t levels, std::int64_t rows, int lane) const {
  const std::int64_t before = lane * width_ * size_of(type_);
  return of_.by_columns ? view{of_levels_, level, levels, before * columns_.size, columns_.size, columns_.size, rows}
                        : view{of_levels_, level, levels, before, width_ * lanes_ * levels_, rows, columns_.size};
}

// Adds the sums of the levels from `first` + 1 on to those of the first one.
void column_sums::merge(std::int64_t first, std::int64_t levels, int lane) {
  if (levels <= 1) return;
  command c = builder_.scale(sums(first, 1, width_, lane), scalar_role::one, std::uint16_t(lane_ + lane));
  c.views[ops::reduce::parts] = sums(first + 1, levels - 1, width_, lane);
  builder_.merge(last_, builder_.add(c));
}

std::uint32_t column_sums::add(std::int32_t buffer, std::int64_t offset, std::int64_t ld, std::int64_t rows,
                               std::span<const std::uint32_t> waits, int lane) {
  const std::int64_t size = size_of(of_.type), groups = rows / width_;
  const std::int64_t first = offset + columns_.first * (of_.by_columns ? 1 : ld) * size;
  std::int64_t &added = added_[std::size_t(lane)];
  // A block begins a level, or is added to the last one.
  const bool begins = groups > 0 && added % few == 0;
  const std::int64_t level = levels_with(added) - (begins ? 0 : 1);
  std::uint32_t last = 0;
  const auto add_rows = [&](std::int64_t row, std::int64_t items, std::int64_t count, scalar_role beta) {
    if (count == 0 || items == 0) return;
    command c = builder_.scale(sums(level, 1, count, lane), beta, std::uint16_t(lane_ + lane));
    const std::int64_t at = first + row * (of_.by_columns ? ld : 1) * size;
    c.views[ops::reduce::parts] = of_.by_columns ? view{buffer, 0, items, at, ld, columns_.size, count}
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
  const std::int64_t at = offset + columns_.first * size_of(of_.result_type);
  const view to = of_.by_columns ? view{buffer, 0, 1, at, columns_.size, columns_.size, 1}
                                 : view{buffer, 0, 1, at, 1, 1, columns_.size};
  for (int lane = 0; lane < lanes_; ++lane) merge(0, levels_with(added_[std::size_t(lane)]), lane);
  command c = builder_.scale(to, of_.adds ? scalar_role::job : scalar_role::zero, lane_, of_.group);
  if (width_ > 0)
    c.views[ops::reduce::parts] =
        of_.by_columns ? view{buffer_, 0, width_ * lanes_, 0, columns_.size, columns_.size, 1}
                       : view{buffer_, 0, width_ * lanes_, 0, width_ * lanes_ * levels_, 1, columns_.size};
  std::vector<std::uint32_t> before(waits.begin(), waits.end());
  before.insert(before.end(), last_.begin(), last_.end());
  return builder_.add(c, before);
}

bias_gradient::bias_gradient(schedule_builder &builder, std::int32_t result, bool adds, transfers &moves)
    : builder_(builder), result_(result), moves_(moves) {
  const operand &c = builder.operand_at(result);
  if (!on_host(c)) return;
  copy_ = builder.add_device_buffer(c.type, c.rows * size_of(c.type));
  if (adds) ready_ = {moves.in(result, {{0, 1}, {0, 0, c.rows, 1}}, {copy_, 0, 0, c.rows, c.rows}, {})};
}

void bias_gradient::finish(std::span<column_sums> sums) {
  const std::int64_t size = builder_.operand_at(result_).rows;
  std::vector<std::uint32_t> written;
  for (column_sums &each : sums) builder_.merge(written, each.finish(copy_ < 0 ? result_ : copy_, 0, ready_));
  if (copy_ >= 0) moves_.out(result_, {{0, 1}, {0, 0, size, 1}}, {copy_, 0, 0, size, size}, written);
}

namespace {

// On cores, fewer columns are not worth another worker.
constexpr std::int64_t least_columns = 64;
// Rows of dY that cross the link at once.
constexpr double bytes_of_block = 16 << 20;

schedule with_blocks(const sums_of_columns &of, const operand &dy, const operand &result, const device_model &model,
                     int lanes, std::int64_t blocks) {
  schedule_builder builder;
  const std::int32_t in = builder.add_parameter({dy, "dY"});
  builder.add_parameter({});
  const std::int32_t out = builder.add_parameter({result, "dbias", true});
  const bool streams = on_host(dy) && of.rows > 0;
  const auto pageable = [](const operand &x) { return x.space == SG_MEMORY_PAGEABLE ? bytes_of(x) : 0; };
  transfers moves(builder, model, {pageable(dy) + pageable(result), pageable(result)});
  bias_gradient sum(builder, out, of.adds, moves);
  std::vector<column_sums> sums;
  const auto parts =
      cut(of.columns, model.lanes_are_cores ? std::min<std::int64_t>(lanes, of.columns / least_columns) : 1, grain);
  const auto rows = cut(of.rows, streams ? blocks : 1, rows_of_group(of.rows));
  for (const range &columns : parts)
    sums.emplace_back(builder, of, columns, std::int64_t(rows.size()), std::uint16_t(sums.size()));
  if (of.rows > 0 && !streams)
    for (column_sums &each : sums) each.add(in, 0, dy.ld, of.rows, {});
  if (streams) {
    slot_ring slots(builder, dy.type, rows, of.columns);
    for (const range &some : rows) {
      const block where =
          of.by_columns ? block{0, some.first, of.columns, some.size} : block{some.first, 0, some.size, of.columns};
      slot_ring::slot &s = slots.next();
      const std::uint32_t copied = moves.in(in, {{0, 1}, where}, {s.buffer, 0, 0, where.rows, 0}, s.users);
      const std::int32_t groups =
          builder.add_alias(s.buffer, dy.type, stride_of_groups(of.by_columns, of.rows, where.rows) * size_of(dy.type));
      s.users.clear();
      for (column_sums &each : sums) builder.merge(s.users, each.add(groups, 0, where.rows, some.size, {{copied}}));
    }
  }
  sum.finish(sums);
  return builder.finish("column sums");
}

}  // namespace

schedule build_column_sums(const sums_of_columns &of, const operand &dy, const operand &result,
                           const device_model &model, int lanes, std::int64_t memory_limit) {
  const std::int64_t most = std::max<std::int64_t>(1, of.rows / std::max<std::int64_t>(1, rows_of_group(of.rows)));
  std::int64_t blocks = std::clamp(std::int64_t(bytes_of(dy) / bytes_of_block), std::int64_t(1), most);
  for (;; blocks = std::min(most, 2 * blocks)) {
    schedule made = with_blocks(of, dy, result, model, lanes, blocks);
    if (made.device_bytes <= memory_limit) return made;
    if (blocks == most || !on_host(dy))
      throw error(SG_STATUS_OUT_OF_MEMORY, "the sums of columns need %lld bytes of device memory; the limit is %lld",
                  static_cast<long long>(made.device_bytes), static_cast<long long>(memory_limit));
  }
}

}  // namespace sg
