// SPDX-License-Identifier: Apache-2.0
// Plans of one GEMM: a run may have host operands in other memory than the plan (pinned or pageable), and may leave C
// alone.
#pragma once

#include <streamgemm/operation.h>

#include <memory>
#include <optional>

#include "api/submission/submission.hpp"
#include "plan/gemm/resident/problem.hpp"
#include "run/program/program.hpp"

namespace sg {

inline bool is_one_gemm(const sg_operation_desc &given) noexcept {
  return given.operation == SG_OPERATION_GEMM && given.count == 1;
}

// Throws if there is nothing to do. `shape` receives the problem, with the memory spaces of the context.
std::shared_ptr<const program> plan_one_gemm(context &on, const sg_operation_desc &given,
                                             const sg_plan_options *options, std::optional<problem> &shape);

void run_planned_gemm(context &on, const sg_operation_desc &given, const problem &planned,
                      const std::shared_ptr<const program> &plan, checked_submit &order, sg_job **out_job);

}  // namespace sg
