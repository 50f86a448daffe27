// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule/out_of_order_copies.hpp"

namespace sg {

std::vector<bool> out_of_order_copies(const schedule &s) {
  std::vector<bool> is_out_of_order(s.commands.size(), false);
  for (std::size_t i = 0; i < s.commands.size(); ++i) {
    const command &c = s.commands[i];
    for (std::uint32_t w = c.first_wait; w < c.first_wait + c.waits; ++w) {
      if (c.is<ops::copy_in>() && s.commands[s.waits[w]].is<ops::pack>()) is_out_of_order[i] = true;
      if (in_order(c.where)) is_out_of_order[s.waits[w]] = false;
    }
  }
  return is_out_of_order;
}

}  // namespace sg
