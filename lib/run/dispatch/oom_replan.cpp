// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/oom_replan.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "run/job/job.hpp"
#include "run/job/job_home.hpp"
#include "run/memory/arena_pool.hpp"
#include "trace/recorder.hpp"

namespace sg {

namespace {

std::int64_t need_of(const program &of) noexcept { return of.schedule->device_bytes; }

bool is_out_of_memory(const error &e) noexcept { return e.status() == SG_STATUS_OUT_OF_MEMORY; }

// Rounds to a 32nd, so that similar amounts of memory give the same plan, which is cached by then.
std::int64_t in_steps(std::int64_t bytes) noexcept {
  const int digits = std::bit_width(static_cast<std::uint64_t>(bytes));
  return digits <= 6 ? bytes : bytes >> (digits - 6) << (digits - 6);
}

// The memory limit to plan with after `refused` bytes were. Free memory may be less, or fragmented.
std::int64_t budget_after(std::int64_t refused, const device &on) noexcept {
  const auto free = on.free_memory();
  const std::int64_t less = refused - refused / 4;
  if (!free || *free >= static_cast<std::uint64_t>(refused)) return in_steps(less);
  return in_steps(static_cast<std::int64_t>(*free - *free / 16));  // the driver needs some
}

void log_replan(const job &ready, std::int64_t refused, std::int64_t budget) noexcept {
  if (!logs(log_level::warn, log_area::memory)) return;
  log_message(log_level::warn, log_area::memory,
              "job \"%s\": %lld bytes of device memory were refused; planned again for %lld: %s with %lld bytes",
              ready.label(), static_cast<long long>(refused), static_cast<long long>(budget),
              ready.program->schedule->strategy.c_str(), static_cast<long long>(need_of(*ready.program)));
}

[[noreturn]] void report(const device &on, std::int64_t wanted, const error &why) {
  const auto free = on.free_memory();
  throw error(SG_STATUS_OUT_OF_MEMORY, "%lld bytes of device memory are wanted, %s are free, and fewer do not do: %s",
              static_cast<long long>(wanted), free ? std::to_string(*free).c_str() : "an unknown number", why.what());
}

}  // namespace

auto oom_replan::low_memory_variant_of(const program_ref &planned) const noexcept -> program_ref {
  const auto found = variants_.find(planned);
  return found == variants_.end() ? nullptr : found->second;
}

// Out of memory: the next run plans again.
void oom_replan::remember(const program_ref &planned, const program_ref &variant) noexcept {
  try {
    variants_[planned] = variant;
  } catch (const std::bad_alloc &) {
    return;
  }
  if (variants_.size() <= most_variants) return;
  const std::size_t expired = std::erase_if(variants_, [](const auto &entry) { return entry.first.expired(); });
  if (expired == 0) std::erase_if(variants_, [&](const auto &entry) { return entry.second != variant; });
}

void oom_replan::release(job &of, bool abandons) noexcept {
  const auto leave = [abandons](arena_pool &pool, char *&block) {
    char *const left = std::exchange(block, nullptr);
    abandons ? pool.abandon(left) : pool.release(left);
  };
  binding &own = of.operands;
  job_home &home = of.owner();
  const program &what = *of.program;
  for (std::size_t i = 0; i < own.by_device.size(); ++i) {
    leave(home.device_memory(device_index(i)), own.by_device[i].device);
    leave(home.staging_memory(device_index(i)), own.by_device[i].staging);
  }
  leave(home.device_memory(what.device()), own.device_arena);
  leave(home.staging_memory(what.device()), own.staging_arena);
}

// Ascending by device, all or none: no two runs wait for each other.
void oom_replan::acquire_all(job &ready, char *shared, device_index &refusing, std::int64_t &refused) {
  job_home &home = ready.owner();
  const program &what = *ready.program;
  try {
    if (what.is_spread()) ready.operands.by_device.resize(home.devices().size());
    for (std::size_t i = 0; i < what.arenas.size(); ++i) {
      refusing = i < what.devices.size() ? what.devices[i] : what.device();
      refused = what.arenas[i].device;
      char *const arena = shared ? shared : home.device_memory(refusing).acquire(refused);
      (what.is_spread() ? ready.operands.by_device[number_of(refusing)].device : ready.operands.device_arena) = arena;
    }
  } catch (...) {
    release(ready);
    throw;
  }
}

void oom_replan::acquire_staging(job &ready) {
  job_home &home = ready.owner();
  const program &what = *ready.program;
  for (std::size_t i = 0; i < what.arenas.size(); ++i) {
    const device_index on = i < what.devices.size() ? what.devices[i] : what.device();
    char *const arena = home.staging_memory(on).acquire(what.arenas[i].staging);
    (what.is_spread() ? ready.operands.by_device[number_of(on)].staging : ready.operands.staging_arena) = arena;
  }
}

// With less memory, or without the device that refused it if the others are faster alone. Throws as a plan does.
auto oom_replan::planned_again(job_home &home, const program &planned, device_index refusing, std::int64_t budget)
    -> program_ref {
  plan_request request = planned.request;
  request.memory_limit = std::max<std::int64_t>(1, budget);  // some plans need none, and 0 would mean the model's
  program_ref with_less, without;
  if (!planned.is_spread() || planned.request.device_count > 0) return home.replan(planned, request);
  try {
    with_less = home.replan(planned, request);
  } catch (const error &e) {
    if (!is_out_of_memory(e)) throw;
  }
  request = planned.request;
  request.devices = planned.device_bits() & ~(std::uint64_t{1} << number_of(refusing));
  without = home.replan(planned, request);
  return with_less && with_less->predicted_ns() <= without->predicted_ns() ? with_less : without;
}

void oom_replan::acquire_memory(job &ready, char *shared, bool replans) {
  const program_ref planned = ready.shared_program();
  job_home &home = ready.owner();
  // First the variant of an earlier run, before the device is asked again for memory that it lacked.
  if (const program_ref variant = variants_.empty() ? nullptr : low_memory_variant_of(planned);
      variant && !shared && variant->devices == planned->devices) {
    const auto keeps = [&](const program &what) {
      for (std::size_t i = 0; i < what.devices.size(); ++i)
        if (!home.device_memory(what.devices[i]).keeps(what.arenas[i].device)) return false;
      return true;
    };
    if (need_of(*variant) > 0 && !keeps(*planned) && keeps(*variant)) ready.replace_program(variant);
  }
  for (bool freed = false;;) {
    device_index refusing{};
    std::int64_t refused = 0;
    try {
      acquire_all(ready, shared, refusing, refused);  // the pool frees its kept blocks before it fails
      break;
    } catch (const error &e) {
      if (!is_out_of_memory(e) || !replans || !planned->what) throw;
    }
    if (!std::exchange(freed, true)) {
      home.free_unused_buffers();  // released buffers
      continue;
    }
    const std::int64_t budget = budget_after(refused, home.on(refusing));
    try {
      ready.replace_program(planned_again(home, *planned, refusing, budget));
      log_replan(ready, refused, budget);
      if (trace::recording_is_on()) {
        trace::timed_event replanned(trace::event_kind::replan, home.number());
        replanned.concerns(ready.trace_number);
      }
    } catch (const error &e) {
      if (!is_out_of_memory(e) && !planned->is_spread()) throw;  // several devices: no schedule for them fits
      report(home.on(refusing), refused, budget == 0 ? error(SG_STATUS_OUT_OF_MEMORY, "none is free") : e);
    }
  }
  if (ready.program != planned.get()) remember(planned, ready.shared_program());
  acquire_staging(ready);
}

}  // namespace sg
