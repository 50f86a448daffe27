// SPDX-License-Identifier: Apache-2.0
#include "run/program/run_pool.hpp"

#include <cstdint>

#include "run/program/program_run.hpp"

namespace sg {

namespace {
// Limit of commands of a kept run, of some 200 bytes each.
constexpr std::size_t most_kept = 256;
}  // namespace

run_pool::~run_pool() {
  for (set &each : kept_)
    for (auto &kept : each.slots) delete kept.load(std::memory_order_acquire);
}

run_pool::set &run_pool::set_of(const program *of) noexcept {
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(of) * 0x9E3779B97F4A7C15ull;
  return kept_[mixed >> 32 & (sets - 1)];
}

pooled_run run_pool::acquire(const std::shared_ptr<const program> &of) {
  if (of->schedule->commands.size() <= most_kept)
    for (auto &slot : set_of(of.get()).slots) {
      program_run *const kept = slot.exchange(nullptr, std::memory_order_acquire);
      if (!kept) continue;
      if (&kept->of() == of.get()) {
        kept->begin_again();
        return pooled_run(kept);
      }
      delete slot.exchange(kept, std::memory_order_acq_rel);
    }
  return pooled_run(new program_run(of, *this));
}

void run_pool::release(program_run *completed) noexcept {
  if (completed->states.size() > most_kept) {
    delete completed;
    return;
  }
  // The latest run goes to the first slot; the others shift by one.
  for (auto &slot : set_of(&completed->of()).slots) {
    completed = slot.exchange(completed, std::memory_order_acq_rel);
    if (!completed) return;
  }
  delete completed;
}

void return_to_pool::operator()(program_run *completed) const noexcept { completed->pool().release(completed); }

}  // namespace sg
