// SPDX-License-Identifier: Apache-2.0
// Properties of GPUs from the driver's management library (NVML): MIG mode and NVLinks. Opened on first use; if it is
// absent or fails, properties are unknown: never an error.
#pragma once

#include <cstdint>

namespace sg::cuda::nvml {

struct gpu {
  int mig_mode = -1;            // 0: off, 1: on, -1: unknown
  int links = -1;               // active NVLinks; -1: unknown
  double bytes_per_second = 0;  // of one link, each way; 0: unknown
};

// For the GPU at a PCI address in the runtime's notation: "0000:1b:00.0". Any thread.
gpu facts_of(const char *pci_address) noexcept;

// NVLinks from one GPU to another, directly or through switches; -1: unknown.
int links_between(const char *pci_address, const char *other) noexcept;

}  // namespace sg::cuda::nvml
