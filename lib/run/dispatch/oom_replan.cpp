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

std::int64_t need_of(const job &of) noexcept { return of.program->schedule->device_bytes; }

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
              ready.program->schedule->strategy.c_str(), static_cast<long long>(need_of(ready)));
}

[[noreturn]] void report(const job &ready, std::int64_t wanted, const error &why) {
  const auto free = ready.owner().on().free_memory();
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

void oom_replan::acquire_memory(job &ready, arena_pool &from, bool replans) {
  const program_ref planned = ready.shared_program();
  // First the variant of an earlier run, before the device is asked again for memory that it lacked.
  if (const program_ref variant = variants_.empty() ? nullptr : low_memory_variant_of(planned)) {
    const std::int64_t left = variant->schedule->device_bytes;
    if (left > 0 && !from.keeps(need_of(ready)) && from.keeps(left)) ready.replace_program(variant);
  }
  for (bool freed = false;;) {
    const std::int64_t refused = need_of(ready);
    try {
      ready.operands.device_arena = from.acquire(refused);  // it frees its kept blocks before it fails
      break;
    } catch (const error &e) {
      if (!is_out_of_memory(e) || !replans || !planned->what) throw;
    }
    if (!std::exchange(freed, true)) {
      ready.owner().free_unused_buffers();  // released buffers
      continue;
    }
    plan_request request = planned->request;
    const std::int64_t budget = budget_after(refused, ready.owner().on());
    request.memory_limit = std::max<std::int64_t>(1, budget);  // some plans need none, and 0 would mean the model's
    try {
      ready.replace_program(ready.owner().replan(*planned, request));
      log_replan(ready, refused, budget);
      if (trace::recording_is_on()) {
        trace::timed_event replanned(trace::event_kind::replan, ready.owner().number());
        replanned.concerns(ready.trace_number);
      }
    } catch (const error &e) {
      if (!is_out_of_memory(e)) throw;
      report(ready, planned->schedule->device_bytes, budget == 0 ? error(SG_STATUS_OUT_OF_MEMORY, "none is free") : e);
    }
  }
  if (ready.program != planned.get()) remember(planned, ready.shared_program());
}

}  // namespace sg
