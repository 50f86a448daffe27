// SPDX-License-Identifier: Apache-2.0
// The size of the workspace of a recurrent layer.
#include "base/hash.hpp"
#include "plan/layers/recurrent.hpp"
#include "plan/layers/within_limit.hpp"

namespace sg {

schedule plan_of(const recurrent_form &f, const plan_terms &terms) {
  return schedule_within(terms.memory_limit, usual_recurrent_workspace(terms.model), false, "a recurrent layer",
                         [&](std::int64_t workspace) {
                           recurrent_form tried = f;
                           tried.workspace = workspace;
                           return build_recurrent(tried, terms.model, terms.lanes);
                         });
}

schedule plan_of(const recurrent_backward_form &f, const plan_terms &terms) {
  schedule made = build_recurrent_backward(f, terms.model, terms.lanes);
  if (made.device_bytes <= terms.memory_limit) return made;
  throw error(SG_STATUS_OUT_OF_MEMORY,
              "the gradients of a recurrent layer need %lld bytes of device memory; the limit is %lld: give them fewer "
              "steps or a smaller batch",
              static_cast<long long>(made.device_bytes), static_cast<long long>(terms.memory_limit));
}

std::uint64_t hash_of(const recurrent_form &f) noexcept {
  hasher mixed;
  for (const std::int64_t x :
       {f.steps, f.batch, f.in, f.hidden, f.x.step, f.y.step, f.state_stride, std::int64_t{f.given},
        std::int64_t{f.type} << 8 | std::int64_t{f.cell} << 4 | std::int64_t{f.reverse} << 1 | f.accumulate})
    mixed << x;
  return mixed.value();
}

std::string description_of(const recurrent_form &f) {
  return std::string(f.is_lstm() ? "an LSTM of " : "a GRU of ") + std::to_string(f.steps) + " steps, batch " +
         std::to_string(f.batch) + ", " + std::to_string(f.in) + " to " + std::to_string(f.hidden) + ", " +
         name_of(f.type);
}

std::string description_of(const recurrent_backward_form &f) {
  return "the gradients of " + description_of(static_cast<const recurrent_form &>(f));
}

}  // namespace sg
