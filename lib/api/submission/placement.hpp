// SPDX-License-Identifier: Apache-2.0
// Which device of the context runs a submission: that of its stream, else the one whose memory has operands, else any.
#pragma once

#include <optional>

#include "api/operands/operand_set.hpp"
#include "api/submission/submission.hpp"

namespace sg {

// Throws sg::error that names the submission's stream and an operand in the memory of another device than the stream's.
void require_device_of_stream(const operand_set &operands, const checked_submit &order);

// The device of an operation whose operands are in host memory and in that of one device; empty: any. Throws sg::error
// that names two operands, or one and the stream, of different devices.
std::optional<device_index> device_of_operands(const operand_set &operands, const checked_submit &order);

// The program of a form on that device, or on the one that is the least busy.
std::shared_ptr<const program> plan_on(context &on, const form &what, plan_request request,
                                       std::optional<device_index> device);

// Whether a program that ran on one device suits a later submission with operands in the same memory spaces.
bool stays_on_device(const context &on, std::optional<device_index> device, const program &plan) noexcept;

}  // namespace sg
