// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/properties/facts.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "backends/cuda/properties/names.hpp"
#include "backends/cuda/properties/nvml.hpp"

namespace sg::cuda {
namespace {

struct pci_address {
  char text[32] = "";
  explicit pci_address(int ordinal) noexcept {
    if (cudaDeviceGetPCIBusId(text, sizeof text, ordinal) != cudaSuccess) text[0] = '\0';
  }
};

sg_backend_peer peer_of(int ordinal, const pci_address &here, int other, const nvml::gpu &own) noexcept {
  sg_backend_peer peer{};
  peer.device = other;
  int reachable = 0;
  if (cudaDeviceCanAccessPeer(&reachable, ordinal, other) != cudaSuccess) reachable = 0;
  if (reachable == 0) {
    peer.link_class = SG_LINK_HOST;
    return peer;
  }
  const int links = nvml::links_between(here.text, pci_address(other).text);
  peer.link_class = links > 0 ? SG_LINK_NVLINK : links == 0 ? SG_LINK_PCIE : SG_LINK_UNKNOWN;
  peer.links = links > 0 ? links : links == 0 ? 1 : 0;
  peer.bytes_per_second = links > 0 ? links * own.bytes_per_second : 0;
  return peer;
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
  print_uuid(properties, out.uuid);
  out.nvlinks = own.links;
  out.nvlink_bytes_per_second = std::max(0, own.links) * own.bytes_per_second;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  for (int other = 0; other < count && out.peer_count < SG_MAX_PEERS; ++other)
    if (other != ordinal) out.peers[out.peer_count++] = peer_of(ordinal, here, other, own);
  cudaGetLastError();  // a failure here is not reported
}

}  // namespace sg::cuda
