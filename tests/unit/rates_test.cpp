// SPDX-License-Identifier: Apache-2.0
// Max-min fair rates, the limits that paths of a machine cross, and schedules of several devices in virtual time.
#include "model/rates.hpp"

#include <gtest/gtest.h>

#include <random>

#include "plan/schedule/simulate.hpp"
#include "problems.hpp"

namespace sg::test::of_rates {
namespace {

constexpr device_index second{1};

std::vector<double> rates_of(std::vector<flow> flows, const std::vector<double> &limits) {
  flow_rates sharing;
  sharing.share(flows, limits);
  std::vector<double> all;
  for (const flow &each : flows) all.push_back(each.rate);
  return all;
}

TEST(rates, flows_grow_until_their_ceiling_or_a_limit) {
  const std::uint16_t first[] = {0}, both[] = {0, 1}, twice[] = {1, 1};
  EXPECT_EQ((std::vector<double>{5, 5}), rates_of({{9, first}, {9, first}}, {10}));
  EXPECT_EQ((std::vector<double>{2, 8}), rates_of({{2, first}, {9, first}}, {10}));
  EXPECT_EQ((std::vector<double>{3, 3}), rates_of({{3, first}, {3, {}}}, {10}));
  // The second limit holds the second flow back, so that the first one has the rest of the first limit.
  EXPECT_EQ((std::vector<double>{7, 3}), rates_of({{9, first}, {9, both}}, {10, 3}));
  EXPECT_EQ((std::vector<double>{2}), rates_of({{9, twice}}, {10, 4})) << "its bytes cross that limit twice";
  EXPECT_TRUE(rates_of({}, {1}).empty());
}

// The definition of max-min fairness: each flow has its ceiling, or crosses a limit that is used up and in which no
// flow is faster.
TEST(rates, no_limit_is_exceeded_and_each_flow_has_its_bottleneck) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most - 1)(random); };
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> limits(1 + below(6));
    for (double &each : limits) each = double(1 + below(100));
    std::vector<std::vector<std::uint16_t>> paths(1 + below(9));
    std::vector<flow> flows;
    for (auto &path : paths) {
      for (std::size_t i = below(4); i > 0; --i) path.push_back(std::uint16_t(below(limits.size())));
      flows.push_back({double(1 + below(100)), path});
    }
    flow_rates sharing;
    sharing.share(flows, limits);
    const auto times = [](const flow &f, std::size_t limit) { return std::count(f.path.begin(), f.path.end(), limit); };
    std::vector<double> used(limits.size(), 0), fastest(limits.size(), 0);
    for (const flow &f : flows)
      for (std::size_t i = 0; i < limits.size(); ++i) {
        used[i] += f.rate * double(times(f, i));
        if (times(f, i) > 0) fastest[i] = std::max(fastest[i], f.rate);
      }
    for (std::size_t i = 0; i < limits.size(); ++i) EXPECT_LE(used[i], limits[i] * (1 + 1e-9)) << trial;
    for (const flow &f : flows) {
      EXPECT_GT(f.rate, 0);
      bool is_held = f.rate == f.ceiling;
      for (std::size_t i = 0; i < limits.size(); ++i)
        is_held = is_held || (times(f, i) > 0 && used[i] > limits[i] * (1 - 1e-9) && f.rate > fastest[i] * (1 - 1e-9));
      EXPECT_TRUE(is_held) << trial << ": a flow of " << f.rate << " could be faster";
    }
  }
}

std::vector<std::string> names_of(const machine_limits &limits, machine_limits::path path) {
  std::vector<std::string> names;
  for (const std::uint16_t each : path) names.push_back(limits.all()[each].name);
  return names;
}

