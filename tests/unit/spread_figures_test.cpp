// SPDX-License-Identifier: Apache-2.0
// The planner's choice on several devices: close to what the machine's limits allow, and never slower than one device.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "plan/gemm/gemm_form.hpp"
#include "plan/gemm/spread/device_sets.hpp"
#include "plan/planner.hpp"
#include "plan/schedule/describe.hpp"
#include "plan/schedule/hazard.hpp"
#include "plan/schedule/lanes.hpp"
#include "plan/schedule/simulate.hpp"
#include "problems.hpp"

namespace sg::test::of_spread_figures {
namespace {

struct figure {
  const char *machine;
  std::int64_t m, n, k;
  sg_dtype type;
  double ratio;  // of the prediction to the bound, at most
};

class spread_figures : public testing::TestWithParam<figure> {};

problem pinned_problem(std::int64_t m, std::int64_t n, std::int64_t k, sg_dtype type,
                       sg_memory_kind host = SG_MEMORY_PINNED) {
  problem_form f;
  f.m = m, f.n = n, f.k = k, f.in = f.out = type;
  f.a = f.b = f.c = host;
  return make(f);
}

TEST_P(spread_figures, are_close_to_the_machine_s_bound) {
  const figure &each = GetParam();
  const machine_model machine = shipped_machine(each.machine);
  const problem p = pinned_problem(each.m, each.n, each.k, each.type);
  const auto all = first_devices(machine.devices.size());
  const auto s = make_gemm_plan({p}, machine, plan_request{.device_count = std::int32_t(all.size())});
  EXPECT_TRUE(check_hazards(*s).empty());
  EXPECT_EQ(lane_numbers(*s).devices(), all.size());
  EXPECT_EQ(s->predicted_seconds, simulate(*s, machine).seconds);
  const time_bound bound = bound_seconds(machine, {&p, 1}, all);
  EXPECT_EQ(s->bound_seconds, bound.seconds);
  EXPECT_LE(s->predicted_seconds, each.ratio * bound.seconds) << s->strategy << ", limit: " << bound.limit;
  EXPECT_GE(s->predicted_seconds, bound.seconds * (1 - 1e-9));
}

constexpr figure figures[] = {
    {"h200x2", 16384, 16384, 16384, SG_DTYPE_F32, 1.08},  {"h200x2", 8192, 8192, 8192, SG_DTYPE_F32, 1.12},
    {"h200x2", 16384, 16384, 16384, SG_DTYPE_BF16, 1.18},  // all of A before the first C
    {"h200x2", 30000, 30000, 3000, SG_DTYPE_F64, 1.12},   {"h200x4", 16384, 16384, 16384, SG_DTYPE_F32, 1.08},
    {"h200x4", 8192, 8192, 8192, SG_DTYPE_F32, 1.17},     {"h200x4", 16384, 16384, 16384, SG_DTYPE_BF16, 1.12},
    {"h200x4", 30000, 30000, 3000, SG_DTYPE_F64, 1.09},   {"h200x8", 16384, 16384, 16384, SG_DTYPE_F32, 1.08},
    {"h200x8", 30000, 30000, 3000, SG_DTYPE_F64, 1.11},
};
INSTANTIATE_TEST_SUITE_P(of, spread_figures, testing::ValuesIn(figures), [](const auto &info) {
  return std::string(info.param.machine) + "_" + name_of(info.param.type) + "_" + std::to_string(info.param.m);
});

// The planner's choice among 1, 2, 4, ... devices is never slower than one device.
TEST(spread_choice, several_devices_are_never_slower_than_one) {
  std::mt19937 random(11);
  const std::int64_t sizes[] = {1, 7, 128, 500, 1024, 3000, 4096, 9000};
  const auto any = [&](const auto &of) {
    return of[std::uniform_int_distribution<std::size_t>(0, std::size(of) - 1)(random)];
  };
  const sg_dtype types[] = {SG_DTYPE_F32, SG_DTYPE_F64, SG_DTYPE_BF16};
  int several = 0;
  for (const char *name : {"h200x2", "h200x4", "pcie4x2", "unequal2"}) {
    const machine_model machine = shipped_machine(name);
    const std::uint64_t all = (std::uint64_t(1) << machine.devices.size()) - 1;
    for (int trial = 0; trial < 10; ++trial) {
      const problem p = pinned_problem(any(sizes), any(sizes), any(sizes), any(types),
                                       trial % 3 == 2 ? SG_MEMORY_PAGEABLE : SG_MEMORY_PINNED);
      const auto one = make_gemm_plan({p}, machine, {});
      const auto best = make_gemm_plan({p}, machine, plan_request{.devices = all});
      EXPECT_LE(best->predicted_seconds, 1.02 * one->predicted_seconds) << name << " " << best->strategy;
      EXPECT_TRUE(check_hazards(*best).empty()) << name << " " << best->strategy;
      const bool is_one = lane_numbers(*best).devices() == 1;  // predicted without what devices share
      EXPECT_NEAR(1, simulate(*best, machine).seconds / best->predicted_seconds, is_one ? 0.02 : 1e-12);
      several += !is_one;
    }
  }
  EXPECT_GT(several, 5);
}

TEST(spread_choice, one_device_of_a_machine_is_that_device_alone) {
  const machine_model machine = shipped_machine("h200x4");
  const problem p = pinned_problem(4096, 4096, 4096, SG_DTYPE_F32);
  const auto alone = make_gemm_plan({p}, machine.devices[0], {});
  EXPECT_EQ(alone->predicted_seconds, simulate(*alone, machine).seconds);
  EXPECT_EQ(alone->strategy, make_gemm_plan({p}, machine, plan_request{.device_count = 1})->strategy);
}

// A schedule of one device is compared with those of more where these gain a tenth, and the planner would choose them.
TEST(spread_choice, more_devices_are_named_where_they_gain_a_tenth) {
  const machine_model machine = shipped_machine("h200x4");
  const auto counts = [&](const problem &p, const plan_request &request, const machine_model &of) {
    const gemm_form form(std::span(&p, 1));
    const auto now = make_plan(form, of, request);
    double before = now->predicted_seconds;
    std::vector<int> named;
    for (const time_on_devices &each : times_on_more_devices(form, of, request, *now)) {
      EXPECT_LT(each.seconds, 0.9 * before);
      EXPECT_EQ(each.seconds, make_plan(form, of, plan_request{.device_count = each.devices})->predicted_seconds);
      before = each.seconds;
      named.push_back(each.devices);
    }
    return named;
  };
  const plan_request one{.device_count = 1};
  const auto large = pinned_problem(16384, 16384, 16384, SG_DTYPE_F32);
  EXPECT_EQ((std::vector{2, 4}), counts(large, one, machine));
  EXPECT_EQ((std::vector{2, 4}), counts(large, plan_request{.device = device_index{3}}, machine));
  EXPECT_EQ(std::vector<int>(), counts(large, plan_request{.device_count = 2}, machine)) << "it is of several";
  EXPECT_EQ(std::vector<int>(), counts(large, {}, machine_model{.devices = {machine.devices[0]}}));
  EXPECT_EQ(std::vector<int>(), counts(pinned_problem(1024, 1024, 1024, SG_DTYPE_F32), one, machine)) << "too short";
  EXPECT_EQ(std::vector<int>(),
            counts(pinned_problem(16384, 16384, 16384, SG_DTYPE_F32, SG_MEMORY_DEVICE), one, machine));
  // Links of the host that two devices fill, then one.
  const auto thin = pinned_problem(100000, 32, 32000, SG_DTYPE_F32);
  machine_model narrow = machine;
  for (const double devices : {2, 1}) {
    for (shared_limit &each : narrow.shared) each.in = each.out = each.sum = devices * narrow.devices[0].link_in;
    EXPECT_EQ(devices == 2 ? std::vector{2} : std::vector<int>(), counts(thin, one, narrow)) << devices;
  }
}

// Below some rate of the peers' edges the host's links are better (the answer is the simulator's).
TEST(spread_choice, slow_peers_are_not_used) {
  machine_model machine = shipped_machine("h200x4");
  const problem p = pinned_problem(16384, 16384, 16384, SG_DTYPE_F32);
  double before = 0;
  for (const double rate : {100e9, 50e9, 25e9, 2e9}) {
    for (device_link &each : machine.links) each.bytes_per_second = rate;
    const auto s = make_gemm_plan({p}, machine, plan_request{.device_count = 4});
    EXPECT_GE(s->predicted_seconds, before * 0.99) << "slower edges are no faster";
    before = s->predicted_seconds;
    if (rate == 100e9) {
      EXPECT_GT(s->bytes_peer, 0);
    } else if (rate == 2e9) {
      EXPECT_EQ(s->bytes_peer, 0);
    }
  }
}

// Of four devices the second multiplies at a fiftieth of the others' rate: the plan has the others, and says so.
TEST(spread_choice, a_slow_device_is_left_out_and_named) {
  machine_model machine = shipped_machine("h200x4");
  machine.devices[1].name = "tired";
  for (gemm_rate &each : machine.devices[1].rates) each.flops_per_second /= 50;
  const problem p = pinned_problem(16384, 16384, 16384, SG_DTYPE_F32);
  const auto s = make_gemm_plan({p}, machine, plan_request{.devices = 15});
  EXPECT_EQ((std::vector{device_index{0}, device_index{2}, device_index{3}}), devices_of(*s)) << s->strategy;
  ASSERT_EQ(1u, s->left_out.size());
  EXPECT_EQ(device_index{1}, s->left_out[0].device);
  EXPECT_LT(s->left_out[0].share, 0.05);
  EXPECT_GT(s->left_out[0].seconds, s->predicted_seconds);
  for (const std::string &text : {describe_text(*s, machine), describe_json(*s, machine)})
    EXPECT_NE(std::string::npos, text.find("1 (tired): slow, its share of the work would be ")) << text.substr(0, 2000);
  EXPECT_NE(std::string::npos, describe_text(*s, machine).find("left out: 1 (tired)"));
  // One of two: the plan is the other's.
  machine.devices = {machine.devices[0], machine.devices[1]};
  machine.links.clear(), machine.shared.clear(), machine.nodes.clear();
  const auto alone = make_gemm_plan({p}, machine, plan_request{.devices = 3});
  EXPECT_EQ(std::vector{first_device}, devices_of(*alone));
  ASSERT_EQ(1u, alone->left_out.size());
  EXPECT_NE(std::string::npos, describe_text(*alone, machine).find("left out: 1 (tired): slow"));
  // Not where all are as fast, nor where the request counts the devices.
  const machine_model equal = shipped_machine("h200x4");
  EXPECT_TRUE(make_gemm_plan({p}, equal, plan_request{.devices = 15})->left_out.empty());
  EXPECT_EQ(2u, devices_of(*make_gemm_plan({p}, machine, plan_request{.device_count = 2})).size());
}

TEST(spread_choice, staging_by_the_workers_of_all_decides_for_pageable_memory) {
  machine_model machine = shipped_machine("h200x2");
  for (device_model &each : machine.devices) each.staging = {{8, 67e9}}, each.staging_workers = 8;
  const problem p = pinned_problem(16384, 16384, 16384, SG_DTYPE_BF16, SG_MEMORY_PAGEABLE);
  const auto devices = [&] {
    return lane_numbers(*make_gemm_plan({p}, machine, plan_request{.devices = 3})).devices();
  };
  const auto predicted = [&] {
    return make_gemm_plan({p}, machine, plan_request{.device_count = 2})->predicted_seconds;
  };
  const double bytes = 3 * 2.0 * 16384 * 16384;
  EXPECT_GT(predicted(), bytes / 85e9) << "no faster than the workers";
  EXPECT_EQ(1u, devices()) << "two gain too little";
  machine.staging.back().bytes_per_second = 150e9;
  EXPECT_EQ(2u, devices());
  machine.staging_workers = 8;  // 51 GB/s
  EXPECT_GT(predicted(), bytes / 51e9);
  EXPECT_EQ(1u, devices());
}

TEST(spread_choice, sets_are_peers_with_the_fastest_links) {
  const machine_model eight = shipped_machine("h200x8");
  const auto all = first_devices(8);
  const auto two = best_set(eight, all, 2);
  EXPECT_EQ(2u, two.size());
  EXPECT_EQ(8u, best_set(eight, all, 8).size());
  // Four over two sockets have more of the host's links than four of one.
  const auto four = best_set(eight, all, 4);
  EXPECT_EQ(2, std::count_if(four.begin(), four.end(), [](device_index d) { return number_of(d) < 4; }));
  EXPECT_EQ(first_device, best_set(shipped_machine("unequal2"), first_devices(2), 1).front());
  EXPECT_TRUE(are_peers(eight, all));
  EXPECT_FALSE(are_peers(shipped_machine("pcie4x2"), first_devices(2)));
}

TEST(spread_choice, the_bound_names_what_binds) {
  const machine_model machine = shipped_machine("h200x2");
  const auto limit = [&](std::int64_t m, std::int64_t n, std::int64_t k, sg_dtype type) {
    const problem p = pinned_problem(m, n, k, type);
    return std::string(bound_seconds(machine, {&p, 1}, first_devices(2)).limit);
  };
  EXPECT_EQ("arithmetic", limit(16384, 16384, 16384, SG_DTYPE_F32));
  EXPECT_EQ("copies in and out", limit(16384, 16384, 16384, SG_DTYPE_BF16));
  EXPECT_EQ("copies out", limit(30000, 30000, 300, SG_DTYPE_F64));
  EXPECT_EQ("copies in", limit(100, 100, 100000, SG_DTYPE_F64));
}

TEST(spread_choice, wrong_sets_are_refused) {
  const machine_model machine = shipped_machine("h200x2");
  const problem p = pinned_problem(512, 512, 512, SG_DTYPE_F32);
  const auto refusal = [&](const plan_request &request, const problem &of) {
    try {
      make_gemm_plan({of}, machine, request);
    } catch (const error &e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(std::string::npos, refusal({.devices = 4}, p).find("devices is 0x4, and the machine has 2"));
  EXPECT_NE(std::string::npos, refusal({.device_count = 3}, p).find("device_count is 3; it must be from 0 to 2"));
  EXPECT_NE(std::string::npos, refusal({.devices = 1, .device_count = 2}, p).find("from 0 to 1"));
  const problem resident = pinned_problem(512, 512, 512, SG_DTYPE_F32, SG_MEMORY_DEVICE);
  EXPECT_NE(std::string::npos, refusal({.device_count = 2}, resident).find("cannot be computed by 2 devices"));
}

}  // namespace
}  // namespace sg::test::of_spread_figures
