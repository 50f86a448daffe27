// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/moved.hpp"

namespace sg {

void address_moves::add(const char *from, std::int64_t bytes, char *to) {
  if (bytes > 0 && from != to) moves_.push_back({from, bytes, to});
}

const address_move *address_moves::move_of(const char *address) const noexcept {
  for (const address_move &each : moves_)
    if (address >= each.from && address < each.from + each.bytes) return &each;
  return nullptr;
}

char *address_moves::moved(char *address) const noexcept {
  const address_move *const found = move_of(address);
  return found ? found->to + (address - found->from) : address;
}

submission address_moves::moved(const submission &recorded) const {
  submission made = recorded;
  made.operands = recorded.operands.copy();
  made.operands.each_parameter([this](parameter_address &each) {
    if (each.base) each.base = moved(each.base);
  });
  for (std::vector<char *> &array : made.operands.pointers)
    for (char *&each : array) each = moved(each);
  if (made.kind == work_kind::copy) {
    made.copy.dst = moved(static_cast<char *>(made.copy.dst));
    made.copy.src = moved(const_cast<char *>(static_cast<const char *>(made.copy.src)));
  }
  for (access &each : made.accesses) each.bytes = each.bytes.at(moved(reinterpret_cast<char *>(each.bytes.lo)));
  return made;
}

}  // namespace sg
