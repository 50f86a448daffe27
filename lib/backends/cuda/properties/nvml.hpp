// SPDX-License-Identifier: Apache-2.0
// What the driver's management library (NVML) says of GPUs: MIG mode and NVLinks. It is opened when it is first asked,
// and where it is absent, or does not say, nothing is known: never an error.
#pragma once

#include <cstdint>

namespace sg::cuda::nvml {

struct gpu {
  int mig_mode = -1;            // 0: off, 1: on, -1: unknown
  int links = -1;               // active NVLinks; -1: unknown
  double bytes_per_second = 0;  // of one link, each way; 0: unknown
};

// Of the GPU at a PCI address as the runtime writes it: "0000:1b:00.0". Any thread.
gpu facts_of(const char *pci_address) noexcept;

// NVLinks from one GPU that lead to another, by way of switches too; -1: unknown.
int links_between(const char *pci_address, const char *other) noexcept;

}  // namespace sg::cuda::nvml
