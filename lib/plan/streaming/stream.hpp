// SPDX-License-Identifier: Apache-2.0
// Streams operands from the host: panels come in, products go out as soon as their panels are there, finished panels of
// C leave at once. A layout says which panels there are and in which order products are formed; how much device memory
// there is decides how many panels are kept. Weights that stay while A streams, nothing resident, and matrices larger
// than the device's memory are all this builder under other layouts.
#pragma once

#include <vector>

#include "plan/gemm/schedule_builder.hpp"
#include "plan/model/device_model.hpp"
#include "plan/streaming/transfer.hpp"

namespace sg {

enum class residency : std::uint8_t {
  device,  // the operand lies on the device; panels are only names for its parts
  whole,   // one buffer for all of it: a product may span several panels
  slots,   // panels share slots; a product uses one panel
};

struct stream_operand {
  residency how = residency::slots;
  std::vector<panel> panels;
  std::int64_t slots = 1;
  bool keeps_pitch = false;  // whole columns lie on the device as they do on the host, padding between them and all
};

// Leading dimension of a panel's place on the device.
std::int64_t device_ld(const operand &x, const stream_operand &how, const block &where);

// Consecutive panels of an operand.
struct panel_range {
  std::int32_t first = 0, count = 1;
};

// One product (or one scaling of C, where there is no product).
struct stream_step {
  range items{0, 1}, m, n, k;
  panel_range a, b, c;
  bool begins = true;  // nothing was added to this part of C before: beta is applied
  bool ends = true;    // nothing will be
  bool stores = true;  // the panels of C are final
};

struct stream_layout {
  std::string name;
  stream_operand a, b, c;
  std::vector<stream_step> steps;
};

// lanes: compute lanes that panels of C are dealt to.
schedule build_stream(const problem &p, const stream_layout &layout, const device_model &model, int lanes);

}  // namespace sg
