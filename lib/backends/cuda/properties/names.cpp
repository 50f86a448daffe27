// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/properties/names.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sg::cuda {

namespace {

// The number in all of the text; -1: it is none.
int number_in(const char *text) noexcept {
  int value = -1;
  const char *end = text + std::strlen(text);
  const auto [stop, fault] = std::from_chars(text, end, value);
  return fault == std::errc{} && stop == end && value >= 0 ? value : -1;
}

// The process's number on its host: of this library's own variable, Open MPI, MPICH, Slurm, PALS, Flux.
int local_rank() noexcept {
  for (const char *name : {"SG_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID",
                           "PALS_LOCAL_RANKID", "FLUX_TASK_LOCAL_ID"})
    if (const char *value = std::getenv(name)) return number_in(value);
  return -1;
}

}  // namespace

const char *profile_in(const char *name) noexcept {
  const char *found = std::strstr(name, " MIG ");
  return found == nullptr ? nullptr : found + 5;
}

void print_uuid(const cudaDeviceProp &of, char (&text)[48]) noexcept {
  char *at = text + std::snprintf(text, sizeof text, "%s-", profile_in(of.name) != nullptr ? "MIG" : "GPU");
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
    at += std::snprintf(at, 3, "%02x", static_cast<unsigned>(static_cast<unsigned char>(of.uuid.bytes[i])));
  }
}

int ordinal_of(const char *name, int count) noexcept {
  int found = -1;
  if (std::strcmp(name, "local") == 0) {
    const int rank = local_rank();
    found = count == 1 ? 0 : rank >= 0 && count > 0 ? rank % count : -1;
  } else if (std::strncmp(name, "GPU-", 4) == 0 || std::strncmp(name, "MIG-", 4) == 0) {
    for (int i = 0; i < count && found < 0; ++i) {
      cudaDeviceProp facts{};
      char uuid[48] = "";
      if (cudaGetDeviceProperties(&facts, i) != cudaSuccess) {
        cudaGetLastError();
        continue;
      }
      print_uuid(facts, uuid);
      if (std::strcmp(name + 4, uuid + 4) == 0) found = i;
    }
  } else {
    found = number_in(name);
  }
  return found < count ? found : -1;
}

}  // namespace sg::cuda
