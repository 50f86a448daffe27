// SPDX-License-Identifier: Apache-2.0
// A PCI device in a folder that looks like /sys.
#include "backends/cuda/properties/pci.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace sg::cuda {
namespace {

TEST(pci, tells_the_link_and_the_numa_node) {
  std::string name = std::filesystem::temp_directory_path() / "sg-pci-XXXXXX";
  const std::string root = mkdtemp(name.data());
  const std::string folder = root + "/bus/pci/devices/0001:ab:1f.0/";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char *file, const char *text) { std::ofstream(folder + file) << text; };
  const pci_device there(1, 0xab, 0x1f, root), absent(1, 0xab, 0x1e, root);
  EXPECT_EQ(-1, there.numa_node());
  EXPECT_EQ(0, there.link_bytes_per_second());
  write("numa_node", "1\n");
  write("max_link_speed", "32.0 GT/s PCIe\n");
  write("max_link_width", "16\n");
  EXPECT_EQ(1, there.numa_node());
  EXPECT_NEAR(63e9, there.link_bytes_per_second(), 0.1e9);
  EXPECT_EQ(-1, absent.numa_node());
  EXPECT_EQ(0, absent.link_bytes_per_second());
  for (const char *unknown : {"-1\n", "", "none\n", "99999\n"}) {
    write("numa_node", unknown);
    EXPECT_EQ(-1, there.numa_node()) << unknown;
  }
  write("max_link_speed", "Unknown\n");
  EXPECT_EQ(0, there.link_bytes_per_second());
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace sg::cuda