TEST(rates, paths_cross_the_limits_of_links_sets_and_ports) {
  using names = std::vector<std::string>;
  const machine_limits limits(shipped_machine("h200x2"));
  EXPECT_EQ((names{"device 1 in", "host in", "host in and out"}), names_of(limits, limits.in(second)));
  EXPECT_EQ((names{"device 0 out", "host out", "host in and out"}), names_of(limits, limits.out(first_device)));
  EXPECT_EQ((names{"device 0 sends", "device 1 receives"}), names_of(limits, limits.peer(first_device, second)));
  EXPECT_EQ(392e9, limits.peer_rate(first_device, second));
  EXPECT_FALSE(limits.peer_crosses_links(first_device, second));
  EXPECT_EQ(1u, limits.staging().size());

  const machine_limits without(shipped_machine("pcie4x2"));  // no peers: through the host's memory
  EXPECT_EQ((names{"device 0 out", "device 1 in", "host out", "host in and out", "host in", "host in and out"}),
            names_of(without, without.peer(first_device, second)));
  EXPECT_EQ(25e9, without.peer_rate(first_device, second));
  EXPECT_TRUE(without.peer_crosses_links(first_device, second));

  const machine_limits unequal(shipped_machine("unequal2"));  // peers of one switch do not leave it
  EXPECT_EQ((names{"device 1 out", "device 0 in"}), names_of(unequal, unequal.peer(second, first_device)));
  EXPECT_EQ(22e9, unequal.peer_rate(second, first_device));
  EXPECT_TRUE(unequal.staging().empty());
}

// Copies of 1 GB: each an operation, a device, and for peer copies the other one.
struct copy_of {
  lane_kind kind;
  int device, from = 0;
};

schedule copies(const std::vector<copy_of> &all) {
  constexpr std::int64_t size = 1'000'000'000;
  schedule s;
  s.buffers = {{buffer_kind::parameter, SG_DTYPE_I8, false, SG_MEMORY_PINNED, 0, 0, size, 0}};
  for (int d = 0; d < 8; ++d)
    s.buffers.push_back(
        {buffer_kind::parameter, SG_DTYPE_I8, false, memory_space::of_device(device_index(d)), 0, 0, size, 1 + d});
  for (const copy_of &each : all) {
    command c;
    const bool in = each.kind == lane_kind::copy_in, out = each.kind == lane_kind::copy_out;
    c.what = in ? payload(ops::copy_in()) : out ? payload(ops::copy_out()) : payload(ops::copy_peer());
    c.where = lane(each.kind, 0, device_index(each.device));
    c.views[ops::copy_in::to] = view{out ? 0 : 1 + each.device, 0, 1, 0, size, size, 1};
    c.views[ops::copy_in::from] = view{in ? 0 : out ? 1 + each.device : 1 + each.from, 0, 1, 0, size, size, 1};
    s.commands.push_back(c);
  }
  return s;
}

// GB/s of all copies together.
double together(const char *machine, const std::vector<copy_of> &all) {
  return double(all.size()) / simulate(copies(all), shipped_machine(machine)).seconds;
}

constexpr lane_kind in = lane_kind::copy_in, out = lane_kind::copy_out, from_peer = lane_kind::copy_peer;

TEST(rates, copies_of_several_devices_share_the_host) {
  EXPECT_NEAR(55.0, together("h200x2", {{in, 0}}), 0.1);
  EXPECT_NEAR(110, together("h200x2", {{in, 0}, {in, 1}}), 0.2);
  EXPECT_NEAR(153, together("h200x2", {{in, 0}, {in, 1}, {out, 0}, {out, 1}}), 0.2);
  EXPECT_NEAR(168, together("h200x4", {{in, 0}, {in, 1}, {in, 2}, {in, 3}}), 0.2);
  EXPECT_NEAR(130, together("h200x4", {{out, 0}, {out, 1}, {out, 2}, {out, 3}}), 0.2);
  EXPECT_NEAR(336, together("h200x8", {{in, 0}, {in, 1}, {in, 2}, {in, 3}, {in, 4}, {in, 5}, {in, 6}, {in, 7}}), 0.5);
}

