// SPDX-License-Identifier: Apache-2.0
// The recent submissions of each thread, by descriptor. One that differs from a recent one in its addresses only needs
// neither the checks of its descriptor nor the look-up of its program: only those of its addresses. (GEMMs have a cache
// of their own, which holds groups and waiting callers: submission_cache.hpp.)
#pragma once

#include <streamgemm/operation.h>

#include <cstddef>
#include <memory>

#include "api/operands/operand_set.hpp"
#include "api/submission/submission.hpp"
#include "run/program/program.hpp"

namespace sg {

// Submits an operation like a recent one. False: there is none, or the addresses need the checks of a new one.
bool repeat_submission(context &on, sg_operation operation, const void *desc, std::size_t size, checked_submit &order,
                       sg_job **out_job);

// Stores a checked submission, if its descriptor and its program may be used again.
void remember_submission(const context &on, sg_operation operation, const void *desc, std::size_t size,
                         const operand_set &operands, const std::shared_ptr<const program> &plan,
                         const checked_submit &order) noexcept;

}  // namespace sg
