// SPDX-License-Identifier: Apache-2.0
#include "run/job/process.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <type_traits>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/futex.hpp"
#include "base/handle.hpp"
#include "base/log.hpp"
#include "run/job/job_home.hpp"
#include "trace/recorder.hpp"
#include "trace/trace_file.hpp"

namespace sg {

constinit std::atomic<bool> g_process_exits{false};

namespace {

// Contexts are linked through their own members, so registration needs no memory.
struct registry_of_homes {
  std::mutex lock;
  job_home *first = nullptr;
  // Backends in use: their libraries registered their exit handlers before our handler.
  std::array<const sg_backend_ops *, 8> known{};
  std::atomic<std::uint32_t> destructions{0};  // under way; a futex
};

// Constructed at load time, so that no fork finds it half constructed, and never destroyed: exit handlers and threads
// that outlive them use it.
static_assert(std::is_trivially_destructible_v<registry_of_homes>);
constinit registry_of_homes g_homes;

void bring_to_rest() noexcept {
  if (g_process_exits.exchange(true)) return;
  end_log_callbacks();
  {
    const std::lock_guard lock(g_homes.lock);
    for (job_home *c = g_homes.first; c; c = c->next_registered)
      for (const auto &each : c->devices()) each->drain();
  }
  while (const std::uint32_t under_way = g_homes.destructions.load(std::memory_order_acquire))
    futex_wait(g_homes.destructions, under_way, deadline(-1));
  trace::write_by_variable();
}

void before_fork() noexcept { g_homes.lock.lock(); }
void after_fork_in_parent() noexcept { g_homes.lock.unlock(); }

void after_fork_in_child() noexcept {
  // The parent's contexts have no threads in the child: they must not be used, and need no shutdown.
  const auto known = g_homes.known;
  auto *fresh = new (&g_homes) registry_of_homes;
  fresh->known = known;
  // If the parent is exiting, the library is shut down in the child too: its dependencies may be destroyed already.
  invalidate_all_handles();
  trace::forget_recording();
}

// At load time: a fork during the first context's registration would leave the lock taken in the child, without a
// handler to free it. Handlers run in reverse order of installation: the registry's, which has no priority, then these,
// then the handler of the cpu backend's lock, which work that exit() waits for may need.
int g_fork_handlers = 0;
[[gnu::constructor(102)]] void install_handlers() {
  g_fork_handlers = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace

void register_home(job_home &created) {
  if (g_fork_handlers != 0) throw error(SG_STATUS_OUT_OF_MEMORY, "the handlers for fork could not be installed");
  registry_of_homes &all = g_homes;
  const std::lock_guard lock(all.lock);
  // The handler registered last runs first, so each backend's first context registers it again.
  const sg_backend_ops *ops = &created.on().ops();
  if (std::find(all.known.begin(), all.known.end(), ops) == all.known.end()) {
    const auto place = std::find(all.known.begin(), all.known.end(), nullptr);
    if (std::atexit(bring_to_rest) != 0)
      throw error(SG_STATUS_OUT_OF_MEMORY, "the handler for exit could not be installed");
    if (place != all.known.end()) *place = ops;
  }
  created.next_registered = all.first;
  created.previous_registered = nullptr;
  if (all.first) all.first->previous_registered = &created;
  all.first = &created;
}

void record_names_of_homes() noexcept {
  const std::lock_guard lock(g_homes.lock);
  for (const job_home *c = g_homes.first; c; c = c->next_registered) c->record_name();
}

void end_recording_of_homes() noexcept {
  const std::lock_guard lock(g_homes.lock);
  for (const job_home *c = g_homes.first; c; c = c->next_registered)
    for (const auto &each : c->devices()) each->time_commands(trace::wants_device_times());
}

// exit() holds the lock while it waits for commands, whose completions come here; it frees no memory.
void retire_buffers_of_homes(const sg_backend_ops &of) noexcept {
  std::unique_lock lock(g_homes.lock, std::defer_lock);
  for (backoff some; !lock.try_lock(); some.pause())
    if (process_exits()) return;
  for (job_home *c = g_homes.first; c; c = c->next_registered)
    if (&c->on().ops() == &of)
      for (std::size_t i = 0; i < c->devices().size(); ++i) c->device_memory(device_index(i)).retire_buffers();
}

std::vector<context_counters> counters_of_homes() {
  std::vector<context_counters> all;
  {
    const std::lock_guard lock(g_homes.lock);
    for (job_home *c = g_homes.first; c; c = c->next_registered) all.push_back(c->counters());
  }
  std::reverse(all.begin(), all.end());
  return all;
}

bool begin_destruction() noexcept {
  const std::lock_guard lock(g_homes.lock);  // exit() sets its flag before it takes the lock, and counts after it
  if (process_exits()) return false;
  g_homes.destructions.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void end_destruction() noexcept {
  g_homes.destructions.fetch_sub(1, std::memory_order_release);
  futex_wake_all(g_homes.destructions);
}

void unregister_home(job_home &retired) noexcept {
  registry_of_homes &all = g_homes;
  const std::lock_guard lock(all.lock);
  (retired.previous_registered ? retired.previous_registered->next_registered : all.first) = retired.next_registered;
  if (retired.next_registered) retired.next_registered->previous_registered = retired.previous_registered;
}

}  // namespace sg
