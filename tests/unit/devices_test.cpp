// SPDX-License-Identifier: Apache-2.0
// Lanes, buffers and arenas of several devices, and memory of a peer.
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/device_array.hpp"
#include "base/memory_space.hpp"
#include "devices/registry.hpp"
#include "ops/backend_commands.hpp"
#include "ops/binding.hpp"
#include "ops/operation.hpp"
#include "plan/gemm/resident/direct.hpp"
#include "plan/planner.hpp"
#include "plan/schedule/hazard.hpp"
#include "plan/schedule/lanes.hpp"
#include "plan/schedule/simulate.hpp"
#include "problems.hpp"
#include "run/dispatch/lane_set.hpp"
#include "run/memory/arena_pool.hpp"

namespace sg::test {
namespace {

constexpr device_index second{1};

TEST(devices, a_memory_space_names_its_device) {
  constexpr memory_space own = memory_space::of_device(second), peer = memory_space::of_peer(7);
  EXPECT_EQ(SG_MEMORY_DEVICE, own.kind());
  EXPECT_EQ(second, own.device());
  EXPECT_TRUE(own == SG_MEMORY_DEVICE) << "the kind alone is compared";
  EXPECT_FALSE(own == memory_space(SG_MEMORY_DEVICE)) << "the first device's";
  EXPECT_EQ(7, peer.peer());
  EXPECT_FALSE(peer == memory_space(SG_MEMORY_PEER)) << "which names no device";
  EXPECT_NE(own.bits(), peer.bits());
  EXPECT_TRUE(peer.is_copied_directly() && memory_space(SG_MEMORY_PINNED).is_copied_directly());
  EXPECT_FALSE(own.is_copied_directly() || memory_space(SG_MEMORY_PAGEABLE).is_copied_directly());
}

TEST(devices, an_array_has_one_object_per_device) {
  static int alive = 0;
  struct counted {
    explicit counted(device_index i) : index(i) { ++alive; }
    ~counted() { --alive; }
    counted(const counted &) = delete;
    const device_index index;
  };
  {
    const device_array<counted> all(3, [](device_index i) { return counted(i); });
    EXPECT_EQ(3, alive);
    EXPECT_EQ(second, all[second].index);
    EXPECT_EQ(&all[first_device] + 1, &all[second]);
  }
  EXPECT_EQ(0, alive);
  const auto fail_late = [](device_index i) {
    if (i == second) throw std::runtime_error("no second device");
    return counted(i);
  };
  EXPECT_THROW((device_array<counted>(3, fail_late)), std::runtime_error);
  EXPECT_EQ(0, alive) << "created objects are destroyed";
}

struct placed {
  lane where;
};

TEST(devices, lanes_of_each_have_numbers_of_their_own) {
  const std::vector<placed> all{{{lane_kind::compute, 1}},
                                {{lane_kind::copy_in, 0}},
                                {{lane_kind::compute, 0, device_index{2}}},
                                {{lane_kind::copy_in, 0, device_index{2}}}};
  const lane_numbers numbers(all);
  EXPECT_EQ(3u, numbers.devices());
  EXPECT_EQ(5, numbers.count());  // compute 0 and 1, copies of the first device; one of each of the third
  std::vector<bool> seen(5, false);
  for (const placed &x : all) {
    const int number = numbers.of(x.where);
    EXPECT_FALSE(seen[std::size_t(number)]);
    seen[std::size_t(number)] = true;
    EXPECT_EQ(x.where, numbers.at(number));
  }
}

// A copy in and a GEMM on each of two devices.
schedule one_on_each() {
  problem_form f;
  f.m = f.n = f.k = 2048;
  schedule s;
  for (const device_index device : {first_device, second}) {
    const schedule part = build_direct(make(f));
    for (buffer b : part.buffers) {
      b.space = memory_space::of_device(device);
      b.parameter = int(s.buffers.size());
      s.buffers.push_back(b);
    }
    for (command c : part.commands) {
      c.where.device = device;
      c.group = int(number_of(device));
      for (auto &v : c.views)
        if (v.exists()) v.buffer += operands_of_problem * int(number_of(device));
      s.commands.push_back(c);
    }
  }
  return s;
}

TEST(devices, work_of_one_does_not_slow_the_other) {
  const device_model model = shipped_model("h200");
  schedule s = one_on_each();
  const double separate = simulate(s, model).seconds;
  for (command &c : s.commands) c.where.device = first_device;
  const double together = simulate(s, model).seconds;
  EXPECT_GT(together, 1.5 * separate);
}

TEST(devices, each_has_the_rates_of_its_model) {
  machine_model machine{{shipped_model("h200"), shipped_model("h200")}, {}};
  for (gemm_rate &rate : machine.devices[1].rates) rate.flops_per_second /= 10;
  const schedule s = one_on_each();
  const timeline both = simulate(s, machine);
  EXPECT_GT(both.commands.back().end, 5 * both.commands.front().end);
  EXPECT_EQ(second, both.commands.back().where.device);
}

TEST(devices, a_gemm_on_memory_of_another_device_is_a_defect) {
  schedule s = one_on_each();
  EXPECT_TRUE(check_hazards(s).empty());
  s.buffers[int(operand_name::a)].space = memory_space::of_device(second);
  const auto found = check_hazards(s);
  ASSERT_FALSE(found.empty());
  EXPECT_NE(std::string::npos, found[0].text.find("another device's memory")) << found[0].text;
}

// Device 1 pulls what device 0 has copied in, and copies it out.
schedule pulled() {
  schedule s;
  s.device_bytes = s.staging_bytes = 256;
  s.buffers = {{buffer_kind::parameter, SG_DTYPE_I8, false, SG_MEMORY_PINNED, 0, 0, 64, 0},
               {buffer_kind::device, SG_DTYPE_I8, false, SG_MEMORY_DEVICE, 0, 0, 64},
               {buffer_kind::device, SG_DTYPE_I8, false, memory_space::of_device(second), 0, 0, 64},
               {buffer_kind::parameter, SG_DTYPE_I8, false, SG_MEMORY_PINNED, 0, 0, 64, 1}};
  const auto add = [&](payload what, lane where, std::int32_t to, std::int32_t from) {
    command c;
    c.what = what;
    c.where = where;
    c.views[ops::copy_in::to] = view{to, 0, 1, 0, 8, 8, 8};
    c.views[ops::copy_in::from] = view{from, 0, 1, 0, 8, 8, 8};
    set_access_modes(c);
    c.first_wait = std::uint32_t(s.waits.size());
    c.waits = s.commands.empty() ? 0 : 1;
    if (c.waits) s.waits.push_back(std::uint32_t(s.commands.size() - 1));
    s.commands.push_back(c);
  };
  add(ops::copy_in(), {lane_kind::copy_in, 0}, 1, 0);
  add(ops::copy_peer(), {lane_kind::copy_peer, 0, second}, 2, 1);
  add(ops::copy_out(), {lane_kind::copy_out, 0, second}, 3, 2);
  return s;
}

std::string first_hazard(const schedule &s) {
  const auto found = check_hazards(s);
  return found.empty() ? "" : found[0].text;
}

TEST(devices, a_peer_copy_reads_another_device_s_memory_into_its_own) {
  EXPECT_EQ("", first_hazard(pulled()));
  schedule s = pulled();
  EXPECT_EQ("copy-peer 8 x 8 of device 0", operation_of(s.commands[1]).describe(s.buffers, s.commands[1]));
  backend_commands made;
  binding where;
  operation_of(s.commands[1]).lower(s.buffers, s.commands[1], where, made);
  ASSERT_EQ(1u, made.size());
  const auto &copy = as_backend<sg_backend_copy>(made.at(0));
  EXPECT_EQ(SG_MEMORY_PEER, copy.src_space.kind);
  EXPECT_EQ(0, copy.src_space.device);
  EXPECT_EQ(SG_MEMORY_DEVICE, copy.dst_space.kind);

  s.commands[1].where.device = first_device;  // a push
  EXPECT_EQ("a peer copy writes the memory of its lane's device", first_hazard(s));
  s = pulled();
  s.commands[1].views[ops::copy_peer::from].buffer = 2;
  EXPECT_EQ("a peer copy reads another device's memory", first_hazard(s));
  s.commands[1].views[ops::copy_peer::from].buffer = 0;
  EXPECT_EQ("a peer copy joins the memory of two devices", first_hazard(s));
  s = pulled();
  s.commands[2].where.device = first_device;
  EXPECT_NE(std::string::npos, first_hazard(s).find("another device's memory")) << "copies are of their lane's device";
}

// Each wait crosses devices or lanes, and none implies another.
TEST(devices, each_removed_wait_across_devices_is_a_hazard) {
  for (const std::uint32_t without : {1u, 2u}) {
    schedule s = pulled();
    s.commands[without].waits = 0;
    EXPECT_NE(std::string::npos, first_hazard(s).find("in no order")) << without;
  }
}

TEST(devices, staging_arenas_of_two_do_not_overlap) {
  schedule s = pulled();
  for (buffer &b : s.buffers)
    if (b.kind == buffer_kind::parameter) b.space = SG_MEMORY_PAGEABLE;
  s.buffers.push_back({buffer_kind::staging, SG_DTYPE_I8, false, memory_space::staging_of(first_device), 0, 0, 64});
  s.buffers.push_back({buffer_kind::staging, SG_DTYPE_I8, false, memory_space::staging_of(second), 0, 0, 64});
  s.commands.resize(2);
  s.waits.clear();
  for (const int device : {0, 1}) {
    command &c = s.commands[std::size_t(device)];
    c.what = ops::pack();
    c.waits = 0;
    c.where = lane(lane_kind::staging, 0, device_index(device));
    c.views[ops::pack::to].buffer = 4 + device;
    c.views[ops::pack::from].buffer = 0;
  }
  EXPECT_EQ("", first_hazard(s));
  s.commands[1].views[ops::pack::to].buffer = 4;
  EXPECT_NE("", first_hazard(s));
}

TEST(devices, arenas_of_two_do_not_overlap) {
  schedule s = one_on_each();
  s.device_bytes = std::int64_t(1) << 30;
  // Both GEMMs write the first bytes of an arena, with nothing between them.
  for (std::size_t i = 0; i < s.commands.size(); ++i) {
    view &c = s.commands[i].views[ops::gemm::c];
    buffer &b = s.buffers[std::size_t(c.buffer)];
    b.kind = buffer_kind::device;
    b.offset = 0;
  }
  EXPECT_TRUE(check_hazards(s).empty());
  for (command &c : s.commands) c.where.device = first_device;
  s.commands[1].where.index = 1;  // another lane, so that nothing orders them
  for (buffer &b : s.buffers) b.space = SG_MEMORY_DEVICE;
  EXPECT_FALSE(check_hazards(s).empty()) << "on one device they overlap";
}

TEST(devices, copies_name_the_peer) {
  schedule s;
  s.buffers = {{buffer_kind::parameter, SG_DTYPE_I8, false, memory_space::of_peer(3), 0, 0, 64, 0},
               {buffer_kind::device, SG_DTYPE_I8, false, SG_MEMORY_DEVICE, 0, 0, 64},
               {buffer_kind::parameter, SG_DTYPE_I8, false, SG_MEMORY_PEER, 0, 0, 64, 1}};
  command c;
  c.what = ops::copy_in{};
  c.views[ops::copy_in::to] = view{1, 0, 1, 0, 8, 8, 8};
  c.views[ops::copy_in::from] = view{0, 0, 1, 0, 8, 8, 8};
  binding where;
  std::vector<sg_backend_copy> copies;
  lower_copy(s.buffers, c, where, copies);
  ASSERT_EQ(1u, copies.size());
  EXPECT_EQ(SG_MEMORY_PEER, copies[0].src_space.kind);
  EXPECT_EQ(3, copies[0].src_space.device);
  EXPECT_EQ(SG_MEMORY_DEVICE, copies[0].dst_space.kind);
  EXPECT_EQ(0, copies[0].dst_space.device);
  EXPECT_NE(std::string::npos, operation_of(c).describe(s.buffers, c).find("of peer 3"));
  c.what = ops::copy_out{};
  c.views[ops::copy_in::to] = view{2, 0, 1, 0, 8, 8, 8};
  c.views[ops::copy_in::from] = view{1, 0, 1, 0, 8, 8, 8};
  lower_copy(s.buffers, c, where, copies);
  EXPECT_EQ(SG_MEMORY_PEER, copies[0].dst_space.kind);
  EXPECT_EQ(-1, copies[0].dst_space.device) << "the GEMM is unknown";
  EXPECT_NE(std::string::npos, operation_of(c).describe(s.buffers, c).find("of a peer"));
}

TEST(devices, operands_of_a_peer_are_planned_like_pinned_ones) {
  problem_form pinned, peer;
  for (problem_form *f : {&pinned, &peer}) f->m = f->n = f->k = 3000;
  pinned.a = pinned.b = pinned.c = SG_MEMORY_PINNED;
  peer.a = peer.b = peer.c = SG_MEMORY_PEER;
  const device_model model = shipped_model("h200");
  const auto of_pinned = make_gemm_plan({make(pinned)}, model, {}), of_peer = make_gemm_plan({make(peer)}, model, {});
  EXPECT_EQ(of_pinned->strategy, of_peer->strategy);
  EXPECT_EQ(of_pinned->predicted_seconds, of_peer->predicted_seconds);
  EXPECT_EQ(of_pinned->commands.size(), of_peer->commands.size());
  EXPECT_EQ(SG_MEMORY_PEER, of_peer->buffers[int(operand_name::a)].space.kind());
  EXPECT_TRUE(check_hazards(*of_peer).empty());
}

TEST(devices, a_plan_for_the_second_one_uses_its_lanes_and_memory) {
  const machine_model machine{{shipped_model("pcie3"), shipped_model("h200")}, {}};
  problem_form f;
  f.m = f.n = f.k = 3000;
  f.a = f.b = f.c = SG_MEMORY_PAGEABLE;
  const auto s = make_gemm_plan({make(f)}, machine, plan_request{.device = second});
  for (const command &c : s->commands) EXPECT_EQ(second, c.where.device);
  int own = 0;
  for (const buffer &b : s->buffers) {
    own += b.kind == buffer_kind::device;
    if (b.kind == buffer_kind::device) {
      EXPECT_TRUE(b.space == memory_space::of_device(second));
    } else if (b.kind == buffer_kind::staging) {
      EXPECT_TRUE(b.space == SG_MEMORY_PINNED);
    }
  }
  EXPECT_GT(own, 0);
  EXPECT_TRUE(check_hazards(*s).empty());
  EXPECT_NEAR(s->predicted_seconds, simulate(*s, machine).seconds, 1e-12);
}

TEST(devices, the_engine_s_lanes_and_arenas_name_theirs) {
  const device opened(*find_backend("sim")->ops, {"sim", "h200"});
  lane_set lanes(opened, second, opened.model(), 0);
  EXPECT_EQ(second, lanes.find(lane_demand{})->device);
  EXPECT_EQ(second, lanes.find(lane_demand{.what = to_device})->device);
  EXPECT_EQ(second, lanes.find(lane{lane_kind::copy_out, 0, second}, 0, false)->device);
  lane_slot named;
  named.use = lane_use::events;
  ASSERT_TRUE(lanes.admit(named));
  EXPECT_EQ(second, named.device);
  lanes.dismiss(named);
  const arena_pool pool(opened, second, arena_pool::memory::device, 1 << 20);
  EXPECT_EQ(second, pool.index());
  EXPECT_EQ(&opened, &pool.on());
}

// Commands that were given up may still write there.
TEST(arenas, that_are_abandoned_are_never_used_again) {
  const device opened(*find_backend("sim")->ops, {"sim", "h200"});
  for (const arena_pool::memory kind : {arena_pool::memory::device, arena_pool::memory::pinned}) {
    arena_pool pool(opened, first_device, kind, 64 << 10);
    char *const kept = pool.acquire(20000), *const lost = pool.acquire(20000);
    pool.release(kept);
    pool.abandon(lost);
    EXPECT_TRUE(pool.idle());
    EXPECT_EQ(kept, pool.acquire(20000));
    EXPECT_NE(lost, pool.acquire(20000));
    EXPECT_THROW(pool.acquire(20000), error) << "it counts against the limit";
    pool.trim();
  }
}

}  // namespace
}  // namespace sg::test
