// SPDX-License-Identifier: Apache-2.0
// Problems on several devices: free of hazards, right to the bit, each byte over the host's links once.
#include "plan/gemm/spread/spread.hpp"

#include <algorithm>
#include <random>

#include "execute.hpp"
#include "plan/gemm/spread/join.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg::test::of_spread {
namespace {

std::vector<std::int64_t> limits_of(const machine_model &machine, std::int64_t bytes = 0) {
  std::vector<std::int64_t> all;
  for (const device_model &each : machine.devices) all.push_back(bytes > 0 ? bytes : each.usable_memory());
  return all;
}

// Which machine, how many of its devices.
struct place {
  machine_model machine;
  std::size_t count;
};

std::vector<place> places() {
  std::vector<place> all;
  const machine_model eight = shipped_machine("h200x8");
#ifdef SG_TEST_SANITIZED
  for (const std::size_t count : {2, 3}) all.push_back({eight, count});
#else
  for (const std::size_t count : {1, 2, 3, 4, 5, 8}) all.push_back({eight, count});
#endif
  all.push_back({shipped_machine("pcie4x2"), 2});
  all.push_back({shipped_machine("unequal2"), 2});
  for (place &each : all)
    for (device_model &m : each.machine.devices) m.staging_workers = 3;
  return all;
}

double bytes_of(const problem &p, const operand &x) { return problem::bytes(x, p.batch); }

// Shares as of devices of three speeds.
std::vector<double> unequal_shares(std::size_t count) {
  std::vector<double> shares;
  for (std::size_t i = 0; i < count; ++i) shares.push_back(double(1 + i % 3));
  return shares;
}

std::vector<spread_choice> choices(const problem &p) {
  std::vector<spread_choice> all;
  for (const spread_axis along : {spread_axis::n, spread_axis::m, spread_axis::items})
    for (const bool by_peers : {true, false}) {
      spread_choice c;
      c.axis = along;
      c.by_peers = by_peers;
      c.panels.along = along == spread_axis::m ? axis::m : axis::n;
      if (!p.no_multiply && p.batch == 1) {
        c.panels.panels = 3, c.panels.pieces = 2;
        all.push_back(c);
        c.panels.outer = 0.5, c.panels.outer_pieces = 2, c.panels.taper = true;
        all.push_back(c);
        c.ahead = 1;
        all.push_back(c);
        c.ahead = 0;
        c.panels.outer = 0, c.panels.across = true;
        all.push_back(c);
      }
      c.tiles = tile_choice{7, 6, 5, axis::m};
      all.push_back(c);
      c.tiles.reset();
      c.groups = 2;
      all.push_back(c);
    }
  return all;
}

std::vector<problem_form> forms() {
  std::vector<problem_form> all(12);
  all[1].beta_zero = false;
  all[2].op_a = SG_TRANSPOSE_T, all[2].pad = 3;
  all[3].op_b = SG_TRANSPOSE_T, all[3].in = all[3].out = SG_DTYPE_F64;
  all[4].in = SG_DTYPE_BF16, all[4].out = SG_DTYPE_BF16, all[4].end = ending::row_bias, all[4].bias = SG_MEMORY_PINNED;
  all[5].batch = 5, all[5].batching = batch_form::gapped;
  all[6].batch = 4, all[6].batching = batch_form::shared_a, all[6].end = ending::own_column_bias_relu;
  all[7].batch = 3, all[7].batching = batch_form::shared_b, all[7].beta_zero = false;
  all[8].batch = 4, all[8].batching = batch_form::pointers;
  all[9].m = 2, all[9].n = 40, all[9].end = ending::column_bias;
  all[10].n = 1, all[10].k = 1;
  all[11].no_multiply = true, all[11].beta_zero = false;
  for (problem_form &f : all) f.a = f.b = f.c = f.bias = SG_MEMORY_PINNED;
  for (std::size_t i = 12, count = all.size(); count > 0; --count, ++i) {
    all.push_back(all[12 - count]);
    problem_form &f = all.back();
    f.a = f.b = f.c = f.bias = SG_MEMORY_PAGEABLE;
  }
  return all;
}

std::string text(const spread_choice &c) {
  return "axis " + std::to_string(int(c.axis)) + (c.by_peers ? " peers" : "") + (c.tiles ? " tiles" : "") + " groups " +
         std::to_string(c.groups) + " outer " + std::to_string(c.panels.outer) + (c.panels.across ? " across" : "") +
         (c.ahead > 0 ? " paced" : "");
}

TEST(spread, every_choice_is_right_on_every_set) {
  int built = 0;
  for (const place &at : places())
    for (const problem_form &f : forms()) {
      const problem p = make(f);
      for (const spread_choice &c : choices(p)) {
        const auto s =
            build_spread(p, at.machine, first_devices(at.count), unequal_shares(at.count), c, limits_of(at.machine));
        if (!s) continue;
        ++built;
        ASSERT_TRUE(is_right(*s, p, std::uint32_t(built)))
            << at.machine.name << " x" << at.count << " " << text(f) << " " << text(c);
      }
    }
  EXPECT_GT(built, 500 * int(places().size()));
}

TEST(spread, random_shapes_are_right) {
  std::mt19937 random(3);
  const auto below = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random); };
  const std::vector<place> all = places();
  int built = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const place &at = all[std::size_t(below(std::int64_t(all.size())) - 1)];
    problem_form f;
    f.m = below(40), f.n = below(40), f.k = below(40), f.pad = below(3) - 1;
    f.op_a = below(2) == 1 ? SG_TRANSPOSE_N : SG_TRANSPOSE_T, f.op_b = below(2) == 1 ? SG_TRANSPOSE_N : SG_TRANSPOSE_T;
    f.beta_zero = below(2) == 1;
    f.a = below(2) == 1 ? SG_MEMORY_PINNED : SG_MEMORY_PAGEABLE, f.b = f.c = f.bias = SG_MEMORY_PINNED;
    const problem p = make(f);
    const std::vector<spread_choice> ways = choices(p);
    const spread_choice &c = ways[std::size_t(below(std::int64_t(ways.size())) - 1)];
    std::vector<double> shares;
    for (std::size_t i = 0; i < at.count; ++i) shares.push_back(double(below(9)));
    const auto s = build_spread(p, at.machine, first_devices(at.count), shares, c, limits_of(at.machine));
    if (!s) continue;
    ++built;
    ASSERT_TRUE(is_right(*s, p, std::uint32_t(trial)))
        << at.machine.name << " x" << at.count << " " << text(f) << " " << text(c);
  }
  EXPECT_GT(built, 150);
}

