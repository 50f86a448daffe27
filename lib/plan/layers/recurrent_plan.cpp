// SPDX-License-Identifier: Apache-2.0
// The size of the workspace of a recurrent layer.
#include "plan/layers/recurrent.hpp"
#include "plan/layers/within_limit.hpp"

namespace sg {

schedule plan_recurrent(const recurrent_form &f, const device_model &model, int lanes, std::int64_t memory_limit) {
  return schedule_within(memory_limit, usual_recurrent_workspace(model), false, "a recurrent layer",
                         [&](std::int64_t workspace) {
                           recurrent_form tried = f;
                           tried.workspace = workspace;
                           return build_recurrent(tried, model, lanes);
                         });
}

schedule plan_recurrent_backward(const recurrent_form &f, const device_model &model, int lanes,
                                 std::int64_t memory_limit) {
  schedule made = build_recurrent_backward(f, model, lanes);
  if (made.device_bytes <= memory_limit) return made;
  throw error(SG_STATUS_OUT_OF_MEMORY,
              "the gradients of a recurrent layer need %lld bytes of device memory; the limit is %lld: give them fewer "
              "steps or a smaller batch",
              static_cast<long long>(made.device_bytes), static_cast<long long>(memory_limit));
}

std::size_t hash_of(const recurrent_form &f) noexcept {
  std::size_t hash = 0;
  for (const std::int64_t x :
       {f.steps, f.batch, f.in, f.hidden, f.x.step, f.y.step, f.state_stride, std::int64_t{f.given},
        std::int64_t{f.type} << 8 | std::int64_t{f.cell} << 4 | std::int64_t{f.reverse} << 1 | f.accumulate})
    hash = (hash ^ static_cast<std::size_t>(x)) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

std::string description_of(const recurrent_form &f) {
  return std::string(f.is_lstm() ? "an LSTM of " : "a GRU of ") + std::to_string(f.steps) + " steps, batch " +
         std::to_string(f.batch) + ", " + std::to_string(f.in) + " to " + std::to_string(f.hidden) + ", " +
         name_of(f.type);
}

}  // namespace sg
