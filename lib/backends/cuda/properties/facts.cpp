// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/properties/facts.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "backends/cuda/properties/nvml.hpp"

namespace sg::cuda {
namespace {

struct pci_address {
  char text[32] = "";
  explicit pci_address(int ordinal) noexcept {
    if (cudaDeviceGetPCIBusId(text, sizeof text, ordinal) != cudaSuccess) text[0] = '\0';
  }
};

// The runtime's name of a slice ends with its profile: "NVIDIA H200 MIG 1g.18gb".
const char *profile_in(const char *name) noexcept {
  const char *found = std::strstr(name, " MIG ");
  return found == nullptr ? nullptr : found + 5;
}

// "cuda:1: 18 NVLinks, 478 GB/s"
void describe_peer(int ordinal, const pci_address &here, int peer, const nvml::gpu &own, char *text,
                   std::size_t size) noexcept {
  int reachable = 0;
  const pci_address there(peer);
  if (cudaDeviceCanAccessPeer(&reachable, ordinal, peer) != cudaSuccess) reachable = 0;
  const int links = nvml::links_between(here.text, there.text);
  if (reachable == 0)
    std::snprintf(text, size, "cuda:%d: through the host", peer);
  else if (links > 0 && own.bytes_per_second > 0)
    std::snprintf(text, size, "cuda:%d: %d NVLinks, %.0f GB/s", peer, links, links * own.bytes_per_second / 1e9);
  else if (links > 0)
    std::snprintf(text, size, "cuda:%d: %d NVLinks", peer, links);
  else
    std::snprintf(text, size, "cuda:%d: %s", peer, links == 0 ? "PCIe" : "direct");
}

}  // namespace

void describe(int ordinal, const cudaDeviceProp &properties, sg_backend_facts &out) noexcept {
  const pci_address here(ordinal);
  const nvml::gpu own = nvml::facts_of(here.text);
  const char *profile = profile_in(properties.name);
  std::snprintf(out.mig, sizeof out.mig, "%s",
                profile != nullptr  ? profile
                : own.mig_mode == 0 ? "off"
                : own.mig_mode == 1 ? "on"
                                    : "unknown");
  out.nvlinks = own.links;
  out.nvlink_bytes_per_second = std::max(0, own.links) * own.bytes_per_second;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  std::size_t used = 0;
  for (int peer = 0; peer < count; ++peer) {
    if (peer == ordinal) continue;
    char text[80];
    describe_peer(ordinal, here, peer, own, text, sizeof text);
    const std::size_t needed = std::strlen(text) + (used > 0 ? 2 : 0);
    if (used + needed >= sizeof out.peers) break;
    std::snprintf(out.peers + used, sizeof out.peers - used, "%s%s", used > 0 ? "; " : "", text);
    used += needed;
  }
  cudaGetLastError();  // what went wrong here is nobody's failure
}

}  // namespace sg::cuda
