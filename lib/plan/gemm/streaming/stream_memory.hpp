// SPDX-License-Identifier: Apache-2.0
// Device memory of a streaming layout, and the number of panels kept within a limit.
#pragma once

#include "plan/gemm/streaming/stream.hpp"

namespace sg {

// Elements between items of a panel's slot, and bytes of a slot: those of the largest panel.
std::int64_t slot_item_elements(const operand &x, const stream_operand &s);
std::int64_t slot_bytes(const operand &x, const stream_operand &s);
// Elements between items of a complete operand, and bytes of all distinct items.
std::int64_t whole_item_elements(const operand &x, const stream_operand &s);
std::int64_t whole_bytes(const operand &x, const stream_operand &s, std::int64_t batch);
// Bytes of the device copy of a host bias.
std::int64_t bias_bytes(const problem &p);

// Buffers for accumulators, if C's own type is too narrow for the sums.
inline constexpr int accumulators = 2;
bool needs_accumulators(const problem &p, const stream_layout &layout);
std::int64_t accumulator_bytes(const problem &p, const stream_layout &layout);

// Chooses the number of slots of each operand: as many as are useful and fit; padding is not copied if it does not fit.
// Returns the device memory needed, which exceeds `limit` if not even one slot each fits.
std::int64_t fit_slots(const problem &p, stream_layout &layout, std::int64_t limit);

}  // namespace sg
