// SPDX-License-Identifier: Apache-2.0
// What a program computes: an operation with its sizes, strides, types and options, without addresses. Equal forms have
// equal plans. Programs are cached, logged, advised on, and planned again for less memory by their form alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "model/machine_model.hpp"
#include "plan/form/host_operands.hpp"
#include "plan/form/plan_request.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

class form;

// Another form with the same result, or with one that the caller may accept instead.
struct alternative {
  const char *title;  // what the caller changes
  std::shared_ptr<const form> what;
  plan_request request;
};

inline constexpr const char *to_pin = "pin the operands (sg_host_alloc, sg_host_register)";
inline constexpr const char *to_keep_on_device = "keep the operands in device memory between jobs (sg_buffer_create)";

// The independent GEMMs of a form; zeros: it is something else.
struct gemm_summary {
  std::int64_t m = 0, n = 0, k = 0;  // of the first
  std::int64_t items = 0;            // of all, with batches
  std::size_t problems = 0;
};

class form {
 public:
  virtual ~form() = default;
  bool operator==(const form &other) const noexcept {
    return this == &other || (typeid(*this) == typeid(other) && equals(other));
  }
  virtual std::uint64_t hash() const noexcept = 0;
  // For the log and advice.
  virtual std::string describe(const plan_request &request) const = 0;
  // A schedule within the terms' memory limit. Throws SG_STATUS_OUT_OF_MEMORY, with the requirement, and
  // SG_STATUS_UNSUPPORTED.
  virtual schedule plan(const plan_terms &terms) const = 0;
  // A schedule on exactly these devices of a machine, within each device's limit of memory, and its prediction. Empty
  // if the form cannot be computed by several devices.
  virtual std::optional<schedule> spread(const machine_model &, std::span<const device_index>, const plan_request &,
                                         std::span<const std::int64_t> /*memory_limits*/) const {
    return std::nullopt;
  }
  // A copy with all that it refers to.
  virtual std::shared_ptr<const form> share() const = 0;
  virtual std::vector<alternative> alternatives(const device_model &, const plan_request &) const { return {}; }
  virtual gemm_summary gemms() const noexcept { return {}; }

 protected:
  form() = default;
  form(const form &) = default;

 private:
  virtual bool equals(const form &other) const noexcept = 0;  // of the same type
};

// The form of a value with == and, found by its type, hash_of(value), description_of(value) and plan_of(value, terms).
// If there is visit_operands(value, visitor), the operands may lie in any memory, and plan_of sees them in the
// device's.
template <class Value>
class form_of final : public form {
 public:
  explicit form_of(Value given) : value_(std::move(given)) {}

  std::uint64_t hash() const noexcept override { return hash_of(value_); }
  std::string describe(const plan_request &) const override { return description_of(value_); }
  schedule plan(const plan_terms &terms) const override {
    if constexpr (has_operands) {
      Value resident = value_;
      host_operands moved;
      visit_operands(resident, [&](const stored_array &x, memory_space &space) { moved.move(x, space); });
      const auto whole = [&] {
        return moved.empty() ? plan_of(value_, terms) : moved.around(plan_of(resident, moved.beside(terms)), terms);
      };
      if constexpr (requires { plan_in_parts(value_, terms, whole); })
        return plan_in_parts(value_, terms, whole);
      else
        return whole();
    } else {
      return plan_of(value_, terms);
    }
  }
  std::shared_ptr<const form> share() const override { return std::make_shared<const form_of>(value_); }
  std::vector<alternative> alternatives(const device_model &model, const plan_request &request) const override {
    if constexpr (requires { alternatives_to(value_, model, request); })
      return alternatives_to(value_, model, request);
    else if constexpr (has_operands)
      return alternatives_of_memory(value_, request);
    else
      return {};
  }

 private:
  static constexpr bool has_operands = requires(Value & value, const operand_visitor &visit) {
    visit_operands(value, visit);
  };

  static std::vector<alternative> alternatives_of_memory(const Value &value, const plan_request &request) {
    std::vector<alternative> all;
    for (const bool pins : {true, false}) {
      Value changed = value;
      bool concerns = false;
      visit_operands(changed, [&](const stored_array &, memory_space &space) {
        if (pins ? space != SG_MEMORY_PAGEABLE : space == SG_MEMORY_DEVICE) return;
        space = pins ? SG_MEMORY_PINNED : SG_MEMORY_DEVICE;
        concerns = true;
      });
      if (concerns)
        all.push_back(
            {pins ? to_pin : to_keep_on_device, std::make_shared<const form_of>(std::move(changed)), request});
    }
    return all;
  }

  bool equals(const form &other) const noexcept override {
    return static_cast<const form_of &>(other).value_ == value_;
  }

  const Value value_;
};

}  // namespace sg
