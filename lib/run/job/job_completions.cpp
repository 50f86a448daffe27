// SPDX-License-Identifier: Apache-2.0
#include "run/job/job_completions.hpp"

#include <atomic>

namespace sg {

namespace {
std::atomic<std::uint32_t> g_completions{0};  // a futex: counts completed jobs while a watcher exists
std::atomic<std::uint32_t> g_watchers{0};
}  // namespace

job_completions::job_completions() noexcept { g_watchers.fetch_add(1); }
job_completions::~job_completions() { g_watchers.fetch_sub(1); }
std::uint32_t job_completions::count() const noexcept { return g_completions.load(); }
void job_completions::wait(std::uint32_t seen, const deadline &until) const noexcept {
  futex_wait(g_completions, seen, until);
}

void job_completions::announce() noexcept {
  if (g_watchers.load() == 0) return;
  g_completions.fetch_add(1);
  futex_wake_all(g_completions);
}

}  // namespace sg
