// SPDX-License-Identifier: Apache-2.0
// Schedules of all-reduces: free of hazards, no wait too few, each byte over the links between devices as often as it
// must, within the memory limit.
#include "plan/layers/all_reduce.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <set>

#include "base/error.hpp"
#include "plan/planner.hpp"
#include "plan/schedule/hazard.hpp"
#include "problems.hpp"

namespace sg::test::of_all_reduce {
namespace {

// Devices of an 8-device machine, by vector.
using places = std::vector<int>;

std::shared_ptr<const schedule> planned(const places &at, std::int64_t elements, sg_dtype type = SG_DTYPE_F32,
                                        std::int64_t memory_limit = 0, const char *machine = "h200x8") {
  std::vector<device_index> devices;
  plan_request request;
  for (const int each : at) devices.push_back(device_index(each)), request.devices |= std::uint64_t{1} << each;
  request.device_count = std::popcount(request.devices);
  request.memory_limit = memory_limit;
  return make_plan(all_reduce_form(type, elements, devices), shipped_machine(machine), request);
}

const std::vector<places> &all_places() {
  static const std::vector<places> all = {
      {0, 1}, {1, 0}, {2, 5, 7}, {0, 1, 2, 3}, {0, 0, 1}, {3, 1, 3, 1}, {0, 1, 2, 3, 4, 5, 6, 7}, {4, 4, 4}, {6, 6}};
  return all;
}

TEST(all_reduce, is_free_of_hazards_and_stores_each_byte_once) {
  for (const places &at : all_places())
    for (const sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_BF16, SG_DTYPE_C128})
      for (const std::int64_t elements : {1, 63, 5000, 1'500'000, 40'000'001}) {
        const auto s = planned(at, elements, type);
        const auto found = check_hazards(*s);
        ASSERT_TRUE(found.empty()) << found.front().text;
        EXPECT_EQ(0, s->bytes_in + s->bytes_out);
        const std::set<int> devices(at.begin(), at.end());
        // Of each part of the elements, one device pulls what other devices have, and each other device the result.
        if (devices.size() == at.size()) {
          EXPECT_EQ(double(2 * (at.size() - 1) * std::size_t(elements * size_of(type))), s->bytes_peer);
        }
        if (devices.size() == 1) {
          EXPECT_EQ(0, s->bytes_peer);
        }
        EXPECT_GT(s->predicted_seconds, 0);
        EXPECT_LE(s->bound_seconds, s->predicted_seconds) << elements;
      }
}

TEST(all_reduce, uses_all_links_of_large_vectors) {
  for (const int count : {2, 4, 8}) {
    places at;
    for (int i = 0; i < count; ++i) at.push_back(i);
    const auto s = planned(at, 64 << 20);
    std::vector<double> received(8, 0);
    for (const command &c : s->commands)
      if (c.is<ops::copy_peer>()) received[number_of(c.where.device)] += bytes_of_copy(s->buffers, c);
    for (int i = 0; i < count; ++i) EXPECT_NEAR(s->bytes_peer / count, received[std::size_t(i)], 1e5) << i;
  }
}

// Large vectors take little more than their bytes over the links, small ones a few commands.
TEST(all_reduce, is_near_the_rate_of_its_links) {
  for (const char *machine : {"h200x8", "pcie4x2"}) {
    const places at = machine[0] == 'h' ? places{0, 1, 2, 3, 4, 5, 6, 7} : places{0, 1};
    const auto large = planned(at, 64 << 20, SG_DTYPE_F32, 0, machine);
    EXPECT_STREQ("links between devices", large->bound_limit);
    EXPECT_LT(large->predicted_seconds, 1.2 * large->bound_seconds) << machine;
    const auto small = planned(at, 1 << 10, SG_DTYPE_F32, 0, machine);
    EXPECT_EQ(2 * at.size(), small->commands.size());
  }
}

TEST(all_reduce, fits_the_memory_limit_or_says_what_it_needs) {
  for (const std::int64_t limit : {std::int64_t(64) << 20, std::int64_t(1) << 20}) {
    const auto s = planned({0, 1, 2}, 10'000'000, SG_DTYPE_F16, limit);
    EXPECT_TRUE(check_hazards(*s).empty());
    EXPECT_LE(s->device_bytes, limit);
  }
  try {
    planned({0, 1}, 1'000'000, SG_DTYPE_F32, 256);
    FAIL() << "no memory for a slice";
  } catch (const error &e) {
    EXPECT_EQ(SG_STATUS_OUT_OF_MEMORY, e.status());
    EXPECT_NE(nullptr, std::strstr(e.what(), "2 vectors of 1000000 elements")) << e.what();
  }
}

// As long as two slices of each vector are as fast as any; and one device never takes what all together may not.
TEST(all_reduce, takes_little_memory) {
  const auto large = planned({0, 1}, 2'000'000'000, SG_DTYPE_F32, 0, "h200x2");
  EXPECT_LE(large->device_bytes, 2 * 2 * (8'000'000'000 / 2 / 64) * 11 / 10);
  const std::int64_t limit = 1 << 20;
  const auto limited = planned({0, 1, 2, 3, 4, 5, 6, 7}, 400'000'000, SG_DTYPE_F32, limit);
  EXPECT_LE(limited->device_bytes, limit);
}

// Reachability by plain search, as the reference for "ordered".
bool ordered(const schedule &s, std::uint32_t from, std::uint32_t to) {
  std::vector<bool> reached(s.commands.size(), false);
  reached[from] = true;
  for (std::uint32_t i = from + 1; i <= to; ++i) {
    const command &c = s.commands[i];
    for (std::uint32_t j = from; j < i && !reached[i]; ++j) reached[i] = reached[j] && s.commands[j].where == c.where;
    for (std::uint32_t w = 0; w < c.waits; ++w) reached[i] = reached[i] || reached[s.waits[c.first_wait + w]];
  }
  return reached[to];
}

TEST(all_reduce, each_removed_wait_is_a_hazard) {
  for (const places &at : {places{0, 1}, {0, 1, 2}, {0, 0, 1, 1}}) {
    const auto s = planned(at, 2'000'000, SG_DTYPE_BF16, 1600 << 10);
    ASSERT_TRUE(check_hazards(*s).empty());
    int found = 0;
    for (std::uint32_t i = 0; i < s->commands.size(); ++i)
      for (std::uint32_t w = 0; w < s->commands[i].waits; ++w) {
        schedule defective = *s;
        command &changed = defective.commands[i];
        const std::uint32_t awaited = s->waits[changed.first_wait + w];
        std::swap(defective.waits[changed.first_wait + w], defective.waits[changed.first_wait + changed.waits - 1]);
        --changed.waits;
        const bool is_ordered = ordered(defective, awaited, i);
        EXPECT_EQ(!is_ordered, !check_hazards(defective).empty()) << i << " not after " << awaited;
        found += !is_ordered;
      }
    EXPECT_GT(found, 10);
  }
}

}  // namespace
}  // namespace sg::test::of_all_reduce
