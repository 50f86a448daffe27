// SPDX-License-Identifier: Apache-2.0
// Which of a context's devices run the stages of a pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "model/machine_model.hpp"

namespace sg {

using placement = std::vector<device_index>;  // by stage

// Where the stages are allowed to be.
struct placement_request {
  std::vector<std::optional<device_index>> fixed;  // by stage; empty: any of
  std::vector<device_index> among;                 // ascending
  std::map<device_index, std::int64_t> limits;     // bytes of memory of each of these
  std::size_t most_tried = 300;                    // placements
};

// The placement of least `seconds` (HUGE_VAL: impossible) of a batch. A stage that is not fixed is on the device of the
// stage before, or on one that no stage before has. All placements are tried if they are few, counting those once that
// differ in devices that are alike; otherwise equal groups that begin with any device, whose edges are then moved. More
// devices must promise less than 0.97 of the time of fewer, which is not even asked for where a batch takes less than a
// tenth of a millisecond.
placement best_placement(const placement_request &wanted, const machine_model &machine,
                         const std::function<double(const placement &)> &seconds);

}  // namespace sg
