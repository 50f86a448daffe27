// SPDX-License-Identifier: Apache-2.0
#include "model/machine_model.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace sg {
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

TEST(machine_model, refuses_what_is_no_machine) {
  EXPECT_THROW(machine_of({}), error);
  EXPECT_THROW(machine_of({device_named("a"), device_named("a")}), error);
  EXPECT_THROW(machine_of(std::vector<found_device>(most_devices + 1)), error);
}

}  // namespace
}  // namespace sg
