// SPDX-License-Identifier: Apache-2.0
// Plugins for the registry's tests, one for each VARIANT: the simulated device under another name, valid or defective.
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>

#include "backends/sim/sim_backend.hpp"

#define GOOD 1
#define SHORT_BUT_SOUND 2
#define UNWILLING 3
#define WRONG_VERSION 4
#define MISSING_SLOT 5
#define HALF_A_PAIR 6
#define TOO_SHORT 7
#define CUT_OFF 8
#define NAMELESS 9
#define IMPOSTOR 10
#define NO_TABLE 11
#define NO_SYMBOL 12
#define AS_CUDA 13
#define SLOW 14
#define FORKING 15

namespace {

[[maybe_unused]] sg_status refuse(char *reason, uint64_t size) {
  std::snprintf(reason, size, "the bell\a is out of order");
  return SG_STATUS_NO_DEVICE;
}

[[maybe_unused]] sg_status take_time(char *, uint64_t) {
  usleep(200'000);
  return SG_STATUS_OK;
}

// Like a driver that starts a helper program.
[[maybe_unused]] sg_status start_a_helper(char *, uint64_t) {
  const pid_t helper = fork();
  if (helper == 0) _exit(0);
  int status = 1;
  waitpid(helper, &status, 0);
  return status == 0 ? SG_STATUS_OK : SG_STATUS_NO_DEVICE;
}

[[maybe_unused]] const sg_backend_ops *spoilt() {
  static sg_backend_ops table = *sg_sim_backend();
  table.name = "tiny";
  const int variant = VARIANT;
  switch (variant) {
    case SHORT_BUT_SOUND: table.struct_size = offsetof(sg_backend_ops, drain); break;  // older: has no drain
    case UNWILLING: table.probe = refuse; break;
    case WRONG_VERSION: table.abi_version = SG_BACKEND_ABI_VERSION + 1; break;
    case MISSING_SLOT: table.event_record = nullptr; break;
    case HALF_A_PAIR: table.host_unregister = nullptr; break;
    case TOO_SHORT: table.struct_size = offsetof(sg_backend_ops, name); break;
    case CUT_OFF: table.struct_size = offsetof(sg_backend_ops, enqueue); break;
    case NAMELESS: table.name = "Tiny:one"; break;
    case IMPOSTOR: table.name = "cpu"; break;
    case AS_CUDA: table.name = "cuda"; break;
    case SLOW: table.probe = take_time; break;
    case FORKING: table.probe = start_a_helper; break;
    case NO_TABLE: return nullptr;
  }
  return &table;
}

}  // namespace

#if VARIANT != NO_SYMBOL
extern "C" __attribute__((visibility("default"))) const sg_backend_ops *sg_backend_entry_3(void) { return spoilt(); }
#endif
