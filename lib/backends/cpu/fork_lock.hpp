// SPDX-License-Identifier: Apache-2.0
// Held where a fork must not come: while a library underneath may hold a lock of its own, or does something for the
// first time. In the child, which has no thread to go on with it, it would stay so for ever.
#pragma once

#include <mutex>

namespace sg::cpu {

// A fork waits for it. Not recursive.
std::mutex &fork_lock() noexcept;

}  // namespace sg::cpu
