// SPDX-License-Identifier: Apache-2.0
// The hazard check itself: it finds every planted defect, and nothing else.
#include "plan/schedule/hazard.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "plan/gemm/resident/direct.hpp"
#include "plan/gemm/resident/split.hpp"
#include "plan/gemm/streaming/stream_layouts.hpp"
#include "plan/gemm/streaming/stream_memory.hpp"
#include "plan/schedule/out_of_order_copies.hpp"
#include "problems.hpp"

namespace sg::test {
namespace {

schedule streamed(std::int64_t limit, sg_memory_kind host = SG_MEMORY_PINNED) {
  problem_form f;
  f.m = 40, f.n = 40, f.k = 40;
  f.beta_zero = false;
  f.a = f.b = f.c = host;
  const problem p = make(f);
  stream_layout layout = tile_layout(p, {16, 16, 16, axis::m});
  fit_slots(p, layout, limit);
  return build_stream(p, layout, shipped_model("h200"), 2);
}

// Pageable panels of several chunks, staged in one worker's three slots.
schedule streamed_by_chunks() {
  problem_form f;
  f.m = 700, f.n = 1400, f.k = 700;
  f.in = f.out = SG_DTYPE_F64;
  f.a = f.b = f.c = SG_MEMORY_PAGEABLE;
  const problem p = make(f);
  stream_layout layout = tile_layout(p, {700, 700, 700, axis::m});
  fit_slots(p, layout, std::int64_t(13) << 20);
  device_model model = shipped_model("h200");
  model.staging_workers = 1;
  return build_stream(p, layout, model, 2);
}

// Reachability by plain search, as the reference for "ordered".
bool ordered(const schedule &s, std::uint32_t from, std::uint32_t to) {
  const std::vector<bool> loose = out_of_order_copies(s);
  std::vector<bool> reached(s.commands.size(), false);
  reached[from] = true;
  for (std::uint32_t i = from + 1; i <= to; ++i) {
    for (std::uint32_t j = from; j < i; ++j)
      if (reached[j] && s.commands[j].where == s.commands[i].where && in_order(s.commands[i].where) && !loose[i])
        reached[i] = true;
    const command &c = s.commands[i];
    for (std::uint32_t w = 0; w < c.waits; ++w) reached[i] = reached[i] || reached[s.waits[c.first_wait + w]];
  }
  return reached[to];
}

schedule without_wait(schedule s, std::uint32_t index, std::uint32_t wait) {
  command &c = s.commands[index];
  std::swap(s.waits[c.first_wait + wait], s.waits[c.first_wait + c.waits - 1]);
  --c.waits;
  return s;
}

// Each wait guards memory, so that removing one that no other wait implies is a race.
void expect_every_needed_wait_is_missed(const schedule &s) {
  ASSERT_TRUE(check_hazards(s).empty());
  int found = 0, dropped = 0;
  for (std::uint32_t i = 0; i < s.commands.size(); ++i)
    for (std::uint32_t w = 0; w < s.commands[i].waits; ++w) {
      const schedule defective = without_wait(s, i, w);
      const std::uint32_t awaited = s.waits[s.commands[i].first_wait + w];
      const bool still_ordered = ordered(defective, awaited, i);
      const bool hazardous = !check_hazards(defective).empty();
      EXPECT_EQ(hazardous, !still_ordered) << "command " << i << " not after " << awaited;
      found += hazardous;
      ++dropped;
    }
  EXPECT_GT(found, dropped / 2);
}

TEST(hazard, each_removed_wait_is_reported) {
  for (sg_memory_kind host : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE})
    for (std::int64_t limit : {std::int64_t(3 * 1024), std::int64_t(9 * 1024), std::int64_t(1) << 30})
      expect_every_needed_wait_is_missed(streamed(limit, host));
}

TEST(hazard, each_removed_wait_between_chunks_is_reported) {
  const schedule s = streamed_by_chunks();
  const std::vector<bool> loose = out_of_order_copies(s);
  EXPECT_GE(std::count(loose.begin(), loose.end(), true), 3);
  expect_every_needed_wait_is_missed(s);
}

// The last chunk of a panel, which its GEMM waits for, is after all the others; an out-of-order copy is after none.
TEST(hazard, out_of_order_copies_are_unordered) {
  const schedule s = streamed_by_chunks();
  const std::vector<bool> loose = out_of_order_copies(s);
  const auto first = std::uint32_t(std::find(loose.begin(), loose.end(), true) - loose.begin());
  const auto second = std::uint32_t(std::find(loose.begin() + first + 1, loose.end(), true) - loose.begin());
  ASSERT_LT(second, s.commands.size());
  const auto same_place = [&](std::uint32_t later) {
    schedule moved = s;
    moved.commands[later].views[ops::copy_in::to].buffer = s.commands[first].views[ops::copy_in::to].buffer;
    moved.commands[later].views[ops::copy_in::to].offset = s.commands[first].views[ops::copy_in::to].offset;
    return moved;
  };
  const auto meets = [&](const std::vector<hazard> &all, std::uint32_t later) {
    return std::any_of(all.begin(), all.end(), [&](const hazard &h) { return h.first == first && h.second == later; });
  };
  const auto last = std::uint32_t(
      std::find_if(s.commands.begin() + second, s.commands.end(),
                   [&](const command &c) { return c.is<ops::copy_in>() && !loose[&c - s.commands.data()]; }) -
      s.commands.begin());
  ASSERT_LT(last, s.commands.size());
  EXPECT_TRUE(meets(check_hazards(same_place(second)), second));
  EXPECT_FALSE(meets(check_hazards(same_place(last)), last));
}

TEST(hazard, children_on_two_lanes_must_not_overlap) {
  problem_form f;
  f.m = 32;
  schedule s = build_grid_split(make(f), {2, 1, 1}, 2);
  ASSERT_EQ(s.commands.size(), 2u);
  EXPECT_TRUE(check_hazards(s).empty());
  s.commands[1].views[ops::gemm::c].offset -= 4;  // one row up: into the other child
  const auto hazards = check_hazards(s);
  ASSERT_EQ(hazards.size(), 1u);
  EXPECT_EQ(hazards[0].first, 0u);
  EXPECT_EQ(hazards[0].second, 1u);
  EXPECT_NE(hazards[0].text.find("0 and 1"), std::string::npos);
}

TEST(hazard, adjacent_rows_do_not_overlap) {
  // Row tiles interleave in memory: their byte ranges overlap, their elements do not.
  problem_form f;
  f.m = 64, f.n = 64, f.pad = 5;
  EXPECT_TRUE(check_hazards(build_grid_split(make(f), {4, 1, 1}, 4)).empty());
  f.batch = 3;
  for (batch_form form : {batch_form::strided, batch_form::interleaved, batch_form::pointers}) {
    f.batching = form;
    EXPECT_TRUE(check_hazards(build_grid_split(make(f), {4, 2, 1}, 4)).empty());
    EXPECT_TRUE(check_hazards(build_batch_split(make(f), 3, 3)).empty());
  }
}

// Two writes of the same memory on two lanes are a hazard if and only if they share a byte.
TEST(hazard, interleaved_items_and_columns_are_compared_exactly) {
  std::mt19937 random(5);
  const auto below = [&](std::int64_t most) { return std::int64_t(random() % std::uint32_t(most)); };
  for (int turn = 0; turn < 20000; ++turn) {
    const problem p;
    gemm_builder builder({&p, 1});
    const std::int32_t memory = builder.add_device_buffer(SG_DTYPE_F32, 4096);
    const std::int64_t pitch = 1 + below(12), other = below(4) == 0 ? 1 + below(12) : pitch;
    view parts[2];
    std::set<std::int64_t> elements[2];
    for (std::uint16_t i = 0; i < 2; ++i) {
      view &v = parts[i];
      const std::int64_t stride = 1 + below(40);
      v = {builder.add_alias(memory, SG_DTYPE_F32, 4 * stride),
           below(3),
           1 + below(3),
           4 * below(60),
           i == 0 ? pitch : other,
           0,
           1 + below(5)};
      v.rows = 1 + below(v.ld);
      builder.add(builder.scale(v, scalar_role::zero, i));
      for (std::int64_t item = v.item; item < v.item + v.items; ++item)
        for (std::int64_t col = 0; col < v.cols; ++col)
          for (std::int64_t row = 0; row < v.rows; ++row)
            elements[i].insert(item * stride + v.offset / 4 + col * v.ld + row);
    }
    const bool share =
        std::any_of(elements[0].begin(), elements[0].end(), [&](auto x) { return elements[1].count(x); });
    const bool found = !check_hazards(builder.finish("two")).empty();
    ASSERT_EQ(share, found) << turn;
  }
}

TEST(hazard, items_of_one_batch_are_distinguished) {
  problem_form f;
  f.batch = 4, f.batching = batch_form::pointers;
  schedule s = build_batch_split(make(f), 2, 2);
  EXPECT_TRUE(check_hazards(s).empty());
  s.commands[1].views[ops::gemm::c].item = s.commands[1].views[ops::gemm::a].item =
      s.commands[1].views[ops::gemm::b].item = 1;  // items 1, 2 beside 0, 1
  EXPECT_EQ(check_hazards(s).size(), 1u);
}

TEST(hazard, buffers_that_share_bytes_overlap) {
  schedule s = streamed(std::int64_t(1) << 30);
  std::vector<buffer *> own;
  for (buffer &b : s.buffers)
    if (b.kind == buffer_kind::device) own.push_back(&b);
  ASSERT_GT(own.size(), 2u);
  own.back()->offset = own.front()->offset;
  EXPECT_FALSE(check_hazards(s).empty());
}

TEST(hazard, wrong_form_is_reported) {
  problem_form f;
  const schedule good = build_depth_split(make(f), 2, 2, 1);
  ASSERT_TRUE(check_hazards(good).empty());
  const auto finds = [&](auto &&plant) {
    schedule s = good;
    plant(s);
    const auto hazards = check_hazards(s);
    return !hazards.empty() && hazards[0].first == hazards[0].second;
  };
  EXPECT_TRUE(finds([](schedule &s) { s.waits[0] = 2; }));  // itself
  EXPECT_TRUE(finds([](schedule &s) { s.commands[2].first_wait = 1000; }));
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].views[ops::gemm::c].buffer = 77; }));
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].views[ops::gemm::b].buffer = -1; }));
  EXPECT_TRUE(
      finds([](schedule &s) { s.commands[1].views[ops::gemm::a].offset += 4; }));  // past the end of A's footprint
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].views[ops::gemm::a].offset = -4; }));
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].as<ops::gemm>()->k += 1; }));  // shapes
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].as<ops::gemm>()->op_a = SG_TRANSPOSE_T; }));
  EXPECT_TRUE(finds([](schedule &s) { s.commands[2].views[ops::reduce::parts].rows -= 1; }));
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].views[ops::gemm::c].rows = 0; }));
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].views[ops::gemm::a].ld = 1; }));
  EXPECT_TRUE(finds([](schedule &s) { s.device_bytes -= 256; }));
  EXPECT_TRUE(finds([](schedule &s) { s.buffers[operands_of_problem].offset = 8; }));  // not aligned
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].views[ops::gemm::a].items = 2; }));
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].views[ops::gemm::c].mode = access_mode::read; }));
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].as<ops::gemm>()->beta = scalar_role::one; }));  // C is read
  EXPECT_TRUE(finds([](schedule &s) { s.commands[0].what = ops::copy_in(); }));  // a copy with three views
}

