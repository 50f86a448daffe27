// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/resident/split.hpp"

#include "base/checked.hpp"

namespace sg {
namespace {

std::string times(const std::vector<range> &parts) { return " x" + std::to_string(parts.size()); }

void add_block(gemm_builder &builder, range items, range m, range n, const std::vector<range> &depths,
               std::uint16_t lane_index) {
  const problem &p = builder.of(0);
  for (const range &k : depths) {
    command c = builder.gemm(0, m, n, k, lane_index);
    c.views[ops::gemm::c] = builder.operand_view(0, operand_name::c, items, block_of_c(m, n));
    c.views[ops::gemm::a] = builder.operand_view(0, operand_name::a, items, block_of_a(p, m, k));
    c.views[ops::gemm::b] = builder.operand_view(0, operand_name::b, items, block_of_b(p, k, n));
    if (k.first > 0) c.as<ops::gemm>()->beta = scalar_role::one;
    if (k.end() == p.k) builder.finish_sums(c, items, block_of_c(m, n));
    builder.add(c);
  }
}

void add_scaling(gemm_builder &builder, range items, block part, std::uint16_t lane_index) {
  for (std::int64_t item = items.first; item < items.end(); ++item) {
    command c =
        builder.scale(builder.operand_view(0, operand_name::c, {item, 1}, part), first_beta(builder.of(0)), lane_index);
    builder.finish_sums(c, {item, 1}, part);
    builder.add(c);
  }
}

}  // namespace

schedule build_grid_split(const problem &p, grid_split grid, int lanes) {
  gemm_builder builder({&p, 1});
  const auto rows = cut(p.m, grid.parts_m, grain), cols = cut(p.n, grid.parts_n, grain);
  const auto depths = cut(p.k, grid.parts_k, grain);
  int next = 0;
  for (const range &n : cols)
    for (const range &m : rows)
      if (p.no_multiply)
        for (std::int64_t item = 0; item < p.batch; ++item)
          add_scaling(builder, {item, 1}, block_of_c(m, n), std::uint16_t(next++ % lanes));
      else
        add_block(builder, {0, p.batch}, m, n, depths, std::uint16_t(next++ % lanes));
  std::string name = grid.parts_n == 1   ? "split-m" + times(rows)
                     : grid.parts_m == 1 ? "split-n" + times(cols)
                                         : "grid " + std::to_string(rows.size()) + "x" + std::to_string(cols.size());
  if (depths.size() > 1) name += " of " + std::to_string(depths.size()) + " pieces";
  return builder.finish(std::move(name));
}

schedule build_batch_split(const problem &p, std::int64_t parts, int lanes) {
  gemm_builder builder({&p, 1});
  const auto ranges = cut(p.batch, parts);
  int next = 0;
  for (const range &items : ranges) {
    if (p.no_multiply)
      add_scaling(builder, items, block_of_c({0, p.m}, {0, p.n}), std::uint16_t(next % lanes));
    else
      add_block(builder, items, {0, p.m}, {0, p.n}, {{0, p.k}}, std::uint16_t(next % lanes));
    ++next;
  }
  return builder.finish("split-batch" + times(ranges));
}

std::int64_t depth_split_bytes(const problem &p, std::int64_t parts) {
  const std::int64_t part = checked_mul(checked_mul(p.m, p.n, "partial results"), p.batch, "partial results");
  return round_up(
      checked_mul(checked_mul(part, parts, "partial results"), size_of(accumulator_of(p.c.type)), "partial results"),
      256);
}

schedule build_depth_split(const problem &p, std::int64_t parts, int lanes, int reduce_lanes) {
  gemm_builder builder({&p, 1});
  const auto depths = cut(p.k, parts, grain);
  const sg_dtype type = accumulator_of(p.c.type);
  const std::int64_t item_bytes = p.m * p.n * size_of(type);
  const std::int64_t part_bytes = item_bytes * p.batch;
  // The same memory twice: as items of a batch for the GEMMs, as parts of a sum for the reductions.
  const std::int64_t bytes = part_bytes * std::int64_t(depths.size());
  const std::int32_t items_of_part = builder.add_device_buffer(type, bytes, item_bytes);
  const std::int32_t parts_of_item = builder.add_alias(items_of_part, type, part_bytes);

  std::vector<std::uint32_t> gemms;
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const range m{0, p.m}, n{0, p.n}, items{0, p.batch};
    command c = builder.gemm(0, m, n, depths[i], std::uint16_t(i % lanes));
    c.views[ops::gemm::c] = view{items_of_part, 0, p.batch, std::int64_t(i) * part_bytes, p.m, p.m, p.n};
    c.views[ops::gemm::a] = builder.operand_view(0, operand_name::a, items, block_of_a(p, m, depths[i]));
    c.views[ops::gemm::b] = builder.operand_view(0, operand_name::b, items, block_of_b(p, depths[i], n));
    c.as<ops::gemm>()->beta = scalar_role::zero;
    gemms.push_back(builder.add(c));
  }
  int next = 0;
  for (std::int64_t item = 0; item < p.batch; ++item)
    for (const range &n : cut(p.n, p.batch == 1 ? reduce_lanes : 1, grain)) {
      command c = builder.scale(builder.operand_view(0, operand_name::c, {item, 1}, block_of_c({0, p.m}, n)),
                                first_beta(p), std::uint16_t(next++ % reduce_lanes));
      const std::int64_t offset = item * item_bytes + n.first * p.m * size_of(type);
      c.views[ops::reduce::parts] = view{parts_of_item, 0, std::int64_t(depths.size()), offset, p.m, p.m, n.size};
      builder.finish_sums(c, {item, 1}, block_of_c({0, p.m}, n));
      builder.add(c, gemms);
    }
  return builder.finish("split-k" + times(depths));
}

}  // namespace sg
