// SPDX-License-Identifier: Apache-2.0
#include "devices/registry.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>

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
    const auto is_cuda = [](const backend_entry &entry) { return entry.name == "cuda"; };
    if (std::any_of(entries_.begin(), entries_.end(), is_cuda)) return;
    entries_.push_back({nullptr, "cuda", false, files.note, ""});
    if (logs(log_level::info, log_area::plugin))
      log_message(log_level::info, log_area::plugin, "no plugin for cuda: %s", files.note.c_str());
  }

  // The others and a plugin.
  registry(const registry &others, const std::string &path) : entries_(others.entries_) {
    add(plugin_name(path), path, [&] { return load_plugin(path); });
  }

  const std::vector<backend_entry> &entries() const noexcept { return entries_; }

  // The usable one of that name, else the first; NULL: none.
  const backend_entry *find(const std::string &name) const noexcept {
    const backend_entry *found = nullptr;
    for (const backend_entry &entry : entries_)
      if (entry.name == name && (!found || (entry.available && !found->available))) found = &entry;
    return found;
  }

 private:
  // `name` is used until the table gives its own.
  template <class Table>
  void add(const std::string &name, const std::string &origin, Table &&table) {
    backend_entry entry{nullptr, printable(name), false, "", origin};
    try {
      const sg_backend_ops sound = sound_table(table());
      const backend_entry *const other = find(sound.name);
      if (other && other->available)
        throw error(SG_STATUS_NO_DEVICE, "it calls itself \"%s\", and there is a backend of that name", sound.name);
      entry.name = sound.name;
      entry.ops = new sg_backend_ops(sound);  // never freed, as the registry
      char reason[SG_BACKEND_MESSAGE_SIZE] = "";
      entry.available = entry.ops->probe(reason, sizeof reason) == SG_STATUS_OK;
      reason[sizeof reason - 1] = '\0';
      if (!entry.available) entry.reason = reason[0] ? printable(reason, sizeof reason) : "it does not work here";
    } catch (const error &fault) {
      entry.reason = fault.what();
    }
    log_outcome(entry);
    const auto stands_for = [&](const backend_entry &other) {
      return other.name == entry.name && other.origin.empty();
    };
    const auto absent = std::find_if(entries_.begin(), entries_.end(), stands_for);
    if (absent == entries_.end())
      entries_.push_back(std::move(entry));
    else
      *absent = std::move(entry);
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

  std::vector<backend_entry> entries_;
};

// Never destroyed: work may be in flight while the process exits. One replaced by one with a plugin more lives on, too.
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

// While plugins load.
class while_loading {
 public:
  while_loading() : lock_(loading, std::defer_lock) {
    if (loading_here) throw error(SG_STATUS_INTERNAL, "a backend used the library while it was being loaded");
    lock_.lock();
    loading_here = true;
  }
  ~while_loading() { loading_here = false; }
  while_loading(const while_loading &) = delete;
  while_loading &operator=(const while_loading &) = delete;

  const registry &ready() {
    if (!loaded.load(std::memory_order_relaxed)) replace(new registry);
    return *loaded.load(std::memory_order_relaxed);
  }
  void replace(const registry *by) { loaded.store(by, std::memory_order_release); }

 private:
  std::unique_lock<std::mutex> lock_;
};

const registry &the_registry() {
  if (const registry *ready = loaded.load(std::memory_order_acquire)) return *ready;
  return while_loading().ready();
}

}  // namespace

const std::vector<backend_entry> &backends() { return the_registry().entries(); }

const backend_entry *find_backend(const std::string &name) { return the_registry().find(name); }

void load_backend(const std::string &path) {
  while_loading here;
  // The latest entry of the file, whatever path it was found by.
  const auto entry_of = [&](const registry &in) -> const backend_entry * {
    const auto is_it = [&](const backend_entry &entry) {
      std::error_code absent;
      return entry.origin == path ||
             (entry.origin.starts_with('/') && std::filesystem::equivalent(entry.origin, path, absent));
    };
    const auto found = std::find_if(in.entries().rbegin(), in.entries().rend(), is_it);
    return found == in.entries().rend() ? nullptr : &*found;
  };
  const registry &known = here.ready();
  if (const backend_entry *entry = entry_of(known); entry && entry->available) return;
  auto with_it = std::make_unique<const registry>(known, path);
  const backend_entry &entry = *entry_of(*with_it);
  if (!entry.available)
    throw error(SG_STATUS_NO_DEVICE, "@path \"%s\": %s", printable(path, 200).c_str(), entry.reason.c_str());
  here.replace(with_it.release());
}

}  // namespace sg
