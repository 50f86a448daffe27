// SPDX-License-Identifier: Apache-2.0
// Whether copies from one device's memory to another's bring what was there: some systems report success and copy
// nothing.
#pragma once

#include <string>

#include "devices/device.hpp"

namespace sg {

// Copies a pattern to `from`, from there to `to`, and back to the host. False: something else came back, or a copy
// failed; `reason` says what. Blocks. A device that stores no data passes.
bool copies_arrive(const device &from, const device &to, std::string &reason) noexcept;

}  // namespace sg
