// SPDX-License-Identifier: Apache-2.0
#include "model/machine_model.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/calibration.hpp"
#include "problems.hpp"

namespace sg::test::of_machines {
namespace {

found_device device_named(const char *name, std::vector<found_device::peer> peers = {}) {
  found_device made{name, {}, std::move(peers)};
  made.model.name = name;
  return made;
}

TEST(machine_model, one_device_has_no_links) {
  const machine_model machine = machine_of({device_named("cuda:0", {{"cuda:1", SG_LINK_NVLINK, 18, 4e11}})});
  ASSERT_EQ(1u, machine.devices.size());
  EXPECT_EQ("cuda:0", machine.device(first_device).name);
  EXPECT_TRUE(machine.links.empty());
}

TEST(machine_model, links_join_devices_of_the_machine) {
  const machine_model machine = machine_of({
      device_named("cuda:2", {{"cuda:0", SG_LINK_NVLINK, 18, 4e11}, {"cuda:1", SG_LINK_HOST, 0, 0}}),
      device_named("cpu"),
      device_named("cuda:0", {{"cuda:1", SG_LINK_PCIE, 1, 0}, {"cuda:2", SG_LINK_NVLINK, 17, 3e11}}),
  });
  ASSERT_EQ(3u, machine.devices.size());
  EXPECT_EQ("cuda:0", machine.device(device_index{2}).name);
  ASSERT_EQ(1u, machine.links.size());
  const device_link expected{device_index{0}, device_index{2}, SG_LINK_NVLINK, 18, 4e11};
  EXPECT_EQ(expected, machine.links[0]);
  EXPECT_EQ(&machine.links[0], machine.link_between(device_index{0}, device_index{2}));
  EXPECT_EQ(&machine.links[0], machine.link_between(device_index{2}, device_index{0}));
  EXPECT_EQ(nullptr, machine.link_between(device_index{0}, device_index{1}));
  EXPECT_EQ(nullptr, machine.link_between(device_index{0}, device_index{0}));
}

TEST(machine_model, either_end_may_know_a_link) {
  const machine_model machine = machine_of({
      device_named("a", {{"b", SG_LINK_NVLINK, 4, 0}}),
      device_named("b", {{"a", SG_LINK_NVLINK, 4, 1e11}, {"c", SG_LINK_HOST, 0, 0}}),
      device_named("c", {{"a", SG_LINK_PCIE, 1, 2e10}}),
  });
  ASSERT_EQ(3u, machine.links.size());
  EXPECT_EQ(1e11, machine.link_between(device_index{0}, device_index{1})->bytes_per_second);
  EXPECT_EQ(SG_LINK_PCIE, machine.link_between(device_index{0}, device_index{2})->link_class);
  EXPECT_EQ(SG_LINK_HOST, machine.link_between(device_index{2}, device_index{1})->link_class);
}

// A driver in a virtual machine may not say it; a link of rate 0 would never be used.
TEST(machine_model, nvlinks_of_an_unknown_rate_have_that_of_the_slowest_generation) {
  machine_model machine = machine_of({
      device_named("a", {{"b", SG_LINK_NVLINK, 18, 0}, {"c", SG_LINK_PCIE, 1, 0}}),
      device_named("b", {{"a", SG_LINK_NVLINK, 18, 0}}),
      device_named("c"),
  });
  EXPECT_EQ(0, machine.link_between(device_index{0}, device_index{1})->bytes_per_second) << "it can be measured";
  assume_rates(machine.links);
  EXPECT_EQ(450e9, machine.link_between(device_index{0}, device_index{1})->bytes_per_second);
  EXPECT_EQ(0, machine.link_between(device_index{0}, device_index{2})->bytes_per_second);
}

TEST(machine_model, several_devices_share_an_assumed_sum) {
  const machine_model two = machine_of({device_named("a"), device_named("b")});
  ASSERT_EQ(1u, two.shared.size());
  EXPECT_EQ((shared_limit{"host", {device_index{0}, device_index{1}}, 0, 0, 150e9}), two.shared[0]);
  EXPECT_TRUE(machine_of({device_named("a")}).shared.empty());
}

TEST(machine_model, staging_workers_leave_cores_to_the_application) {
  machine_model machine = shipped_machine("h200x2");
  const auto with_cores = [&](std::int32_t cores) {
    machine.nodes[0].cores = cores;
    return workers_of(machine);
  };
  EXPECT_EQ(16, with_cores(32)) << "8 for each device";
  EXPECT_EQ(12, with_cores(16)) << "of three quarters of the cores";
  machine.staging_workers = 5;
  EXPECT_EQ(5, workers_of(machine)) << "the context's";
  machine.staging_workers = 0;
  machine.nodes.clear();
  EXPECT_EQ(0, workers_of(machine)) << "unknown";
}

TEST(machine_model, refuses_what_is_no_machine) {
  EXPECT_THROW(machine_of({}), error);
  EXPECT_THROW(machine_of({device_named("a"), device_named("a")}), error);
  EXPECT_THROW(machine_of(std::vector<found_device>(most_devices + 1)), error);
}

TEST(machine_model, shipped_machines_are_read_and_written) {
  for (const char *name : {"h200x2", "h200x4", "h200x8", "pcie4x2", "unequal2"}) {
    const machine_model machine = shipped_machine(name);
    EXPECT_EQ(machine.name, name);
    EXPECT_GE(machine.devices.size(), 2u);
    EXPECT_EQ(parse_machine_model(machine_text(machine)), machine) << machine_text(machine);
  }
  machine_model apart = shipped_machine("h200x2");
  apart.links[0] = {device_index{0}, device_index{1}, SG_LINK_HOST, 0, 0, "no peer path between them"};
  EXPECT_EQ(parse_machine_model(machine_text(apart)), apart) << machine_text(apart);
  const machine_model four = shipped_machine("h200x4");
  EXPECT_EQ(6u, four.links.size()) << "each pair";
  EXPECT_EQ(392e9, four.link_between(device_index{1}, device_index{3})->bytes_per_second);
  EXPECT_EQ(172e9, four.shared.at(0).sum);
  EXPECT_TRUE(shipped_machine("pcie4x2").links.empty());
  EXPECT_FALSE(shipped_machine("unequal2").devices[0] == shipped_machine("unequal2").devices[1]);
}

// The text of a machine of two H200 with another value at a JSON pointer.
std::string changed(const char *where, const nlohmann::json &value) {
  nlohmann::json text = nlohmann::json::parse(machine_text(shipped_machine("h200x2")));
  text[nlohmann::json::json_pointer(where)] = value;
  return text.dump();
}

TEST(machine_model, each_defect_is_refused_by_its_key) {
  using nlohmann::json;
  EXPECT_EQ(parse_machine_model(changed("/name", "x")).name, "x");
  const struct {
    const char *where;
    json value;
    const char *named;
  } defects[] = {
      {"/name", 3, "'name' must be a text"},
      {"/devices", json::array(), "'devices' needs at least one device"},
      {"/devices/0/count", 257, "'devices[0].count' must be a number from 1 to 256"},
      {"/devices/0/model", "h200", "'devices[0].model' must be a device model"},
      {"/devices/0/model/link/in_bytes_per_second", 0, "'devices[0].model.link.in_bytes_per_second' must be a number"},
      {"/peers/0/between", {0, 2}, "'peers[0].between' must be a number from 0 to 1"},
      {"/peers/0/between", {1, 1}, "'peers[0].between' must name at least two devices, each once"},
      {"/peers/0/between", {0.5, 1}, "'peers[0].between' must be a whole number"},
      {"/peers/1",
       {{"between", {0, 1}}, {"class", "pcie"}, {"bytes_per_second", 1}},
       "'peers[1].between' names a pair"},
      {"/peers/0/class", "wire", "'peers[0].class' names nothing known: 'wire'"},
      {"/shared/0/sum", -1, "'shared[0].sum' must be a number from 0"},
      {"/shared/0/speed", 1, "'shared[0].speed' is not a known key"},
      {"/host/staging/0/workers", 0, "'host.staging[0].workers' must be a number from 1"},
      {"/host/nodes/0/devices", {0, 0}, "'host.nodes[0].devices' must name devices, each once"},
      {"/network", 1, "'network' is not a known key"},
  };
  for (const auto &defect : defects) {
    try {
      parse_machine_model(changed(defect.where, defect.value));
      ADD_FAILURE() << defect.where << " was accepted";
    } catch (const error &e) {
      EXPECT_EQ(SG_STATUS_INVALID_ARGUMENT, e.status());
      EXPECT_NE(std::string::npos, std::string(e.what()).find(defect.named)) << e.what() << " for " << defect.named;
    }
  }
  nlohmann::json crossed = nlohmann::json::parse(machine_text(shipped_machine("h200x4")));
  crossed["shared"] = {{{"name", "a"}, {"devices", {0, 1}}}, {{"name", "b"}, {"devices", {1, 2}}}};
  EXPECT_THROW(parse_machine_model(crossed.dump()), error) << "sets are nested or disjoint";
  crossed["shared"][1]["devices"] = {0, 1, 2};
  EXPECT_EQ(2u, parse_machine_model(crossed.dump()).shared.size());
}

TEST(machine_model, links_of_each_class_are_read_and_written) {
  for (const sg_link_class each : {SG_LINK_UNKNOWN, SG_LINK_HOST, SG_LINK_PCIE, SG_LINK_NVLINK}) {
    machine_model machine = shipped_machine("h200x2");
    machine.links[0].link_class = each;
    EXPECT_EQ(machine, parse_machine_model(machine_text(machine)));
  }
}

class measured_machines : public ::testing::Test {
 protected:
  measured_machines() {
    for (std::size_t i = 0; i < own_.devices.size(); ++i) {
      names_.push_back("sim:h200x2/" + std::to_string(i));
      measured_.devices[i].calibrated_device = names_.back();
    }
    names_[1] += "?timing-only";
    measured_.links[0].bytes_per_second = 3e11;
    measured_.shared = {{"host", {device_index{0}, device_index{1}}, 9e10, 0, 12e10}};
    measured_.staging = {{4, 3e10}, {16, 6e10, 5e10, 7e10}};
  }

