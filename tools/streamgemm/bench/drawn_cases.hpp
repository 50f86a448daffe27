// SPDX-License-Identifier: Apache-2.0
// GEMMs of drawn shapes, types, transposes, leading dimensions and memories, by a seed.
#pragma once

#include <vector>

#include "gpu_operands.hpp"
#include "suite.hpp"

namespace sg::cli {

std::vector<gpu_case> drawn_cases(const suite_request &request);

// In the device's memory: one of two has the sizes of a layer of a network.
std::vector<gpu_case> drawn_resident_cases(const suite_request &request);

// By memory ("pinned", "pageable", "mixed"; "device" of `resident` rows): over the bound and over the fastest peer the
// geometric mean, the 95th percentile and the worst ratio, of the rows of a record. On simulated devices the time is
// the device's own.
nlohmann::ordered_json drawn_summary(const nlohmann::ordered_json &rows, bool virtual_time, bool resident);

}  // namespace sg::cli