TEST(hazard, a_bias_in_a_wrong_form_is_reported) {
  problem_form f;
  f.batch = 3, f.end = ending::own_column_bias_relu;
  const schedule good = build_batch_split(make(f), 2, 2);
  ASSERT_TRUE(check_hazards(good).empty());
  const auto finds = [&](auto &&plant) {
    schedule s = good;
    plant(s.commands[0].views[ops::gemm::bias]);
    return !check_hazards(s).empty();
  };
  EXPECT_TRUE(finds([](view &bias) { bias.cols -= 1; }));
  EXPECT_TRUE(finds([](view &bias) { bias.rows = 2, bias.ld = 2; }));
  EXPECT_TRUE(finds([](view &bias) { bias.ld = 2; }));
  EXPECT_TRUE(finds([](view &bias) { bias.items = 2; }));
  EXPECT_TRUE(finds([](view &bias) { bias.item = 3; }));
  EXPECT_TRUE(finds([](view &bias) { bias.buffer = 77; }));
  EXPECT_TRUE(finds([](view &bias) { bias.offset = -4; }));
}

// A GEMM that reads its bias before it has arrived.
TEST(hazard, a_bias_that_is_not_waited_for_is_reported) {
  problem_form f;
  f.bias = SG_MEMORY_PINNED, f.end = ending::row_bias;
  const problem p = make(f);
  stream_layout layout = tile_layout(p, {p.m, p.n, p.k, axis::m});
  fit_slots(p, layout, 1 << 20);
  schedule s = build_stream(p, layout, shipped_model("h200"), 2);
  ASSERT_TRUE(check_hazards(s).empty());
  ASSERT_EQ(s.commands.size(), 2u);
  s.commands[1].waits = 0;
  EXPECT_EQ(check_hazards(s).size(), 1u);
}

TEST(hazard, thousands_of_commands_take_milliseconds) {
  problem_form f;
  f.m = f.n = 8192, f.k = 4096;
  f.a = f.b = f.c = SG_MEMORY_PAGEABLE;
  const problem p = make(f);
  stream_layout layout = tile_layout(p, {512, 512, 512, axis::m});
  fit_slots(p, layout, std::int64_t(64) << 20);
  const schedule s = build_stream(p, layout, shipped_model("h200"), 2);
  EXPECT_GT(s.commands.size(), 5000u);
  EXPECT_TRUE(check_hazards(s).empty());
}

}  // namespace
}  // namespace sg::test
