// SPDX-License-Identifier: Apache-2.0
// A struct that has grown: what an older, this and a newer program's struct give and get.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "api/entry.hpp"

namespace sg::test {
namespace {

struct grown {
  std::size_t struct_size;
  std::int64_t first;
  std::int64_t pair[2];
  std::int64_t later;
};
struct newer {
  grown known;
  std::int64_t unknown;
};

}  // namespace
}  // namespace sg::test

namespace sg {

template <>
struct public_struct<test::grown> {
  static constexpr test::grown initial = {sizeof(test::grown), 1, {2, 3}, 4};
  static constexpr std::array<reserved_field, 0> reserved{};
  static constexpr std::array<std::size_t, 1> earlier_sizes{offsetof(test::grown, later)};
};

namespace test {
namespace {

constexpr std::size_t older_size = offsetof(grown, later);

TEST(struct_sizes, an_older_programs_later_members_have_their_defaults) {
  grown given = {older_size, 5, {6, 7}, -1};  // what is behind an older program's struct is not a member
  const grown read = options_of(&given, "options");
  EXPECT_EQ(sizeof(grown), read.struct_size);
  EXPECT_EQ(5, read.first);
  EXPECT_EQ(7, read.pair[1]);
  EXPECT_EQ(4, read.later);
  grown room;
  EXPECT_EQ(4, in_full(given, room, "options").later);
  write_out(&given, grown{0, 8, {9, 10}, 11}, "out");
  EXPECT_EQ(older_size, given.struct_size);
  EXPECT_EQ(10, given.pair[1]);
  EXPECT_EQ(-1, given.later) << "behind an older program's struct";
}

TEST(struct_sizes, this_programs_struct_is_whole) {
  grown given = {sizeof(grown), 5, {6, 7}, 8}, room;
  EXPECT_EQ(8, options_of(&given, "options").later);
  EXPECT_EQ(&given, &in_full(given, room, "options"));
  write_out(&given, grown{0, 8, {9, 10}, 11}, "out");
  EXPECT_EQ(11, given.later);
}

TEST(struct_sizes, a_newer_programs_unknown_members_are_zero_or_refused) {
  newer given = {{sizeof(newer), 5, {6, 7}, 8}, 0};
  EXPECT_EQ(8, options_of(&given.known, "options").later);
  for (std::size_t i = 0; i < sizeof given.unknown; ++i) {
    given.unknown = std::int64_t{3} << 8 * i;
    try {
      options_of(&given.known, "options");
      ADD_FAILURE() << "byte " << i << " is ignored";
    } catch (const error &e) {
      EXPECT_EQ(SG_STATUS_UNSUPPORTED, e.status());
      EXPECT_NE(nullptr, std::strstr(e.what(), ("its byte " + std::to_string(sizeof(grown) + i) + " is 3").c_str()))
          << e.what();
    }
  }
  write_out(&given.known, grown{0, 8, {9, 10}, 11}, "out");
  EXPECT_EQ(11, given.known.later);
  EXPECT_EQ(std::int64_t{3} << 56, given.unknown);
}

TEST(struct_sizes, those_of_no_release_are_refused) {
  for (const std::size_t size : {0, 8, 16, 24, 28, 36, 44, 65544}) {
    grown given = {size, 5, {6, 7}, 8};
    EXPECT_FALSE(is_size_of<grown>(size)) << size;
    EXPECT_THROW(options_of(&given, "options"), error) << size;
    EXPECT_THROW(write_out(&given, given, "out"), error) << size;
  }
  for (const std::size_t size : {32, 40, 48, 65536}) EXPECT_TRUE(is_size_of<grown>(size)) << size;
}

}  // namespace
}  // namespace test
}  // namespace sg
