// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "gpu.hpp"
#include "partitions.hpp"
#include "state.hpp"

#define API extern "C" __attribute__((visibility("default")))

using namespace emulated;

namespace {

std::vector<std::string> items_of(const char *variable) {
  std::vector<std::string> items;
  std::istringstream text(variable ? variable : "");
  for (std::string item; std::getline(text, item, ',');) items.push_back(item);
  return items;
}

struct machine {
  std::vector<std::string> profiles = items_of(std::getenv("SG_EMULATED_MIG"));  // of instances; empty: whole GPUs
  int count = 1;
  std::vector<int> visible;  // by ordinal

  machine() {
    const char *const text = std::getenv("SG_EMULATED_GPUS");
    count = profiles.empty() ? text ? std::atoi(text) : 1 : static_cast<int>(profiles.size());
    count = std::min(count, most_gpus);
    const char *const chosen = std::getenv("CUDA_VISIBLE_DEVICES");
    if (!chosen) {
      for (int i = 0; i < count; ++i) visible.push_back(i);
      return;
    }
    for (const std::string &item : items_of(chosen)) {  // up to the first that is none
      const int number = number_of(item);
      if (number < 0) break;
      visible.push_back(number);
    }
  }

  static const machine &only() {
    static const machine *const made = new machine;
    return *made;
  }

  bool has_instances() const { return !profiles.empty(); }
  cudaUUID_t uuid(int number) const {
    cudaUUID_t made{};
    for (int i = 0; i < 16; ++i) made.bytes[i] = static_cast<char>(16 * i + number);
    return made;
  }
  // An index, or the beginning of a UUID.
  int number_of(const std::string &item) const {
    if (!item.empty() && item.find_first_not_of("0123456789") == item.npos) {
      const int number = std::atoi(item.c_str());
      return number < count ? number : -1;
    }
    for (int number = 0; number < count && item.size() > 4; ++number) {
      const cudaUUID_t own = uuid(number);
      std::string text = has_instances() ? "MIG-" : "GPU-";
      for (int i = 0; i < 16; ++i) {
        char byte[8];
        const bool joins = i == 4 || i == 6 || i == 8 || i == 10;
        std::snprintf(byte, sizeof byte, "%s%02x", joins ? "-" : "",
                      unsigned(static_cast<unsigned char>(own.bytes[i])));
        text += byte;
      }
      if (text.starts_with(item)) return number;
    }
    return -1;
  }
};

// The GPU's number in the machine; -1: there is none with that ordinal.
int number_at(int ordinal) {
  const std::vector<int> &visible = machine::only().visible;
  return ordinal < 0 || ordinal >= static_cast<int>(visible.size()) ? -1 : visible[static_cast<std::size_t>(ordinal)];
}

}  // namespace

int emulated::visible_gpus() { return static_cast<int>(machine::only().visible.size()); }

bool emulated::are_linked(int ordinal, int other) {
  const int one = number_at(ordinal), two = number_at(other);
  return !machine::only().has_instances() && one >= 0 && two >= 0 && one < 3 && two < 3 && one != two;
}

API cudaError_t cudaGetDeviceCount(int *out) {
  *out = visible_gpus();
  return *out > 0 ? cudaSuccess : refuse(cudaErrorNoDevice);
}

API cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int ordinal) {
  if (const cudaError_t error = enter(call::anywhere)) return error;
  const int number = number_at(ordinal);
  if (number < 0) return refuse(cudaErrorInvalidDevice);
  *out = {};
  const machine &all = machine::only();
  std::snprintf(out->name, sizeof out->name, "an emulated GPU");
  out->totalGlobalMem = memory_bytes;
  out->multiProcessorCount = multiprocessors;
  if (all.has_instances()) {
    const std::string &profile = all.profiles[static_cast<std::size_t>(number)];
    std::snprintf(out->name, sizeof out->name, "an emulated GPU MIG %s", profile.c_str());
    const int slices = std::clamp(std::atoi(profile.c_str()), 1, 8);
    out->totalGlobalMem = memory_bytes / 8 * static_cast<std::size_t>(slices);
    out->multiProcessorCount = static_cast<int>(multiprocessors) / 8 * slices;
  }
  out->uuid = all.uuid(number);
  out->major = 9;
  out->asyncEngineCount = 3;
  out->memoryBusWidth = 5120;
  out->memPitch = 2147483647;
  out->pciDomainID = 0xffff;  // there is no such device below /sys
  return cudaSuccess;
}

API cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int ordinal) {
  const bool is_absent = machine::only().count == 1;                             // from the management library, too
  const int bus = machine::only().has_instances() ? 3 : number_at(ordinal) + 1;  // all of one GPU
  std::snprintf(out, static_cast<std::size_t>(size), "%04x:%02x:00.0", is_absent ? 0xffffu : 0u,
                unsigned(is_absent ? 0 : bus));
  return cudaSuccess;
}

API cudaError_t cudaDeviceCanAccessPeer(int *out, int device, int peer) {
  *out = are_linked(device, peer);
  return cudaSuccess;
}
