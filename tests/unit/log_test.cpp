// SPDX-License-Identifier: Apache-2.0
// Parts of the log: how a value of SG_LOG is parsed, and how text is escaped.
#include "base/log.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sg {
namespace {

std::string escaped(const std::string &text, std::size_t size = 100) {
  std::string out(size, '#');
  const std::size_t length = escape_for_log(out.data(), size, text.c_str());
  EXPECT_LT(length, size);
  EXPECT_EQ('\0', out[length]);
  return out.substr(0, length);
}

TEST(log, plain_text_stays) {
  EXPECT_EQ("", escaped(""));
  EXPECT_EQ("a b\"'%", escaped("a b\"'%"));
  EXPECT_EQ("q \u00b7 k \u20ac \U0001d7d9", escaped("q \u00b7 k \u20ac \U0001d7d9"));
}

TEST(log, control_characters_are_escaped) {
  EXPECT_EQ("a\\x0ab\\x0d\\x1b[31m\\x7f\\x01", escaped("a\nb\r\x1b[31m\x7f\x01"));
  EXPECT_EQ("\\x5cx0a", escaped("\\x0a")) << "a literal that looks escaped is escaped again";
  EXPECT_EQ("\\xc2\\x9b31m", escaped("\u009b31m")) << "CSI as one character";
  EXPECT_EQ("\\xe2\\x80\\xa8", escaped("\u2028")) << "a line separator";
}

TEST(log, what_is_not_utf8_is_escaped) {
  EXPECT_EQ("\\x9b\\xff\\xc0\\xaf", escaped("\x9b\xff\xc0\xaf"));
  EXPECT_EQ("\\xe2\\x82", escaped("\xe2\x82")) << "the end of the text within a character";
  EXPECT_EQ("\\xed\\xa0\\x80", escaped("\xed\xa0\x80")) << "a surrogate";
  EXPECT_EQ("\\xf4\\x90\\x80\\x80", escaped("\xf4\x90\x80\x80")) << "beyond Unicode";
  EXPECT_EQ("\\xf0\\x82\\x82\\xac", escaped("\xf0\x82\x82\xac")) << "too long a form";
}

TEST(log, long_text_is_cut_within_its_room) {
  EXPECT_EQ("123456789", escaped("123456789", 10));
  EXPECT_EQ("123456...", escaped("1234567890", 10));
  for (std::size_t size = 4; size < 40; ++size) {
    const std::string cut = escaped("ab\n\u20accd\x1b" + std::string(40, 'x'), size);
    EXPECT_EQ("...", cut.substr(cut.size() - 3)) << size;
    const std::string whole = escaped("ab\n\u20accd\x1b" + std::string(40, 'x'));
    EXPECT_EQ(whole.substr(0, cut.size() - 3), cut.substr(0, cut.size() - 3)) << size;
  }
}

std::uint32_t bits_of(const char *value) {
  std::uint32_t bits = 1;
  EXPECT_TRUE(parse_log_variable(value, bits)) << value;
  return bits;
}

TEST(log, a_level_includes_those_above_it) {
  EXPECT_EQ(0u, bits_of("off"));
  std::uint32_t all = 0;
  for (const auto level : {log_level::error, log_level::warn, log_level::info, log_level::debug}) {
    for (const auto area : {log_area::plan, log_area::plugin, log_area::memory, log_area::fallback, log_area::job})
      all |= log_bit(level, area);
    const char *const names[] = {"error", "warn", "info", "debug"};
    EXPECT_EQ(all, bits_of(names[static_cast<int>(level)]));
  }
  EXPECT_NE(log_unread, all);
}

TEST(log, areas_restrict_it) {
  EXPECT_EQ(log_bit(log_level::error, log_area::job), bits_of("error,job"));
  EXPECT_EQ(log_bit(log_level::error, log_area::plan) | log_bit(log_level::warn, log_area::plan) |
                log_bit(log_level::error, log_area::memory) | log_bit(log_level::warn, log_area::memory),
            bits_of("warn,plan,memory"));
  EXPECT_EQ(bits_of("info"), bits_of("info,plan,plugin,memory,fallback,job"));
  EXPECT_EQ(0u, bits_of("off,plan"));
}

TEST(log, malformed_values) {
  for (const char *value : {"", "Info", "verbose", "plan", ",plan", "info,", "info,,plan", "info,planning", "info plan",
                            " info", "info,plan,", "1"}) {
    std::uint32_t bits = 1;
    EXPECT_FALSE(parse_log_variable(value, bits)) << value;
  }
  std::string most = "info";
  while (most.size() + 5 <= 200) most += ",plan";
  EXPECT_EQ(bits_of("info,plan"), bits_of(most.c_str()));
  std::uint32_t bits = 1;
  EXPECT_FALSE(parse_log_variable((most + ",plan").c_str(), bits));
}

}  // namespace
}  // namespace sg
