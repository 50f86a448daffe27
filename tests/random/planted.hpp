// SPDX-License-Identifier: Apache-2.0
// Which defect a library with planted defects has (plant.py).
#pragma once

#include <cstdlib>
#include <cstring>

namespace sg {

inline bool is_planted(const char *defect) {
  static const char *const planted = std::getenv("SG_PLANTED");
  return planted && std::strcmp(planted, defect) == 0;
}

}  // namespace sg
