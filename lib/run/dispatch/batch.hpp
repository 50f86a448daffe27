// SPDX-License-Identifier: Apache-2.0
// A batch: small GEMMs that go to the backend as one call. Its members are jobs, each with a completion, statistics and
// a status of its own (one status for all if the backend gets one GEMM with pointer arrays); or commands of one run.
#pragma once

#include <streamgemm/backend.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "run/job/job.hpp"
#include "run/program/inflight_command.hpp"

namespace sg {

// Limits of a call: GEMMs, and on a core the predicted time. A longer call costs less per GEMM, but delays other jobs.
inline constexpr std::int64_t most_items = 32768;
inline constexpr double core_batch_seconds = 100e-6;
inline constexpr std::size_t most_members = 1024;  // jobs

// Whether two GEMMs may be in one call. For programs, call templates and the backend's structs.
template <class X, class Y>
bool batchable(const X &x, const Y &y) noexcept {
  return x.in_type == y.in_type && x.out_type == y.out_type && x.compute == y.compute;
}

// Owned by the engine's pool. Vectors keep their capacity, so a reused batch allocates nothing.
struct batch {
  inflight_command inflight;  // the call; its owner: the job of the run, or nullptr for a batch of jobs
  batch *next = nullptr;      // in the pool's list
  std::vector<job *> members;
  std::vector<std::uint32_t> commands;  // of the run
  // The backend's view: one GEMM with pointer arrays where the members differ in addresses only, otherwise one GEMM and
  // one status for each member.
  std::vector<const void *> a, b;
  std::vector<void *> c;
  std::vector<sg_backend_gemm> gemms;
  std::vector<const sg_backend_command *> calls;
  std::vector<sg_status> statuses;

  void clear() noexcept {
    if (gemms.capacity() > 2 * most_members) {  // a run's may be large
      commands = {};
      gemms = {};
      calls = {};
      statuses = {};
    }
    members.clear();
    commands.clear();
    a.clear(), b.clear(), c.clear();
    gemms.clear();
    calls.clear();
    statuses.clear();
  }
};

// Unused batches. Any thread releases; acquire() calls are serialized.
class batch_pool {
 public:
  batch_pool() noexcept = default;
  ~batch_pool() {
    while (batch *gone = pop()) delete gone;
  }
  batch_pool(const batch_pool &) = delete;
  batch_pool &operator=(const batch_pool &) = delete;

  batch &acquire() {  // Throws std::bad_alloc.
    if (batch *kept = pop()) return *kept;
    return *new batch;
  }
  void release(batch &unused) noexcept {
    unused.clear();
    unused.next = kept_.load(std::memory_order_relaxed);
    while (!kept_.compare_exchange_weak(unused.next, &unused, std::memory_order_acq_rel)) {
    }
  }

 private:
  batch *pop() noexcept {
    batch *first = kept_.load(std::memory_order_acquire);
    while (first && !kept_.compare_exchange_weak(first, first->next, std::memory_order_acq_rel)) {
    }
    return first;
  }

  std::atomic<batch *> kept_{nullptr};
};

}  // namespace sg
