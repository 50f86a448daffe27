// SPDX-License-Identifier: Apache-2.0
// A plan that a caller holds: a problem and its program.
#pragma once

#include <memory>

#include "base/object.hpp"
#include "plan/gemm/problem.hpp"
#include "run/order/job_sink.hpp"
#include "run/program/program.hpp"

namespace sg {

class prepared_plan final : public object {
 public:
  prepared_plan(ref<job_sink> owner, const problem &shape, std::shared_ptr<const program> compiled)
      : object(object_type::plan), owner_(std::move(owner)), shape_(shape), program_(std::move(compiled)) {}

  const ref<job_sink> &owner() const noexcept { return owner_; }
  const problem &shape() const noexcept { return shape_; }
  const std::shared_ptr<const program> &compiled() const noexcept { return program_; }

 private:
  const ref<job_sink> owner_;
  const problem shape_;
  const std::shared_ptr<const program> program_;
};

}  // namespace sg
