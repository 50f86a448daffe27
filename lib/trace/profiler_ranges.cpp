// SPDX-License-Identifier: Apache-2.0
#include "trace/profiler_ranges.hpp"

#ifdef SG_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#endif

namespace sg::trace {

#ifdef SG_HAVE_NVTX

namespace {

// nullptr: no profiler. NVTX loads the library that this variable names, so privileged programs do not ask it.
nvtxDomainHandle_t domain() noexcept {
  static const nvtxDomainHandle_t made =
      secure_getenv("NVTX_INJECTION64_PATH") ? nvtxDomainCreateA("StreamGEMM") : nullptr;
  return made;
}

nvtxEventAttributes_t named(const char *name) noexcept {
  nvtxEventAttributes_t all{};
  all.version = NVTX_VERSION;
  all.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  all.messageType = NVTX_MESSAGE_TYPE_ASCII;
  all.message.ascii = name;
  return all;
}

}  // namespace

bool profiler_listens() noexcept { return domain() != nullptr; }

void push_range(const char *name) noexcept {
  const nvtxEventAttributes_t all = named(name);
  nvtxDomainRangePushEx(domain(), &all);
}

void pop_range() noexcept { nvtxDomainRangePop(domain()); }

std::uint64_t start_range(const char *name) noexcept {
  const nvtxEventAttributes_t all = named(name);
  return nvtxDomainRangeStartEx(domain(), &all) + 1;
}

void end_range(std::uint64_t started) noexcept { nvtxDomainRangeEnd(domain(), started - 1); }

#else

bool profiler_listens() noexcept { return false; }
void push_range(const char *) noexcept {}
void pop_range() noexcept {}
std::uint64_t start_range(const char *) noexcept { return 1; }
void end_range(std::uint64_t) noexcept {}

#endif

}  // namespace sg::trace
