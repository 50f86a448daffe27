// SPDX-License-Identifier: Apache-2.0
// What the kernel tells of a PCI device, below /sys.
#pragma once

#include <string>

namespace sg::cuda {

class pci_device {
 public:
  // `system`: /sys.
  pci_device(int domain, int bus, int device, const std::string &system = "/sys");

  // The link's nominal rate, in bytes per second each way; 0: unknown.
  double link_bytes_per_second() const;
  int numa_node() const;  // the closest of the host; -1: unknown, as in most virtual machines

 private:
  template <class Number>
  Number read(const char *name, Number otherwise) const;

  std::string folder_;
};

}  // namespace sg::cuda
