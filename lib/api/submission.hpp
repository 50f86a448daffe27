// SPDX-License-Identifier: Apache-2.0
// An sg_submit, checked, with its handles resolved.
#pragma once

#include <vector>

#include <streamgemm/job.h>

#include "api/problem_of.hpp"
#include "run/completion_queue.hpp"
#include "run/context.hpp"
#include "run/stream.hpp"

namespace sg {

class checked_submit {
 public:
  checked_submit(context &to, const sg_submit *given);

  const sg_plan_options *plan() const noexcept { return plan_; }

  // Submits the work and gives the caller a handle if one is wanted.
  void go(const ref<job> &work, const access *accesses, std::size_t access_count, sg_job **out_job);

 private:
  context &to_;
  ref<stream> stream_;
  ref<completion_queue> queue_;
  std::vector<ref<job>> after_;
  std::uint64_t tag_ = 0;
  std::int8_t priority_ = 0;
  bool untracked_ = false;
  const sg_plan_options *plan_ = nullptr;
};

// Submits one product with its plan.
void submit_product(context &to, checked_gemm &&product, std::shared_ptr<const compiled_plan> plan,
                    checked_submit &order, sg_job **out_job);

}  // namespace sg
