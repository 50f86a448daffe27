/* SPDX-License-Identifier: Apache-2.0 */
/* A management library of five GPUs: 01 and 02 behind NVLink switches (18 links each, one of 02's down), 03 on PCIe
 * alone and with MIG on, 04 and 05 with six links, four of which join them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
struct gpu {
  unsigned bus;
};
struct pci_info {
  char legacy_address[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char address[32];
};
struct field_value {
  unsigned field, scope;
  long long timestamp, latency_us;
  int type, outcome;
  union {
    double as_double;
    unsigned as_unsigned_int;
  } value;
};
enum { success = 0, invalid = 2, not_supported = 3, not_found = 6 };

static struct gpu gpus[] = {{1}, {2}, {3}, {4}, {5}};

API int nvmlInit_v2(void) { return success; }

API int nvmlDeviceGetHandleByPciBusId_v2(const char *address, struct gpu **out) {
  unsigned domain, bus, device, function;
  if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) return invalid;
  if (domain != 0 || bus < 1 || bus > 5) return not_found;
  *out = &gpus[bus - 1];
  return success;
}

API int nvmlDeviceGetMigMode(struct gpu *of, unsigned *current, unsigned *pending) {
  *current = *pending = of->bus == 3;
  return of->bus >= 4 ? not_supported : success;
}

API int nvmlDeviceGetNvLinkState(struct gpu *of, unsigned link, int *active) {
  if (of->bus == 3 || link >= (of->bus >= 4 ? 6u : 18u)) return not_supported;
  *active = !(of->bus == 2 && link == 7);
  return success;
}

API int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu *of, unsigned link, struct pci_info *out) {
  memset(out, 0, sizeof *out);
  out->bus = of->bus >= 4 && link < 4 ? 9 - of->bus : 0xc0 + link;
  return success;
}

API int nvmlDeviceGetPciInfo_v3(struct gpu *of, struct pci_info *out) {
  memset(out, 0, sizeof *out);
  out->bus = of->bus;
  return success;
}

API int nvmlDeviceGetFieldValues(struct gpu *of, int count, struct field_value *values) {
  if (count != 1 || values->field != 90) return invalid;
  values->outcome = of->bus == 5 ? not_supported : success;
  values->type = of->bus == 4 ? 0 : 1;
  if (of->bus == 4)
    values->value.as_double = 25781;
  else
    values->value.as_unsigned_int = 26562;
  return success;
}

API int nvmlDeviceGetP2PStatus(struct gpu *from, struct gpu *to, int capability, int *status) {
  if (capability != 2) return invalid;
  *status = (from->bus <= 2 && to->bus <= 2) || (from->bus >= 4 && to->bus >= 4) ? 0 : 5;
  return success;
}
