// SPDX-License-Identifier: Apache-2.0
#include "devices/registry.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <forward_list>
#include <memory>
#include <mutex>

#include "backends/cpu/cpu_backend.hpp"
#include "backends/sim/sim_backend.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "devices/environment.hpp"
#include "devices/plugin.hpp"

namespace sg {

namespace {

class registry {
 public:
  registry() {
    add("cpu", "built in", [] { return sg_cpu_backend(); });
    add("sim", "built in", [] { return sg_sim_backend(); });
    const plugin_files files = find_plugins();
    for (const std::string &path : files.paths) add(plugin_name(path), path, [&] { return load_plugin(path); });
    if (knows("cuda")) return;
    entries_.push_back({nullptr, "cuda", false, files.note, ""});
    if (logs(log_level::info, log_area::plugin))
      log_message(log_level::info, log_area::plugin, "no plugin for cuda: %s", files.note.c_str());
  }

  const std::vector<backend_entry> &entries() const noexcept { return entries_; }

 private:
  bool knows(const std::string &name) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const auto &entry) { return entry.name == name; });
  }

  // `name` is used until the table gives its own.
  template <class Table>
  void add(const std::string &name, const std::string &origin, Table &&table) {
    backend_entry entry{nullptr, printable(name), false, "", origin};
    try {
      const sg_backend_ops sound = sound_table(table());
      if (knows(sound.name))
        throw error(SG_STATUS_NO_DEVICE, "it calls itself \"%s\", and there is a backend of that name", sound.name);
      entry.name = sound.name;
      entry.ops = &tables_.emplace_front(sound);
      char reason[SG_BACKEND_MESSAGE_SIZE] = "";
      entry.available = entry.ops->probe(reason, sizeof reason) == SG_STATUS_OK;
      reason[sizeof reason - 1] = '\0';
      if (!entry.available) entry.reason = reason[0] ? printable(reason, sizeof reason) : "it does not work here";
    } catch (const error &fault) {
      entry.reason = fault.what();
    }
    log_outcome(entry);
    entries_.push_back(std::move(entry));
  }

  static void log_outcome(const backend_entry &entry) noexcept {
    const bool refused = !entry.ops;
    const auto level = refused ? log_level::warn : log_level::info;
    if (!logs(level, log_area::plugin)) return;
    if (refused)
      log_message(level, log_area::plugin, "%s is refused: %s", entry.origin.c_str(), entry.reason.c_str());
    else
      log_message(level, log_area::plugin, "backend %s, %s, table version %u: %s%s", entry.name.c_str(),
                  entry.origin.c_str(), entry.ops->abi_version,
                  entry.available ? "available" : "not available: ", entry.reason.c_str());
  }

  std::forward_list<sg_backend_ops> tables_;
  std::vector<backend_entry> entries_;
};

// Never destroyed: work may be in flight while the process exits.
std::atomic<const registry *> loaded;
std::mutex loading;
thread_local bool loading_here = false;  // while plugins load; some of their libraries fork to start a helper

// A fork waits until loading is complete, so that the child has a complete registry and a free lock.
void before_fork() {
  if (!loading_here) loading.lock();
}
void after_fork() {
  if (!loading_here) loading.unlock();
}
// Registered after the handlers with a priority (run/job/process.cpp), so that a fork takes this lock before the locks
// of those handlers.
[[maybe_unused]] const int at_fork = pthread_atfork(before_fork, after_fork, after_fork);

const registry &the_registry() {
  if (const registry *ready = loaded.load(std::memory_order_acquire)) return *ready;
  if (loading_here) throw error(SG_STATUS_INTERNAL, "a backend used the library while it was being loaded");
  std::lock_guard lock(loading);
  if (const registry *ready = loaded.load(std::memory_order_relaxed)) return *ready;
  struct mark {
    mark() { loading_here = true; }
    ~mark() { loading_here = false; }
  } while_loading;
  loaded.store(new registry, std::memory_order_release);
  return *loaded.load(std::memory_order_relaxed);
}

}  // namespace

const std::vector<backend_entry> &backends() { return the_registry().entries(); }

const backend_entry *find_backend(const std::string &name) {
  for (const backend_entry &entry : backends())
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace sg
