// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/resident/direct.hpp"

namespace sg {
namespace {

// A reduction has no batch, so C is scaled item by item, or in one command if the items are columns of one matrix.
void add_scaling(gemm_builder &builder, std::int32_t group, std::uint16_t lane_index) {
  const problem &p = builder.of(group);
  const block whole = block_of_c({0, p.m}, {0, p.n});
  const auto add = [&](range item, std::int64_t times) {
    view out = builder.operand_view(group, operand_name::c, item, whole);
    out.cols *= times;
    command c = builder.scale(out, first_beta(p), lane_index, group);
    builder.finish_sums(c, item, whole);
    builder.add(c);
  };
  if (scales_at_once(p)) return add({0, 1}, p.batch);
  for (std::int64_t item = 0; item < p.batch; ++item) add({item, 1}, 1);
}

}  // namespace

void add_direct(gemm_builder &builder, std::int32_t group, std::uint16_t lane_index) {
  const problem &p = builder.of(group);
  if (p.no_multiply) return add_scaling(builder, group, lane_index);
  const range m{0, p.m}, n{0, p.n}, k{0, p.k}, items{0, p.batch};
  command c = builder.gemm(group, m, n, k, lane_index);
  c.views[ops::gemm::c] = builder.operand_view(group, operand_name::c, items, block_of_c(m, n));
  c.views[ops::gemm::a] = builder.operand_view(group, operand_name::a, items, block_of_a(p, m, k));
  c.views[ops::gemm::b] = builder.operand_view(group, operand_name::b, items, block_of_b(p, k, n));
  builder.finish_sums(c, items, block_of_c(m, n));
  builder.add(c);
}

schedule build_direct(const problem &p) {
  gemm_builder builder({&p, 1});
  add_direct(builder, 0, 0);
  return builder.finish("direct");
}

}  // namespace sg
