// SPDX-License-Identifier: Apache-2.0
#include "plan/loose_copies.hpp"

namespace sg {

std::vector<bool> loose_copies(const schedule &s) {
  std::vector<bool> loose(s.commands.size(), false);
  for (std::size_t i = 0; i < s.commands.size(); ++i) {
    const command &c = s.commands[i];
    for (std::uint32_t w = c.first_wait; w < c.first_wait + c.waits; ++w) {
      const command_kind before = s.commands[s.waits[w]].kind;
      if (c.kind == command_kind::copy_in && before == command_kind::pack) loose[i] = true;
      if (in_order(c.where)) loose[s.waits[w]] = false;
    }
  }
  return loose;
}

}  // namespace sg
