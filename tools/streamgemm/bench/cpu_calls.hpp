// SPDX-License-Identifier: Apache-2.0
// The cost of one asynchronous call to the calling thread.
#pragma once

#include <vector>

#include "../library.hpp"
#include "peers.hpp"
#include "suite.hpp"

namespace sg::cli {

void measure_call_cost(bool quick, sg_context *context, const std::vector<peer> &peers, suite_run &out);

}  // namespace sg::cli
