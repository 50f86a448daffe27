// SPDX-License-Identifier: Apache-2.0
#include "base/copy_past_caches.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sg {
namespace {

// Every alignment of both ends, lengths around one and several lines; no byte is written outside the target.
TEST(copy_past_caches, is_memcpy) {
  constexpr std::size_t line = 64, most = 5 * line;
  constexpr char untouched = 0x5A;
  std::vector<char> from(most + 2 * line), to(most + 2 * line);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 37 + i / 251);
  for (std::size_t out = 0; out < line; ++out)
    for (std::size_t in : {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{63}})
      for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, line - 1, line, line + 1, 2 * line, most - 1, most}) {
        std::fill(to.begin(), to.end(), untouched);
        copy_past_caches(to.data() + out, from.data() + in, bytes);
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool inside = i >= out && i < out + bytes;
          ASSERT_EQ(inside ? from[in + i - out] : untouched, to[i])
              << out << ", " << in << ", " << bytes << " at " << i;
        }
      }
}

}  // namespace
}  // namespace sg
