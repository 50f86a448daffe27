// SPDX-License-Identifier: Apache-2.0
// The program of GEMMs on one device of the context, or on several.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "api/submission/submission.hpp"
#include "plan/gemm/resident/problem.hpp"
#include "run/program/program.hpp"

namespace sg {

struct placed_gemm {
  std::shared_ptr<const program> plan;
  bool is_kept;  // later ones with operands in the same memory spaces have the same plan
};

// Those with operands in device memory run where that is, and copy what other devices have. One with all operands in
// host memory runs on the devices that the planner, the options or the stream choose; without a choice, on the least
// busy one. Throws as make_plan does.
placed_gemm place_gemm(context &on, std::span<const problem> shapes, plan_request request, const checked_submit &order);
// The same for a plan made ahead.
std::shared_ptr<const program> plan_gemm(context &on, const problem &shape, plan_request request);

// The problem as the program's device sees its operands.
problem seen_by(const context &on, const program &plan, problem shape) noexcept;

}  // namespace sg
