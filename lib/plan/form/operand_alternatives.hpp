// SPDX-License-Identifier: Apache-2.0
// Forms with operands in other places, without gaps, or with other arithmetic.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plan/form/form.hpp"
#include "plan/schedule/operand.hpp"

namespace sg {

// The form with these operands in place of its own, and with another arithmetic, if one is given.
using form_with = std::function<std::shared_ptr<const form>(std::vector<operand>, std::optional<sg_compute>)>;

// exact_f32: all products are of f32, in f32. Operands without elements are missing.
std::vector<alternative> alternatives_of_operands(const std::vector<operand> &operands, bool exact_f32,
                                                  const plan_request &request, const form_with &rebuild);

}  // namespace sg
