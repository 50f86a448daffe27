// SPDX-License-Identifier: Apache-2.0
// The submission of one GEMM.
#pragma once

#include "api/gemm/problem_of.hpp"
#include "api/submission/submission.hpp"

namespace sg {

// Submits one GEMM with its plan, without pointer arrays.
void submit_gemm(context &to, const binding::head &where, const std::shared_ptr<const program> &plan,
                 const access *accesses, std::size_t access_count, checked_submit &order, sg_job **out_job);
void submit_gemm(context &to, checked_gemm &&gemm, const std::shared_ptr<const program> &plan, checked_submit &order,
                 sg_job **out_job);

// Checks and submits one GEMM. `names`: of its matrices in messages. `pending`: set if the caller waits, see
// checked_submit::will_wait.
void submit_gemm(context &to, const sg_gemm_desc &desc, const gemm_names &names, const sg_submit *submit,
                 sg_job **out_job, ref<job> *pending = nullptr);

}  // namespace sg
