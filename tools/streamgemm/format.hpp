// SPDX-License-Identifier: Apache-2.0
// Numbers for people to read, in SI units of three or four digits.
#pragma once

#include <cstdint>
#include <string>

namespace sg::cli {

std::string format_seconds(double seconds);                    // "1.24 ms"
std::string format_bytes(double bytes);                        // "512 MiB"
std::string format_rate(double per_second, const char *unit);  // "51.2 Tflop/s" with unit "flop/s"
std::string format_wait(double seconds);                       // "40 s", "3 minutes"
std::string format_fixed(double value, int digits);

}  // namespace sg::cli
