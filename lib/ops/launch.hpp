// SPDX-License-Identifier: Apache-2.0
// Commands without views, which the runtime makes: nothing, and a graph of the backend.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

namespace sg {

struct operation;

namespace ops {

struct marker {  // does nothing; completes when the commands before it in its lane have completed
  static const operation entry;
};

struct graph {
  sg_backend_graph *launched = nullptr;
  std::int32_t commands = 0;  // recorded in it
  static const operation entry;
};

}  // namespace ops

}  // namespace sg