// Slots of the spread operand are refilled while peers read them.
TEST(spread, tiles_in_little_memory_are_right) {
  problem_form f;
  f.m = 60, f.n = 90, f.k = 50;
  for (const sg_memory_kind host : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE}) {
    f.a = f.b = f.c = host;
    const problem p = make(f);
    const machine_model machine = shipped_machine("h200x4");
    for (const std::size_t count : {2, 3, 4})
      for (const spread_axis along : {spread_axis::n, spread_axis::m}) {
        spread_choice c;
        c.axis = along;
        c.tiles = tile_choice{16, 16, 16, axis::m};
        const std::vector<double> equal(count, 1.0);
        const auto s = build_spread(p, machine, first_devices(count), equal, c, limits_of(machine, 8 * 1024));
        ASSERT_TRUE(s);
        EXPECT_LE(s->device_bytes, 8 * 1024);
        EXPECT_GT(s->bytes_peer, 0);
        for (std::uint32_t seed = 1; seed < 4; ++seed) ASSERT_TRUE(is_right(*s, p, seed)) << count << " " << int(along);
      }
  }
}

// Items of a slot are replaced one by one: one that is not replaced yet may still be read by a peer.
TEST(spread, groups_of_items_in_little_memory_are_right) {
  problem_form f;
  f.m = 9, f.n = 2, f.k = 2, f.pad = 1;
  f.in = f.out = SG_DTYPE_F64;
  f.batch = 21, f.batching = batch_form::gapped;
  const machine_model machine = shipped_machine("h200x4");
  for (const sg_memory_kind host : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE}) {
    f.a = f.b = f.c = host;
    const problem p = make(f);
    int built = 0;
    for (const std::int64_t kib : {4, 6, 8, 10, 12})
      for (const std::size_t count : {2, 3}) {
        spread_choice c;
        c.axis = spread_axis::n;
        c.groups = 16;
        const std::vector<double> equal(count, 1.0);
        const auto s = build_spread(p, machine, first_devices(count), equal, c, limits_of(machine, kib * 1024));
        if (!s) continue;
        ++built;
        ASSERT_TRUE(is_right(*s, p, std::uint32_t(kib))) << count << " " << kib;
      }
    EXPECT_GT(built, 3);
  }
}

