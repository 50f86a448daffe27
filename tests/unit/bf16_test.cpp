// SPDX-License-Identifier: Apache-2.0
#include "base/bf16.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace sg {
namespace {

std::uint16_t rounded(float x) {
  std::uint16_t bits = 0;
  round_to_bf16(&bits, &x, 1);
  return bits;
}
float widened(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

TEST(bf16, numbers_round_to_nearest_even) {
  EXPECT_EQ(widened(rounded(1.0f)), 1.0f);
  EXPECT_EQ(widened(rounded(1 + 0x1p-8f)), 1.0f) << "a tie, down to even";
  EXPECT_EQ(widened(rounded(1 + 3 * 0x1p-8f)), 1 + 0x1p-6f) << "a tie, up to even";
  EXPECT_EQ(widened(rounded(1 + 0x1p-8f + 0x1p-20f)), 1 + 0x1p-7f);
  EXPECT_EQ(widened(rounded(-257)), -256.0f);
  EXPECT_EQ(rounded(-0.0f), 0x8000);
  EXPECT_EQ(widened(rounded(0x1p-149f)), 0.0f);
  EXPECT_EQ(widened(rounded(0x1p-133f)), 0x1p-133f);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(widened(rounded(infinity)), infinity);
  EXPECT_EQ(widened(rounded(-infinity)), -infinity);
  EXPECT_EQ(widened(rounded(std::numeric_limits<float>::max())), infinity);
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7fc00000u})
    EXPECT_TRUE(std::isnan(widened(rounded(std::bit_cast<float>(bits))))) << std::hex << bits;
}

// Long runs, at every alignment, give the results of single numbers.
TEST(bf16, runs_of_numbers_at_every_alignment) {
  std::vector<char> bytes(4 * 1100 + 3);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37 + i / 7);
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::vector<std::uint16_t> out(1100);
    round_to_bf16(out.data(), bytes.data() + shift, out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      float x;
      std::memcpy(&x, bytes.data() + shift + 4 * i, 4);
      ASSERT_EQ(out[i], rounded(x)) << i;
    }
  }
}

}  // namespace
}  // namespace sg
