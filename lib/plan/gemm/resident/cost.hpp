// SPDX-License-Identifier: Apache-2.0
// Cost of a problem on a device model, and a lower bound of its time there. In seconds. Costs of single commands: ops/.
#pragma once

#include <span>

#include "model/device_model.hpp"
#include "ops/command.hpp"
#include "plan/gemm/resident/problem.hpp"

namespace sg {

// Minimum bytes over the link in each direction.
struct link_bytes {
  double in = 0, out = 0;
};
link_bytes bytes_over_link(const problem &p);

// Time of the link alone: max(bytes in / link in, bytes out / link out, all bytes / both).
double link_seconds(const device_model &model, const problem &p);

// The least time that the model's rates allow, and the limit that binds: a literal.
struct time_bound {
  double seconds = 0;
  const char *limit = "";
};

// max(bytes in / link in, bytes out / link out, all bytes / both, flops / rate) of one problem, or of several together.
time_bound bound_and_limit(const device_model &model, std::span<const problem> problems);
double bound_seconds(const device_model &model, std::span<const problem> problems);

gemm_shape shape_of_whole(const problem &p);  // as one command

}  // namespace sg
