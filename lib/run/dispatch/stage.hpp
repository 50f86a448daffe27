// SPDX-License-Identifier: Apache-2.0
// Moves data between pageable memory and pinned slots: the work of a staging worker.
#pragma once

#include "run/program/inflight_command.hpp"

namespace sg {

// Executes a command that packs or unpacks, and reports its completion to its engine. On a staging worker's thread.
void stage(inflight_command &f) noexcept;

}  // namespace sg
