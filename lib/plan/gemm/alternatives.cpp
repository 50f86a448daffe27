// SPDX-License-Identifier: Apache-2.0
// Problems in other places, without gaps, of other sizes or with other arithmetic.
#include <algorithm>
#include <utility>

#include "plan/form/operand_alternatives.hpp"
#include "plan/gemm/gemm_form.hpp"

namespace sg {
namespace {

// The problem with another m and n.
problem resized(problem p, std::int64_t m, std::int64_t n) noexcept {
  (p.op_a == SG_TRANSPOSE_N ? p.a.rows : p.a.cols) = m;
  (p.op_b == SG_TRANSPOSE_N ? p.b.cols : p.b.rows) = n;
  if (p.has_bias()) (p.bias.rows == p.m ? p.bias.rows : p.bias.cols) = p.bias.rows == p.m ? m : n;
  p.m = p.c.rows = m;
  p.n = p.c.cols = n;
  return p;
}

// The size without a last tile that is mostly empty.
std::int64_t in_whole_tiles(std::int64_t size, std::int64_t tile) noexcept {
  const std::int64_t rest = size % tile;
  return size > tile && rest != 0 && 4 * rest <= tile ? size - rest : size;
}

}  // namespace

std::vector<alternative> alternatives_to(
    std::vector<problem> problems, const device_model &model, const plan_request &request, bool independent,
    const std::function<std::shared_ptr<const form>(std::vector<problem>)> &rebuild) {
  std::vector<operand> operands;
  for (problem &each : problems) {
    each.downcast_to_bf16 = false;  // the planner's own
    for (const operand *x : {&each.a, &each.b, &each.c, &each.bias}) operands.push_back(*x);
  }
  const bool is_exact_f32 = std::ranges::all_of(
      problems, [](const problem &p) { return p.a.type == SG_DTYPE_F32 && p.compute == SG_COMPUTE_EXACT; });
  std::vector<alternative> all = alternatives_of_operands(
      operands, is_exact_f32, request, [&](const std::vector<operand> &changed, std::optional<sg_compute> compute) {
        std::vector<problem> made = problems;
        auto next = changed.begin();
        for (problem &each : made) {
          for (operand *x : {&each.a, &each.b, &each.c, &each.bias}) *x = *next++;
          each.compute = compute.value_or(each.compute);
        }
        return rebuild(std::move(made));
      });
  if (model.lanes_are_cores || !independent) return all;
  std::vector<problem> shrunk = problems;
  for (problem &p : shrunk) p = resized(p, in_whole_tiles(p.m, model.tile_m), in_whole_tiles(p.n, model.tile_n));
  if (shrunk != problems)
    all.push_back({"choose sizes that are multiples of the device's tiles: the last tiles are mostly empty",
                   rebuild(std::move(shrunk)), request});
  return all;
}

}  // namespace sg
