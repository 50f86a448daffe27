// SPDX-License-Identifier: Apache-2.0
// Other GPUs of the machine: how they are connected. SG_EMULATED_GPUS=4, and the management library is fake_nvml.c's,
// or with SG_TEST_NVML=absent there is none.
#include <cstdlib>
#include <cstring>

#include "support/harness.hpp"

namespace sg_test {
namespace {

bool nvml_is_absent() {
  const char *asked = std::getenv("SG_TEST_NVML");
  return asked && std::strcmp(asked, "absent") == 0;
}

void expect_peer(const sg_device_info &info, int entry, sg_link_class link_class, int links, double bytes_per_second) {
  const sg_device_peer &peer = info.peers[entry];
  EXPECT_EQ("cuda:" + std::to_string(entry + 1), peer.name);
  EXPECT_EQ(link_class, peer.link_class) << peer.name;
  EXPECT_EQ(links, peer.links) << peer.name;
  EXPECT_DOUBLE_EQ(bytes_per_second, peer.bytes_per_second) << peer.name;
  for (const int reserved : peer.reserved) EXPECT_EQ(0, reserved);
}

TEST(emulated_peers, edges) {
  const context opened = open_context("cuda:0");
  sg_device_info info = SG_DEVICE_INFO_INIT;
  ASSERT_OK(sg_context_device(opened, &info));
  ASSERT_EQ(3, info.peer_count);
  if (nvml_is_absent()) {
    expect_peer(info, 0, SG_LINK_UNKNOWN, 0, 0);
    expect_peer(info, 1, SG_LINK_UNKNOWN, 0, 0);
  } else {
    expect_peer(info, 0, SG_LINK_NVLINK, 18, 18 * 26562e6);
    expect_peer(info, 1, SG_LINK_PCIE, 1, 0);
  }
  expect_peer(info, 2, SG_LINK_HOST, 0, 0);
  std::int32_t devices = 0;
  ASSERT_OK(sg_device_count(&devices));
  for (int i = 0; i < info.peer_count; ++i) {
    EXPECT_LT(info.peers[i].index, devices);
    EXPECT_EQ(info.peers[0].index + i, info.peers[i].index);
  }
  EXPECT_EQ(0, info.peers[3].name[0]);
}

}  // namespace
}  // namespace sg_test