TEST(rates, peer_copies_leave_the_links_alone_unless_they_cross_them) {
  EXPECT_NEAR(392, together("h200x2", {{from_peer, 1, 0}}), 5);
  EXPECT_NEAR(2 * 392, together("h200x2", {{from_peer, 1, 0}, {from_peer, 0, 1}}), 10);
  // Two devices pull from one: its port is the limit.
  EXPECT_NEAR(392, together("h200x4", {{from_peer, 1, 0}, {from_peer, 2, 0}}), 5);
  const timeline beside = simulate(copies({{in, 0}, {in, 1}, {from_peer, 1, 0}}), shipped_machine("h200x2"));
  EXPECT_NEAR(1 / 55.0, beside.commands[0].end, 1e-4) << "the copies in are as fast as alone";
  // Through the host: 70 GB/s in both directions, of which a peer copy takes twice its rate.
  EXPECT_NEAR(25, together("pcie4x2", {{from_peer, 1, 0}}), 0.1);
  EXPECT_LT(together("pcie4x2", {{from_peer, 1, 0}, {from_peer, 0, 1}}), 36);
  EXPECT_NEAR(25, together("pcie4x2", {{from_peer, 0, 1}}), 0.1) << "from a device without commands";
  EXPECT_NEAR(22, together("unequal2", {{from_peer, 1, 0}}), 0.1);
}

TEST(rates, unequal_devices_fill_the_rest_of_a_limit) {
  const timeline t = simulate(copies({{in, 0}, {in, 1}}), shipped_machine("unequal2"));
  EXPECT_NEAR(1 / 25.0, t.commands[1].end, 1e-4) << "its link is slower than half of the host's";
  EXPECT_NEAR(1 / 50.0, t.commands[0].end, 1e-4) << "75 GB/s less 25";
}

TEST(rates, one_thread_issues_and_each_device_is_busy_by_itself) {
  machine_model machine = shipped_machine("h200x2");
  for (device_model &each : machine.devices) each.launch_gap = 1;
  const timeline t = simulate(copies({{in, 0}, {in, 1}, {in, 1}}), machine);
  EXPECT_GE(t.commands[1].start, 1);
  EXPECT_GE(t.commands[2].start, 2);
  ASSERT_EQ(2u, t.busy.size());
  EXPECT_NEAR(1 / 55.0, t.busy[0][std::size_t(in)], 1e-4);
  EXPECT_NEAR(2 / 55.0, t.busy[1][std::size_t(in)], 1e-4);
}

// Packing on two devices: each device's workers have its rate, all together the host's.
TEST(rates, workers_of_all_devices_share_the_host_s_memory) {
  machine_model machine = shipped_machine("h200x2");
  for (device_model &each : machine.devices) each.staging_workers = 1, each.staging = {{1, 10e9}}, each.staging_gap = 0;
  schedule s = copies({{in, 0}, {in, 1}});
  for (command &c : s.commands) {
    c.what = ops::pack();
    c.where.kind = lane_kind::staging;
    c.views[ops::pack::to] = c.views[ops::pack::from];
  }
  machine.staging = {{1, 10e9}, {2, 12e9}};
  EXPECT_NEAR(2 / 12.0, simulate(s, machine).seconds, 1e-6);
  machine.staging.clear();
  EXPECT_NEAR(1 / 10.0, simulate(s, machine).seconds, 1e-6);
  // One packs and one unpacks; then both unpack.
  machine.staging = {{1, 10e9, 6e9}, {2, 12e9, 8e9, 16e9}};
  s.commands[1].what = ops::unpack();
  EXPECT_NEAR(2 / 16.0, simulate(s, machine).seconds, 1e-6);
  s.commands[0].what = ops::unpack();
  EXPECT_NEAR(2 / 8.0, simulate(s, machine).seconds, 1e-6);
  for (device_model &each : machine.devices) each.staging = {{1, 10e9, 2e9}};
  EXPECT_NEAR(1 / 2.0, simulate(s, machine).seconds, 1e-6);
}

}  // namespace
}  // namespace sg::test::of_rates
