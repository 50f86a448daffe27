// SPDX-License-Identifier: Apache-2.0
// Problems in other places, without gaps, of other sizes or with other arithmetic.
#include <algorithm>
#include <utility>

#include "plan/gemm/gemm_form.hpp"

namespace sg {
namespace {

template <class Change>
std::vector<problem> changed(const std::vector<problem> &problems, Change &&change) {
  std::vector<problem> made = problems;
  for (problem &each : made) {
    each.downcast_to_bf16 = false;  // the planner's own
    change(each);
  }
  return made;
}

template <class Condition>
bool any_operand(const std::vector<problem> &problems, Condition &&holds) {
  return std::any_of(problems.begin(), problems.end(), [&](const problem &p) {
    return holds(p.a) || holds(p.b) || holds(p.c) || (p.has_bias() && holds(p.bias));
  });
}

// Without gaps between the columns of operands on the host.
bool has_gaps(const operand &x) noexcept { return x.space.kind() != SG_MEMORY_DEVICE && x.cols > 1 && x.ld > x.rows; }
void close_gaps(problem &p) noexcept {
  for (operand *each : {&p.a, &p.b, &p.c})
    if (has_gaps(*each)) each->ld = each->rows;
}

// The problem with another m and n.
problem resized(problem p, std::int64_t m, std::int64_t n) noexcept {
  (p.op_a == SG_OP_N ? p.a.rows : p.a.cols) = m;
  (p.op_b == SG_OP_N ? p.b.cols : p.b.rows) = n;
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

void place(problem &p, sg_memory_kind from, memory_space to) {
  for (operand *each : {&p.a, &p.b, &p.c, &p.bias})
    if (each->space.kind() == from || (from == SG_MEMORY_AUTO && each->space.kind() != SG_MEMORY_DEVICE))
      each->space = to;
}

bool is_restricted(const plan_request &request) noexcept {
  plan_request free;
  free.device = request.device;
  free.latency = request.latency;
  free.by_rows = request.by_rows;
  free.memory_limit = request.memory_limit;
  return !(request == free);
}

}  // namespace

std::vector<alternative> alternatives_to(
    std::vector<problem> problems, const device_model &model, const plan_request &request, bool independent,
    const std::function<std::shared_ptr<const form>(std::vector<problem>)> &rebuild) {
  std::vector<alternative> all;
  const auto add = [&](const char *title, auto &&change) {
    all.push_back({title, rebuild(changed(problems, change)), request});
  };
  if (is_restricted(request)) {
    plan_request free = request;
    free.split = split_kind::automatic;
    free.parts = free.streams = 0;
    free.tile_m = free.tile_n = free.tile_k = 0;
    all.push_back({"leave the split and the tiles to the planner", rebuild(changed(problems, [](problem &) {})), free});
  }
  if (any_operand(problems, [](const operand &x) { return x.space == SG_MEMORY_PAGEABLE; }))
    add("pin the operands (sg_host_alloc, sg_host_register)",
        [](problem &p) { place(p, SG_MEMORY_PAGEABLE, SG_MEMORY_PINNED); });
  if (any_operand(problems, has_gaps))
    add("store the operands without gaps between their rows, or columns", close_gaps);
  if (!model.lanes_are_cores && independent) {
    const auto shrink = [&](problem &p) {
      p = resized(p, in_whole_tiles(p.m, model.tile_m), in_whole_tiles(p.n, model.tile_n));
    };
    if (changed(problems, shrink) != changed(problems, [](problem &) {}))
      add("choose sizes that are multiples of the device's tiles: the last tiles are mostly empty", shrink);
  }
  const bool is_exact_f32 = std::all_of(problems.begin(), problems.end(), [](const problem &p) {
    return p.a.type == SG_DTYPE_F32 && p.compute == SG_COMPUTE_EXACT;
  });
  if (is_exact_f32) {
    add("allow tf32, if 3 decimal digits are enough (SG_COMPUTE_TF32)",
        [](problem &p) { p.compute = SG_COMPUTE_TF32; });
    add("allow 3xtf32, with the accuracy of f32 (SG_COMPUTE_3XTF32)",
        [](problem &p) { p.compute = SG_COMPUTE_3XTF32; });
  }
  if (any_operand(problems, [](const operand &x) { return x.space.kind() != SG_MEMORY_DEVICE; }))
    add("keep the operands in device memory between jobs (sg_buffer_create)",
        [](problem &p) { place(p, SG_MEMORY_AUTO, SG_MEMORY_DEVICE); });
  return all;
}

}  // namespace sg
