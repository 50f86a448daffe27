// SPDX-License-Identifier: Apache-2.0
#include "run/job/job_ends.hpp"

#include <atomic>

namespace sg {

namespace {
std::atomic<std::uint32_t> g_ends{0};  // a futex: counts jobs that ended while somebody watched
std::atomic<std::uint32_t> g_watchers{0};
}  // namespace

job_ends::job_ends() noexcept { g_watchers.fetch_add(1); }
job_ends::~job_ends() { g_watchers.fetch_sub(1); }
std::uint32_t job_ends::count() const noexcept { return g_ends.load(); }
void job_ends::wait(std::uint32_t seen, const deadline &until) const noexcept { futex_wait(g_ends, seen, until); }

void job_ends::announce() noexcept {
  if (g_watchers.load() == 0) return;
  g_ends.fetch_add(1);
  futex_wake_all(g_ends);
}

}  // namespace sg
