// SPDX-License-Identifier: Apache-2.0
#include "run/objects/partitions.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "run/job/job.hpp"

namespace sg {

namespace {

// Earlier jobs of the stream have completed with its latest one, or are in the lane.
bool is_idle(partition &which) noexcept {
  const job *const latest = which.latest;
  const bool over = !latest || latest->incarnation() != which.latest_incarnation || latest->done();
  return over && which.lane.slot().in_flight.load(std::memory_order_acquire) == 0;
}

}  // namespace

std::int32_t partitions::grant(std::int32_t wanted) const {
  if (wanted == 0) return 0;
  if (model_.lanes_are_cores) return std::min(wanted, model_.compute_lanes);
  const auto units_of = device_.ops().compute_units;
  const std::int32_t all = units_of ? units_of(device_.handle()) : 0;
  if (all <= 0)
    throw error(SG_STATUS_UNSUPPORTED, "%s cannot limit the compute units of a GEMM", device_.name().c_str());
  return std::min(wanted, all);
}

std::unique_ptr<partition> partitions::acquire(std::int32_t priority, std::int32_t &units) {
  if (units >= grant(INT32_MAX)) return nullptr;  // all units: no partition is needed
  free_idle();
  try {
    return std::make_unique<partition>(device_, engine_, priority, units);
  } catch (const error &why) {
    if (why.status() != SG_STATUS_UNSUPPORTED && why.status() != SG_STATUS_BUSY) throw;
    if (logs(log_level::info, log_area::fallback))
      log_message(log_level::info, log_area::fallback,
                  "a stream of %d compute units gets no partition, only a hint: %s", units, why.what());
    return nullptr;
  }
}

void partitions::release(std::unique_ptr<partition> unused, const job *latest) noexcept {
  unused->latest = latest;
  if (latest) unused->latest_incarnation = latest->incarnation();
  const std::lock_guard lock(lock_);
  unused->next = std::move(returned_);
  returned_ = std::move(unused);
}

// Destroyed outside the lock: removing a lane waits for the engine, which may be reporting a completion meanwhile.
void partitions::free_idle() noexcept {
  std::unique_ptr<partition> idle;  // destroyed after the lock
  const std::lock_guard lock(lock_);
  for (std::unique_ptr<partition> *link = &returned_; *link;) {
    if (!is_idle(**link)) {
      link = &(*link)->next;
      continue;
    }
    std::unique_ptr<partition> found = std::exchange(*link, std::move((*link)->next));
    found->next = std::move(idle);
    idle = std::move(found);
  }
}

}  // namespace sg
