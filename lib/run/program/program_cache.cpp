// SPDX-License-Identifier: Apache-2.0
#include "run/program/program_cache.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/thread_owned.hpp"
#include "plan/planner.hpp"
#include "plan/schedule/hazard.hpp"
#include "trace/recorder.hpp"

namespace sg {

namespace {

std::uint64_t key_of(const form &what, const plan_request &r) noexcept {
  hasher mixed;
  mixed << static_cast<std::int64_t>(what.hash())
        << (static_cast<std::int64_t>(r.split) | std::int64_t{r.latency} << 7 | std::int64_t{r.parts} << 8) << r.streams
        << (static_cast<std::int64_t>(number_of(r.device)) | std::int64_t{r.device_count} << 8)
        << static_cast<std::int64_t>(r.devices) << r.memory_limit << r.tile_m << r.tile_n << r.tile_k;
  return mixed.value();
}

}  // namespace

struct program_cache::memos {
  static constexpr std::size_t count = 8;
  memo latest[count];
};

program_cache::memo *program_cache::memo_of(std::uint64_t key) noexcept {
  memos *const own = thread_owned<memos>::get();
  return own ? &own->latest[key % memos::count] : nullptr;
}

std::shared_ptr<const sg::program> program_cache::get(const form &what, const plan_request &request,
                                                      const machine_model &machine, bool check) {
  const std::uint64_t key = key_of(what, request);
  memo *const latest = memo_of(key);
  if (latest && latest->cache == number_ && latest->key == key && latest->request == request &&
      *latest->program->what == what)
    return latest->program;
  auto program = look_up(key, what, request, machine, check);
  if (latest) *latest = {number_, key, request, program};
  return program;
}

std::shared_ptr<const sg::program> program_cache::look_up(const form &what, const plan_request &request,
                                                          const machine_model &machine, bool check) {
  return look_up(key_of(what, request), what, request, machine, check);
}

auto program_cache::find(std::uint64_t key, const form &what, const plan_request &request) noexcept -> entry_position {
  const auto [first, last] = positions_.equal_range(key);
  for (auto at = first; at != last; ++at) {
    const entry &known = *at->second;
    if (known.request == request && *known.what == what) return at->second;
  }
  return entries_.end();
}

void program_cache::erase(entry_position which) noexcept {
  const auto [first, last] = positions_.equal_range(which->key);
  positions_.erase(std::find_if(first, last, [&](const auto &each) { return each.second == which; }));
  entries_.erase(which);
}

// Programs in use outlive their entries.
void program_cache::evict() noexcept {
  for (auto at = entries_.end(); entries_.size() > most_entries && at != entries_.begin();) {
    --at;
    if (!at->program) continue;
    const entry_position gone = at++;
    erase(gone);
  }
}

std::shared_ptr<const sg::program> program_cache::look_up(std::uint64_t key, const form &what,
                                                          const plan_request &request, const machine_model &machine,
                                                          bool check) {
  std::unique_lock lock(lock_);
  for (entry_position known = find(key, what, request); known != entries_.end(); known = find(key, what, request)) {
    if (known->program) {
      entries_.splice(entries_.begin(), entries_, known);
      return known->program;
    }
    planned_.wait(lock);
  }
  entries_.push_front({key, &what, request, nullptr});
  const entry_position created = entries_.begin();
  try {
    positions_.emplace(key, created);
  } catch (...) {
    entries_.erase(created);
    throw;
  }
  lock.unlock();
  try {
    const trace::timed_event planning(trace::event_kind::planning, number_);
    auto made = make_plan(what, machine, request);
    if (check) require_no_hazards(*made);
    const device_index on = made->commands.empty() ? request.device : made->commands.front().where.device;
    auto program = std::make_shared<const sg::program>(what.share(), request, std::move(made), machine.device(on));
    lock.lock();
    created->what = program->what.get();
    created->program = program;
    evict();
    planned_.notify_all();
    return program;
  } catch (...) {  // each waiting thread then plans itself
    lock.lock();
    erase(created);
    planned_.notify_all();
    throw;
  }
}

}  // namespace sg
