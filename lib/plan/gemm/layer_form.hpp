// SPDX-License-Identifier: Apache-2.0
// The form of a layer that a builder of its own plans: sizes, strides and options, without addresses. Part of a plan
// request, so that its plans are cached, logged, and made again for less memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "plan/model/device_model.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

class layer_form {
 public:
  virtual ~layer_form() = default;
  // A schedule whose device memory is within the limit. Throws SG_STATUS_OUT_OF_MEMORY, with the requirement.
  virtual schedule plan(const device_model &model, int lanes, std::int64_t memory_limit) const = 0;
  virtual bool equals(const layer_form &other) const noexcept = 0;
  virtual std::size_t hash() const noexcept = 0;
  virtual std::string description() const = 0;
};

// Compares forms, not addresses.
class shared_layer_form {
 public:
  shared_layer_form() = default;
  explicit shared_layer_form(std::shared_ptr<const layer_form> form) noexcept : form_(std::move(form)) {}

  explicit operator bool() const noexcept { return form_ != nullptr; }
  const layer_form *operator->() const noexcept { return form_.get(); }
  bool operator==(const shared_layer_form &other) const noexcept {
    return form_ == other.form_ || (form_ && other.form_ && form_->equals(*other.form_));
  }

 private:
  std::shared_ptr<const layer_form> form_;
};

// `Form`: a value with ==, hash_of() and description_of().
template <class Form>
shared_layer_form share_form(const Form &form, schedule (*plan)(const Form &, const device_model &, int lanes,
                                                                std::int64_t memory_limit)) {
  using planner = schedule (*)(const Form &, const device_model &, int, std::int64_t);
  struct shared final : layer_form {
    shared(const Form &given, planner by) : form(given), build(by) {}
    schedule plan(const device_model &model, int lanes, std::int64_t memory_limit) const override {
      return build(form, model, lanes, memory_limit);
    }
    bool equals(const layer_form &other) const noexcept override {
      const auto *const same = dynamic_cast<const shared *>(&other);
      return same && same->build == build && same->form == form;
    }
    std::size_t hash() const noexcept override { return hash_of(form); }
    std::string description() const override { return description_of(form); }
    const Form form;
    const planner build;
  };
  return shared_layer_form(std::make_shared<const shared>(form, plan));
}

}  // namespace sg
