// SPDX-License-Identifier: Apache-2.0
// The form of a GEMM, or of several independent ones (a group).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plan/form/form.hpp"
#include "plan/gemm/resident/problem.hpp"

namespace sg {

// Throws if the device has no such GEMM.
void require_gemm(const problem &p, const device_model &model);

class gemm_form final : public form {
 public:
  // Refers to the problems, which must outlive it; share() copies them.
  explicit gemm_form(std::span<const problem> of) noexcept : problems_(of) {}
  explicit gemm_form(const problem &of) noexcept : problems_(&of, 1) {}
  explicit gemm_form(std::vector<problem> &&own) noexcept : own_(std::move(own)), problems_(own_) {}
  gemm_form(const gemm_form &) = delete;

  std::uint64_t hash() const noexcept override;
  std::string describe(const plan_request &request) const override;
  // The fastest schedule of one problem, or of a group.
  schedule plan(const plan_terms &terms) const override;
  std::optional<schedule> spread(const machine_model &machine, std::span<const device_index> devices,
                                 const plan_request &request,
                                 std::span<const std::int64_t> memory_limits) const override;
  std::shared_ptr<const form> share() const override;
  std::vector<alternative> alternatives(const device_model &model, const plan_request &request) const override;
  gemm_summary gemms() const noexcept override;

 private:
  bool equals(const form &other) const noexcept override;

  const std::vector<problem> own_;
  const std::span<const problem> problems_;
};

// Changes of places, gaps, sizes and arithmetic. `independent`: the problems' sizes do not depend on each other;
// `rebuild(problems)`: the form with these.
std::vector<alternative> alternatives_to(
    std::vector<problem> problems, const device_model &model, const plan_request &request, bool independent,
    const std::function<std::shared_ptr<const form>(std::vector<problem>)> &rebuild);

}  // namespace sg
