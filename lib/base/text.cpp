// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <cstdint>
#include <cstring>

namespace sg {

namespace {

// Bytes of the character that begins here, RFC 3629; 0: none does.
std::size_t length_of(const char *text) noexcept {
  const auto at = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = at(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  for (std::size_t i = 1; i < length; ++i)  // ends before a NUL
    if ((at(i) & 0xc0) != 0x80) return 0;
  const bool too_long = (first == 0xe0 && at(1) < 0xa0) || (first == 0xf0 && at(1) < 0x90);
  const bool surrogate = first == 0xed && at(1) > 0x9f, too_large = first == 0xf4 && at(1) > 0x8f;
  return too_long || surrogate || too_large ? 0 : length;
}

bool is_noncharacter(const char *text, std::size_t length) noexcept {
  return length == 3 && (std::memcmp(text, "\xef\xbf\xbe", 3) == 0 || std::memcmp(text, "\xef\xbf\xbf", 3) == 0);
}

}  // namespace

std::size_t copy_utf8(char *out, std::size_t size, const char *text) noexcept {
  std::size_t used = 0;
  while (*text != '\0') {
    const std::size_t length = length_of(text);
    const bool replaced = length == 0 || is_noncharacter(text, length);
    const std::size_t written = replaced ? 1 : length;
    if (used + written >= size) break;
    if (replaced)
      out[used] = '?';
    else
      std::memcpy(out + used, text, length);
    used += written;
    text += length == 0 ? 1 : length;
  }
  out[used] = '\0';
  return used;
}

std::string printable(std::string_view text, std::size_t most) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x20 && byte < 0x7f;
    if (out.size() + (plain ? 1 : 4) > most) return out + "...";
    if (plain)
      out += c;
    else
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

}  // namespace sg
