// SPDX-License-Identifier: Apache-2.0
// How much device memory a streaming layout takes, and how many panels are kept in what there is.
#pragma once

#include "plan/streaming/stream.hpp"

namespace sg {

// Elements between items of a panel's slot, and bytes of a slot: those of the largest panel.
std::int64_t slot_item_elements(const operand &x, const stream_operand &s);
std::int64_t slot_bytes(const operand &x, const stream_operand &s);
// Elements between items of an operand that is held whole, and bytes of all distinct items.
std::int64_t whole_item_elements(const operand &x, const stream_operand &s);
std::int64_t whole_bytes(const operand &x, const stream_operand &s, std::int64_t batch);
// Bytes of the copy of a bias on the host.
std::int64_t bias_bytes(const problem &p);

// Sums of products that C's own type is too narrow for are kept beside it until they are complete, in so many places.
inline constexpr int accumulators = 2;
bool needs_accumulators(const problem &p, const stream_layout &layout);
std::int64_t accumulator_bytes(const problem &p, const stream_layout &layout);

// Chooses the number of slots of each operand that has them: as many as are useful and fit; padding stays on the host
// where it does not fit. Returns the device memory needed, which exceeds `limit` when not even one slot each fits.
std::int64_t fit_slots(const problem &p, stream_layout &layout, std::int64_t limit);

}  // namespace sg
