// SPDX-License-Identifier: Apache-2.0
// A plan that a caller holds: a problem and its compiled schedule.
#pragma once

#include <memory>

#include "base/object.hpp"
#include "plan/gemm/problem.hpp"
#include "run/order/job_sink.hpp"
#include "run/program/compiled_plan.hpp"

namespace sg {

class prepared_plan final : public object {
 public:
  prepared_plan(ref<job_sink> owner, const problem &shape, std::shared_ptr<const compiled_plan> plan)
      : object(object_type::plan), owner_(std::move(owner)), shape_(shape), plan_(std::move(plan)) {}

  const ref<job_sink> &owner() const noexcept { return owner_; }
  const problem &shape() const noexcept { return shape_; }
  const std::shared_ptr<const compiled_plan> &plan() const noexcept { return plan_; }

 private:
  const ref<job_sink> owner_;
  const problem shape_;
  const std::shared_ptr<const compiled_plan> plan_;
};

}  // namespace sg
