// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule/loose_copies.hpp"

namespace sg {

std::vector<bool> loose_copies(const schedule &s) {
  std::vector<bool> loose(s.commands.size(), false);
  for (std::size_t i = 0; i < s.commands.size(); ++i) {
    const command &c = s.commands[i];
    for (std::uint32_t w = c.first_wait; w < c.first_wait + c.waits; ++w) {
      if (c.is<ops::copy_in>() && s.commands[s.waits[w]].is<ops::pack>()) loose[i] = true;
      if (in_order(c.where)) loose[s.waits[w]] = false;
    }
  }
  return loose;
}

}  // namespace sg
