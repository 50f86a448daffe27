// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/properties/nvml.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace sg::cuda::nvml {
namespace {

// From nvml.h, which the toolkit may lack: the values and layouts are the library's ABI.
constexpr int success = 0;
constexpr unsigned most_links = 18;
constexpr unsigned link_speed_field =
    90;                           // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON: 10^6 bytes a second of each active link
constexpr int p2p_by_nvlink = 2;  // NVML_P2P_CAPS_INDEX_NVLINK
enum value_type { is_double, is_unsigned_int, is_unsigned_long, is_unsigned_long_long };

using device = struct nvmlDevice_st *;

struct field_value {
  unsigned field, scope;
  long long timestamp, latency_us;
  int type, outcome;
  union {
    double as_double;
    unsigned as_unsigned_int;
    unsigned long as_unsigned_long;
    unsigned long long as_unsigned_long_long;
  } value;
};
static_assert(sizeof(field_value) == 40);

struct pci_info {
  char legacy_address[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char address[32];
};
static_assert(sizeof(pci_info) == 68);

struct library {
  int (*init)();
  int (*by_address)(const char *, device *);
  int (*mig_mode)(device, unsigned *, unsigned *);
  int (*link_state)(device, unsigned, int *);
  int (*link_remote)(device, unsigned, pci_info *);
  int (*pci_of)(device, pci_info *);
  int (*fields)(device, int, field_value *);
  int (*p2p_status)(device, device, int, int *);

  bool usable = false;

  library() noexcept {
    void *found = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (found == nullptr) return;
    const auto find = [found](auto &function, const char *name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(found, name));
      return function != nullptr;
    };
    // Every driver has these two; other functions are optional.
    usable = find(init, "nvmlInit_v2") && find(by_address, "nvmlDeviceGetHandleByPciBusId_v2") && init() == success;
    find(mig_mode, "nvmlDeviceGetMigMode");
    find(link_state, "nvmlDeviceGetNvLinkState");
    find(link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    find(pci_of, "nvmlDeviceGetPciInfo_v3");
    find(fields, "nvmlDeviceGetFieldValues");
    find(p2p_status, "nvmlDeviceGetP2PStatus");
  }
};

// Opened once and kept: the driver's library stays initialised, as for its other users in the process.
const library &the_library() noexcept {
  static const library only;
  return only;
}

device device_at(const char *pci_address) noexcept {
  device found = nullptr;
  const library &nvml = the_library();
  return nvml.usable && nvml.by_address(pci_address, &found) == success ? found : nullptr;
}

bool is_active(device of, unsigned link) noexcept {
  int state = 0;
  return the_library().link_state(of, link, &state) == success && state == 1;
}

double rate_of(device of) noexcept {
  const library &nvml = the_library();
  field_value speed{};
  speed.field = link_speed_field;
  if (nvml.fields == nullptr || nvml.fields(of, 1, &speed) != success || speed.outcome != success) return 0;
  switch (speed.type) {
    case is_double: return speed.value.as_double * 1e6;
    case is_unsigned_int: return speed.value.as_unsigned_int * 1e6;
    case is_unsigned_long: return double(speed.value.as_unsigned_long) * 1e6;
    case is_unsigned_long_long: return double(speed.value.as_unsigned_long_long) * 1e6;
    default: return 0;
  }
}

int active_links(device of) noexcept {
  if (the_library().link_state == nullptr) return -1;
  int count = 0;
  for (unsigned link = 0; link < most_links; ++link) count += is_active(of, link);
  return count;
}

bool same_place(const pci_info &a, const pci_info &b) noexcept {
  return a.domain == b.domain && a.bus == b.bus && a.device == b.device;
}

}  // namespace

gpu facts_of(const char *pci_address) noexcept {
  gpu facts;
  const device of = device_at(pci_address);
  if (of == nullptr) return facts;
  const library &nvml = the_library();
  constexpr int not_supported = 3;  // for a chip that cannot be partitioned
  unsigned current = 0, pending = 0;
  const int outcome = nvml.mig_mode != nullptr ? nvml.mig_mode(of, &current, &pending) : -1;
  facts.mig_mode = outcome == success ? current == 1 : outcome == not_supported ? 0 : -1;
  facts.links = active_links(of);
  if (facts.links > 0) facts.bytes_per_second = rate_of(of);
  return facts;
}

int links_between(const char *pci_address, const char *other) noexcept {
  const library &nvml = the_library();
  const device from = device_at(pci_address), to = device_at(other);
  int state = -1;
  if (from == nullptr || to == nullptr || nvml.p2p_status == nullptr ||
      nvml.p2p_status(from, to, p2p_by_nvlink, &state) != success)
    return -1;
  if (state != 0) return 0;
  const int all = active_links(from);
  pci_info wanted{};
  if (all <= 0 || nvml.link_remote == nullptr || nvml.pci_of == nullptr || nvml.pci_of(to, &wanted) != success)
    return all;
  int direct = 0;
  for (unsigned link = 0; link < most_links; ++link) {
    pci_info remote{};
    direct += is_active(from, link) && nvml.link_remote(from, link, &remote) == success && same_place(remote, wanted);
  }
  return direct > 0 ? direct : all;  // no direct link: all lead to switches
}

}  // namespace sg::cuda::nvml
