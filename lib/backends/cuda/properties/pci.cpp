// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/properties/pci.hpp"

#include <cstdio>
#include <fstream>

namespace sg::cuda {

pci_device::pci_device(int domain, int bus, int device, const std::string &system) {
  char address[64];
  std::snprintf(address, sizeof address, "/bus/pci/devices/%04x:%02x:%02x.0/", unsigned(domain), unsigned(bus),
                unsigned(device));
  folder_ = system + address;
}

template <class Number>
Number pci_device::read(const char *name, Number otherwise) const {
  Number found{};
  std::ifstream file(folder_ + name);
  return file >> found ? found : otherwise;
}

double pci_device::link_bytes_per_second() const {
  const double transfers = read("max_link_speed", 0.0),
               lanes = read("max_link_width", 0.0);  // 10^9 a second, each lane
  if (!(transfers >= 2 && transfers <= 128 && lanes >= 1 && lanes <= 32)) return 0;
  const double coded = transfers < 6 ? 0.8 : 128.0 / 130;
  return transfers * 1e9 / 8 * lanes * coded;
}

int pci_device::numa_node() const {
  const int node = read("numa_node", -1);
  return node >= 0 && node < 1024 ? node : -1;
}

}  // namespace sg::cuda