// Host bytes of A and B once, peer bytes (g - 1) / g of the operand that all need, for each of g devices.
TEST(spread, each_byte_crosses_the_host_s_links_once) {
  problem_form f;
  f.m = 640, f.n = 1280, f.k = 320;
  for (const sg_memory_kind host : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE})
    for (const std::size_t count : {1, 2, 4, 8}) {
      f.a = f.b = f.c = host;
      const problem p = make(f);
      const machine_model machine = shipped_machine("h200x8");
      const std::vector<double> equal(count, 1.0);
      for (const spread_axis along : {spread_axis::n, spread_axis::m}) {
        spread_choice c;
        c.axis = along;
        c.panels.along = along == spread_axis::m ? axis::m : axis::n;
        c.panels.panels = 2, c.panels.pieces = 2;
        const auto s = build_spread(p, machine, first_devices(count), equal, c, limits_of(machine));
        ASSERT_TRUE(s);
        EXPECT_EQ(s->bytes_in, bytes_of(p, p.a) + bytes_of(p, p.b)) << count;
        EXPECT_EQ(s->bytes_out, bytes_of(p, p.c));
        EXPECT_EQ(s->bytes_peer, double(count - 1) * bytes_of(p, along == spread_axis::n ? p.a : p.b)) << count;
        c.by_peers = false;
        const auto apart = build_spread(p, machine, first_devices(count), equal, c, limits_of(machine));
        EXPECT_EQ(apart->bytes_peer, 0);
        EXPECT_EQ(apart->bytes_in - s->bytes_in, s->bytes_peer) << "each device brings it";
      }
    }
}

// While a copy in runs, no more copies out that were before it are left than asked for.
TEST(spread, paced_copies_in_do_not_run_ahead) {
  problem_form f;
  f.m = f.n = 4096, f.k = 512;
  f.in = f.out = SG_DTYPE_F64;
  f.a = f.b = f.c = SG_MEMORY_PINNED;
  const problem p = make(f);
  const machine_model machine = shipped_machine("h200x2");
  const std::vector<double> equal(2, 1.0);
  const auto most_left = [&](std::size_t ahead) {
    spread_choice c;
    c.panels.panels = 16, c.panels.across = true;
    c.ahead = ahead;
    const auto s = build_spread(p, machine, first_devices(2), equal, c, limits_of(machine));
    EXPECT_TRUE(s && check_hazards(*s).empty());
    const timeline times = simulate(*s, machine);
    std::size_t most = 0;
    for (std::uint32_t i = 0; i < s->commands.size(); ++i) {
      if (!s->commands[i].is<ops::copy_in>()) continue;
      std::size_t left = 0;
      for (std::uint32_t j = 0; j < i; ++j)
        left += s->commands[j].is<ops::copy_out>() && s->commands[j].where.device == s->commands[i].where.device &&
                times.commands[j].end > times.commands[i].start;
      most = std::max(most, left);
    }
    return most;
  };
  EXPECT_GT(most_left(0), 2u);
  for (const std::size_t ahead : {1, 2}) EXPECT_LT(most_left(ahead), ahead) << ahead;
}

// Reachability by plain search, as the reference for "ordered".
bool ordered(const schedule &s, std::uint32_t from, std::uint32_t to) {
  std::vector<bool> reached(s.commands.size(), false);
  reached[from] = true;
  for (std::uint32_t i = from + 1; i <= to; ++i) {
    for (std::uint32_t j = from; j < i && !reached[i]; ++j)
      reached[i] = reached[j] && s.commands[j].where == s.commands[i].where && in_order(s.commands[i].where);
    for (std::uint32_t w = 0; w < s.commands[i].waits; ++w)
      reached[i] = reached[i] || reached[s.waits[s.commands[i].first_wait + w]];
  }
  return reached[to];
}

TEST(spread, each_removed_wait_is_a_hazard) {
  problem_form f;
  f.m = 40, f.n = 48, f.k = 40;
  f.a = f.b = f.c = SG_MEMORY_PINNED;
  const problem p = make(f);
  const machine_model machine = shipped_machine("h200x4");
  for (const std::size_t count : {2, 3, 4})
    for (const std::int64_t limit : {std::int64_t(4 * 1024), std::int64_t(1) << 30}) {
      spread_choice c;
      c.tiles = tile_choice{16, 16, 16, axis::m};
      const std::vector<double> equal(count, 1.0);
      const auto s = build_spread(p, machine, first_devices(count), equal, c, limits_of(machine, limit));
      ASSERT_TRUE(s);
      ASSERT_TRUE(check_hazards(*s).empty());
      int found = 0, of_peers = 0, missed = 0;
      for (std::uint32_t i = 0; i < s->commands.size(); ++i)
        for (std::uint32_t w = 0; w < s->commands[i].waits; ++w) {
          schedule defective = *s;
          command &changed = defective.commands[i];
          const std::uint32_t awaited = s->waits[changed.first_wait + w];
          std::swap(defective.waits[changed.first_wait + w], defective.waits[changed.first_wait + changed.waits - 1]);
          --changed.waits;
          if (ordered(defective, awaited, i)) continue;
          const bool is_found = !check_hazards(defective).empty();
          found += is_found;
          missed += !is_found;
          of_peers += is_found && (changed.is<ops::copy_peer>() || s->commands[awaited].is<ops::copy_peer>());
        }
      EXPECT_GT(of_peers, int(count));
      // A command that waits for the latest pull of its device may not need that one.
      EXPECT_GT(found, 5 * missed) << count << " " << limit;
    }
}

}  // namespace
}  // namespace sg::test::of_spread
