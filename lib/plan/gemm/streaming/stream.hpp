// SPDX-License-Identifier: Apache-2.0
// Streams operands from the host: panels are copied in, GEMMs start as soon as their panels have arrived, finished
// panels of C are copied out at once. A layout defines the panels and the order of the GEMMs; the device memory decides
// how many panels are kept. Resident weights with a streamed A, no resident operand, and matrices larger than the
// device's memory are layouts of this one builder.
#pragma once

#include <vector>

#include "model/device_model.hpp"
#include "plan/gemm/resident/gemm_builder.hpp"
#include "plan/schedule/transfer.hpp"

namespace sg {

enum class residency : std::uint8_t {
  device,  // the operand is on the device; panels are parts of it
  whole,   // one buffer for all of it: a GEMM may span several panels
  slots,   // panels share slots; a GEMM uses one panel
};

struct stream_operand {
  residency how = residency::slots;
  std::vector<panel> panels;
  std::int64_t slots = 1;
  bool keeps_pitch = false;  // full columns keep the host's pitch on the device, padding included
  // Otherwise the columns on the device, unless they are short, begin at multiples of so many elements.
  std::int64_t ld_multiple = 1;
};

// Leading dimension of a panel on the device.
std::int64_t device_ld(const operand &x, const stream_operand &how, const block &where);

// Consecutive panels of an operand.
struct panel_range {
  std::int32_t first = 0, count = 1;
};

// One GEMM, or one scaling of C if there is no GEMM.
struct stream_step {
  range items{0, 1}, m, n, k;
  panel_range a, b, c;
  bool begins = true;  // first contribution to this part of C: applies beta
  bool ends = true;    // last contribution
  bool stores = true;  // the panels of C are final and are copied out
};

struct stream_layout {
  std::string name;
  stream_operand a, b, c;
  std::vector<stream_step> steps;
};

// lanes: compute lanes among which panels of C are distributed.
schedule build_stream(const problem &p, const stream_layout &layout, const device_model &model, int lanes);

}  // namespace sg
