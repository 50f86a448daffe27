// SPDX-License-Identifier: Apache-2.0
// A batch: small GEMMs that go to the backend as one call. Each is a job, which keeps a completion and statistics of
// its own, and a status, which is one for all where they are one GEMM to the backend; or all are commands of one run.
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

// GEMMs of one call at most, and on a core its predicted time: many make a launch cheap, more make others wait.
inline constexpr std::int64_t most_items = 32768;
inline constexpr double core_batch_seconds = 100e-6;
inline constexpr std::size_t most_members = 1024;  // jobs

// Whether two GEMMs may be in one call. Of programs, of call templates and of the backend's structs.
template <class X, class Y>
bool batchable(const X &x, const Y &y) noexcept {
  return x.in_type == y.in_type && x.out_type == y.out_type && x.compute == y.compute;
}

// It belongs to the engine's pool. Its vectors keep their room, so a batch that has been used once allocates nothing.
struct batch {
  inflight_command inflight;  // the call; its job: of a run's batch the run's, otherwise nullptr
  batch *next = nullptr;      // in the pool
  std::vector<job *> members;
  std::vector<std::uint32_t> commands;  // of the run
  // The backend's view: one GEMM with pointer arrays where the members differ in addresses only, otherwise a GEMM and a
  // status for each.
  std::vector<const void *> a, b;
  std::vector<void *> c;
  std::vector<sg_backend_gemm> gemms;
  std::vector<const sg_backend_command *> calls;
  std::vector<sg_status> statuses;

  void clear() noexcept {
    if (gemms.capacity() > 2 * most_members) {  // a run's, which may be large
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

// Unused batches. Any thread releases; one thread at a time acquires.
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
