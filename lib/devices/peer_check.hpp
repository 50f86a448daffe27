// SPDX-License-Identifier: Apache-2.0
// Whether copies from one device's memory to another's bring what was there: some systems report success and copy
// nothing.
#pragma once

#include <string>

#include "devices/device.hpp"

namespace sg {

enum class arrival {
  right,
  wrong,   // something else came back
  unknown  // a copy failed, or there is no memory for it
};

// Copies a pattern to `from`, from there to `to`, and back to the host; `reason` says what is not right. Blocks. A
// device that stores no data passes.
arrival check_copies(const device &from, const device &to, std::string &reason) noexcept;

// Bytes per second of copies from one device's memory to another's, timed for less than a millisecond over a fast link;
// 0: a copy failed, or there is no memory for it. Blocks.
double rate_of_copies(const device &from, const device &to) noexcept;

}  // namespace sg
