// SPDX-License-Identifier: Apache-2.0
// A plan that a caller holds: a problem and its compiled schedule.
#pragma once

#include <memory>

#include "base/object.hpp"
#include "plan/gemm/problem.hpp"
#include "run/program/compiled_plan.hpp"
#include "run/context.hpp"

namespace sg {

class prepared_plan final : public object {
 public:
  prepared_plan(ref<context> owner, const problem &shape, const plan_request &request)
      : object(object_type::plan),
        owner_(std::move(owner)),
        shape_(shape),
        plan_(owner_->plan_for(&shape, 1, request)) {}

  const ref<context> &owner() const noexcept { return owner_; }
  const problem &shape() const noexcept { return shape_; }
  const std::shared_ptr<const compiled_plan> &plan() const noexcept { return plan_; }

 private:
  const ref<context> owner_;
  const problem shape_;
  const std::shared_ptr<const compiled_plan> plan_;
};

}  // namespace sg
