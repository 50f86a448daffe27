// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/resident/gemm_builder.hpp"

namespace sg {

bool touches_host(const problem &p) noexcept {
  return on_host(p.c) || (p.has_bias() && on_host(p.bias)) || (!p.no_multiply && (on_host(p.a) || on_host(p.b)));
}

block block_of_a(const problem &p, range m, range k) {
  return p.op_a == SG_TRANSPOSE_N ? block{m.first, k.first, m.size, k.size} : block{k.first, m.first, k.size, m.size};
}

block block_of_b(const problem &p, range k, range n) {
  return p.op_b == SG_TRANSPOSE_N ? block{k.first, n.first, k.size, n.size} : block{n.first, k.first, n.size, k.size};
}

gemm_builder::gemm_builder(std::span<const problem> problems) : problems_(problems.begin(), problems.end()) {
  for (const problem &p : problems_) {
    add_parameter({p.a, "A", false, p.batch});
    add_parameter({p.b, "B", false, p.batch});
    add_parameter({p.c, "C", true, p.batch});
    add_parameter({p.bias, "the bias", false, p.batch});
    add_flops(p.flops());
  }
}

command gemm_builder::gemm(std::int32_t group, range m, range n, range k, std::uint16_t lane_index) const {
  const problem &p = of(group);
  return multiply({m.size, n.size, k.size, p.op_a, p.op_b, p.as_on_device().compute, scalar_role::job, first_beta(p)},
                  lane_index, group);
}

void gemm_builder::finish_sums(command &last, range items, block c) const {
  const problem &p = problems_[last.group];
  epilogue_of(last).activation = p.activation;
  if (p.has_bias())
    last.views[ops::epilogue::bias] = operand_view(last.group, operand_name::bias, items, block_of_bias(p, c));
}

}  // namespace sg
