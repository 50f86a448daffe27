// SPDX-License-Identifier: Apache-2.0
#include "format.hpp"

#include <cstdio>

namespace sg::cli {

static std::string scaled(double value, double step, const char *const *prefixes, const char *unit) {
  int i = 0;
  while (value >= step && prefixes[i + 1]) value /= step, ++i;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %s%s", value >= 100 ? 0 : value >= 10 ? 1 : 2, value, prefixes[i], unit);
  return text;
}

std::string format_seconds(double seconds) {
  static const char *const units[] = {"n", "u", "m", "", nullptr};
  return scaled(seconds * 1e9, 1000, units, "s");
}

std::string format_bytes(double bytes) {
  static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", nullptr};
  return scaled(bytes, 1024, units, "B");
}

std::string format_rate(double per_second, const char *unit) {
  static const char *const units[] = {"", "k", "M", "G", "T", "P", nullptr};
  return scaled(per_second, 1000, units, unit);
}

std::string format_wait(double seconds) {
  const auto minutes = static_cast<long long>(seconds / 60 + 0.5);
  if (seconds < 90) return std::to_string(static_cast<long long>(seconds + 0.5)) + " s";
  return minutes < 90 ? std::to_string(minutes) + " minutes" : std::to_string((minutes + 30) / 60) + " hours";
}

std::string format_fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace sg::cli
