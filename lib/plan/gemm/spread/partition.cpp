// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/spread/partition.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sg {
namespace {

constexpr std::int64_t tile_grain = 128;

std::int64_t extent_of(const problem &p, spread_axis axis) noexcept {
  return axis == spread_axis::n ? p.n : axis == spread_axis::m ? p.m : p.batch;
}

void shrink(operand &x, const block &to) noexcept {
  if (!exists(x)) return;
  x.rows = to.rows;
  x.cols = to.cols;
}

}  // namespace

std::vector<range> cut_by_weight(std::int64_t total, std::span<const double> weights, std::int64_t grain) {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (total < std::int64_t(weights.size()) * grain) grain = 1;
  std::vector<range> ranges;
  double sum = 0;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    const auto exact = std::int64_t(std::llround(double(total) * sum / all / double(grain))) * grain;
    const std::int64_t end = i + 1 == weights.size() ? total : std::clamp(exact, first, total);
    ranges.push_back({first, end - first});
    first = end;
  }
  return ranges;
}

part_origin origin_of(const problem &whole, const problem_part &part, operand_name name) {
  const range k{0, whole.k};
  const operand &x = operand_of(whole, name);
  const std::int64_t item = is_shared(x) ? 0 : part.items.first;
  switch (name) {
    case operand_name::a: return {block_of_a(whole, part.m, k), item};
    case operand_name::b: return {block_of_b(whole, k, part.n), item};
    case operand_name::c: break;
    case operand_name::bias: return {block_of_bias(whole, block_of_c(part.m, part.n)), item};
  }
  return {block_of_c(part.m, part.n), item};
}

std::vector<problem_part> cut_problem(const problem &p, spread_axis axis, std::span<const device_index> devices,
                                      std::span<const double> shares) {
  const std::int64_t extent = extent_of(p, axis);
  const std::int64_t grain = axis == spread_axis::items ? 1 : tile_grain;
  const std::vector<range> ranges = cut_by_weight(extent, shares, grain);
  std::vector<problem_part> parts;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (ranges[i].size == 0) continue;
    problem_part part{p, devices[i], {0, p.m}, {0, p.n}, {0, p.batch}};
    (axis == spread_axis::n ? part.n : axis == spread_axis::m ? part.m : part.items) = ranges[i];
    shrink(part.p.a, origin_of(p, part, operand_name::a).where);
    shrink(part.p.b, origin_of(p, part, operand_name::b).where);
    shrink(part.p.c, origin_of(p, part, operand_name::c).where);
    shrink(part.p.bias, origin_of(p, part, operand_name::bias).where);
    part.p.m = part.m.size;
    part.p.n = part.n.size;
    part.p.batch = part.items.size;
    parts.push_back(part);
  }
  return parts;
}

std::uint32_t shared_operands(const problem &whole, spread_axis axis) {
  if (whole.no_multiply) return 0;
  const auto needs_all = [&](const operand &x, spread_axis cuts) {
    return on_host(x) && (axis == spread_axis::items ? is_shared(x) : axis != cuts);
  };
  std::uint32_t shared = 0;
  if (needs_all(whole.a, spread_axis::m)) shared |= 1u << int(operand_name::a);
  if (needs_all(whole.b, spread_axis::n)) shared |= 1u << int(operand_name::b);
  return shared;
}

}  // namespace sg
