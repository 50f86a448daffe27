// SPDX-License-Identifier: Apache-2.0
// How the plugin reads the management library: fake_nvml.c, or, with SG_TEST_NVML=absent, none.
#include "backends/cuda/properties/nvml.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace sg::cuda::nvml {
namespace {

class management : public testing::Test {
 protected:
  static bool absent() {
    const char *asked = std::getenv("SG_TEST_NVML");
    return asked != nullptr && std::strcmp(asked, "absent") == 0;
  }
};

TEST_F(management, without_the_library_nothing_is_known) {
  if (!absent()) GTEST_SKIP() << "it is there";
  if (dlopen("libnvidia-ml.so.1", RTLD_NOW) != nullptr) GTEST_SKIP() << "this machine has a GPU";
  const gpu known = facts_of("0000:01:00.0");
  EXPECT_EQ(-1, known.mig_mode);
  EXPECT_EQ(-1, known.links);
  EXPECT_EQ(0, known.bytes_per_second);
  EXPECT_EQ(-1, links_between("0000:01:00.0", "0000:02:00.0"));
}

TEST_F(management, mode_and_links_of_a_gpu) {
  if (absent()) GTEST_SKIP();
  const gpu one = facts_of("0000:01:00.0"), two = facts_of("0000:02:00.0"), three = facts_of("0000:03:00.0"),
            four = facts_of("0000:04:00.0"), five = facts_of("0000:05:00.0");
  EXPECT_EQ(0, one.mig_mode);
  EXPECT_EQ(1, three.mig_mode);
  EXPECT_EQ(0, four.mig_mode) << "a chip that cannot be partitioned";
  EXPECT_EQ(18, one.links);
  EXPECT_EQ(17, two.links) << "one is down";
  EXPECT_EQ(0, three.links);
  EXPECT_EQ(6, four.links);
  EXPECT_EQ(26562e6, one.bytes_per_second);
  EXPECT_EQ(0, three.bytes_per_second);
  EXPECT_EQ(25781e6, four.bytes_per_second);
  EXPECT_EQ(0, five.bytes_per_second) << "unknown";
}

TEST_F(management, links_between_two) {
  if (absent()) GTEST_SKIP();
  EXPECT_EQ(18, links_between("0000:01:00.0", "0000:02:00.0")) << "by switches, all of them";
  EXPECT_EQ(17, links_between("0000:02:00.0", "0000:01:00.0"));
  EXPECT_EQ(0, links_between("0000:01:00.0", "0000:03:00.0"));
  EXPECT_EQ(4, links_between("0000:04:00.0", "0000:05:00.0")) << "the others lead elsewhere";
}

TEST_F(management, an_unknown_pci_address) {
  if (absent()) GTEST_SKIP();
  EXPECT_EQ(-1, facts_of("0000:77:00.0").links);
  EXPECT_EQ(-1, facts_of("").mig_mode);
  EXPECT_EQ(-1, links_between("0000:01:00.0", "nonsense"));
}

}  // namespace
}  // namespace sg::cuda::nvml