  machine_model taken() const { return with_measured(own_, measured_, names_); }
  void is_refused(const char *why) const {
    try {
      taken();
      ADD_FAILURE() << "accepted; expected: " << why;
    } catch (const error &e) {
      EXPECT_NE(std::string::npos, std::string(e.what()).find(why)) << e.what();
    }
  }

  machine_model own_ = shipped_machine("h200x2"), measured_ = own_;
  std::vector<std::string> names_;
};

TEST_F(measured_machines, replace_what_devices_share) {
  measured_.devices[1].link_in = 4e10;
  measured_.links[0].links = 7;
  measured_.nodes.clear();
  const machine_model m = taken();
  EXPECT_EQ(own_.devices[0].link_in, m.devices[0].link_in);
  EXPECT_EQ(4e10, m.devices[1].link_in);
  EXPECT_EQ(3e11, m.links.at(0).bytes_per_second);
  EXPECT_EQ(own_.links[0].links, m.links[0].links);
  EXPECT_EQ(measured_.shared, m.shared);
  EXPECT_EQ(measured_.staging, m.staging);
  EXPECT_EQ(m, parse_machine_model(machine_text(m)));
  EXPECT_EQ(own_.nodes, m.nodes);
  measured_.shared.clear();
  measured_.staging.clear();
  EXPECT_TRUE(taken().shared.empty()) << "none was found";
  EXPECT_EQ(own_.staging, taken().staging) << "none was measured";
}

// The workers of one device, measured on their own, may have waited for its link.
TEST_F(measured_machines, have_workers_as_fast_on_one_device_as_on_all) {
  for (device_model &each : measured_.devices) each.staging = own_.devices[0].staging;
  ASSERT_FALSE(own_.devices[0].staging.empty());
  const staging_rate first = own_.devices[0].staging[0];
  measured_.staging = {{first.workers, 1.5 * first.bytes_per_second}};
  EXPECT_EQ(1.5 * first.bytes_per_second, taken().devices[1].staging[0].bytes_per_second);
  measured_.staging = {{first.workers, 0.9 * first.bytes_per_second}};
  EXPECT_EQ(first.bytes_per_second, taken().devices[1].staging[0].bytes_per_second);
  measured_.staging[0].unpacking = 0.7 * first.bytes_per_second;
  EXPECT_EQ(0.7 * first.bytes_per_second, taken().devices[1].staging[0].unpacking);
  measured_.devices[1].staging[0].unpacking = 0.8 * first.bytes_per_second;
  EXPECT_EQ(0.8 * first.bytes_per_second, taken().devices[1].staging[0].unpacking);
}

TEST_F(measured_machines, have_links_of_the_drivers_classes) {
  measured_.links[0].link_class = SG_LINK_PCIE;
  EXPECT_EQ(own_.links, taken().links);
  own_.links.clear();
  EXPECT_TRUE(taken().links.empty());
  measured_.links[0].link_class = SG_LINK_HOST;
  EXPECT_EQ(measured_.links, taken().links) << "one over the host needs no driver";
  measured_.links[0].bytes_per_second = 0;
  EXPECT_TRUE(taken().links.empty());
}

TEST_F(measured_machines, are_refused_for_other_devices) {
  std::swap(names_[0], names_[1]);
  is_refused("sim:h200x2/1?timing-only: it was measured on another device");
  names_.resize(1);
  own_.devices.resize(1);
  is_refused("it was measured on 2 devices, not on these 1");
}

TEST_F(measured_machines, are_refused_with_rates_beyond_belief) {
  const machine_model good = measured_;
  const auto with = [&](auto change, const char *why) {
    measured_ = good;
    change(measured_);
    is_refused(why);
  };
  with([](machine_model &m) { m.links[0].bytes_per_second = 1; }, "rate between devices of 1 is beyond belief");
  with([](machine_model &m) { m.shared[0].sum = 1e16; }, "rate of links together of 1e+16 is beyond belief");
  with([](machine_model &m) { m.shared[0].in = 1e3; }, "rate of links together of 1000 is beyond belief");
  with([](machine_model &m) { m.staging[1].bytes_per_second = 1e3; }, "staging rate of 1000 is beyond belief");
  with([](machine_model &m) { m.staging[1].unpacking = 1e3; }, "staging rate of 1000 is beyond belief");
  with([](machine_model &m) { m.staging[1].both_ways = 1e16; }, "staging rate of 1e+16 is beyond belief");
  with([](machine_model &m) { m.devices[0].staging[0].unpacking = 1; }, "staging rate of 1 is beyond belief");
  with([](machine_model &m) { m.devices[1].link_out = 1; }, "link rate of 1 is beyond belief");
}

}  // namespace
}  // namespace sg::test::of_machines
