// SPDX-License-Identifier: Apache-2.0
#include "plan/direct.hpp"

namespace sg {
namespace {

// A reduction has no batch, so C is scaled item by item, or at once where the items are one run.
void add_scaling(schedule_builder &builder, std::int32_t group, std::uint16_t lane_index) {
  const problem &p = builder.of(group);
  const block whole = block_of_c({0, p.m}, {0, p.n});
  if (is_one_run(p.c)) {
    view all = builder.operand_view(group, operand_name::c, {0, 1}, whole);
    all.cols *= p.batch;
    builder.add(builder.scale(group, all, first_beta(p), lane_index));
    return;
  }
  for (std::int64_t item = 0; item < p.batch; ++item)
    builder.add(builder.scale(group, builder.operand_view(group, operand_name::c, {item, 1}, whole), first_beta(p),
                              lane_index));
}

}  // namespace

void add_direct(schedule_builder &builder, std::int32_t group, std::uint16_t lane_index) {
  const problem &p = builder.of(group);
  if (p.no_product) return add_scaling(builder, group, lane_index);
  const range m{0, p.m}, n{0, p.n}, k{0, p.k}, items{0, p.batch};
  command c = builder.gemm(group, m, n, k, lane_index);
  c.out = builder.operand_view(group, operand_name::c, items, block_of_c(m, n));
  c.in0 = builder.operand_view(group, operand_name::a, items, block_of_a(p, m, k));
  c.in1 = builder.operand_view(group, operand_name::b, items, block_of_b(p, k, n));
  builder.add(c);
}

schedule build_direct(const problem &p) {
  schedule_builder builder({&p, 1});
  add_direct(builder, 0, 0);
  return builder.finish("direct");
}

}  // namespace sg
