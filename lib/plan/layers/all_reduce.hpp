// SPDX-License-Identifier: Apache-2.0
// The form of an all-reduce: vectors on several devices, or on one, each of which becomes the sum of all. Each device
// gathers a part of the elements of all vectors, sums it, and the others pull the sums, slice by slice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/form/form.hpp"

namespace sg {

class all_reduce_form final : public form {
 public:
  // `places`: the device of each vector.
  all_reduce_form(sg_dtype type, std::int64_t elements, std::vector<device_index> places)
      : type_(type), elements_(elements), places_(std::move(places)) {}

  std::uint64_t hash() const noexcept override;
  std::string describe(const plan_request &request) const override;
  // With all vectors on one device.
  schedule plan(const plan_terms &terms) const override;
  // The devices are those of the vectors.
  std::optional<schedule> spread(const machine_model &machine, std::span<const device_index> devices,
                                 const plan_request &request,
                                 std::span<const std::int64_t> memory_limits) const override;
  std::shared_ptr<const form> share() const override { return std::make_shared<const all_reduce_form>(*this); }

 private:
  bool equals(const form &other) const noexcept override;

  const sg_dtype type_;
  const std::int64_t elements_;
  const std::vector<device_index> places_;
};

}  // namespace sg
