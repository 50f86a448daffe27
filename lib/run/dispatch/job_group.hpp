// SPDX-License-Identifier: Apache-2.0
// Small products that go out as one command: each remains a job with an end and statistics of its own, and a status,
// which is one for all where they are one product to the backend.
#pragma once

#include <streamgemm/backend.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "run/job/job.hpp"
#include "run/program/inflight_command.hpp"

namespace sg {

class engine;

// Products of one call at most, and on a core its predicted time: many make a launch cheap, more make others wait.
inline constexpr std::int64_t most_items = 32768;
inline constexpr double core_group_seconds = 100e-6;

// Its vectors keep their room, so a group that has been used once allocates nothing.
struct job_group {
  engine *home = nullptr;
  job_group *next = nullptr;
  lane_slot *lane = nullptr;
  std::atomic<std::int32_t> parts{0};  // what its end waits for
  std::int64_t predicted_ns = 0, start_ns = 0, end_ns = 0;
  std::vector<job *> members;
  // What they are for the backend: one product whose operands lie scattered, where nothing but addresses tells them
  // apart, otherwise a product of each and its status.
  std::vector<const void *> a, b;
  std::vector<void *> c;
  std::vector<sg_backend_gemm> products;
  std::vector<const sg_backend_command *> commands;
  std::vector<sg_status> statuses;

  void clear() noexcept {
    members.clear();
    a.clear(), b.clear(), c.clear();
    products.clear();
    commands.clear();
    statuses.clear();
  }
};

// Groups that are not in use. Many give back, one at a time takes.
class job_group_pool {
 public:
  ~job_group_pool() {
    while (job_group *gone = take_kept()) delete gone;
  }
  job_group &take() {  // Throws std::bad_alloc.
    if (job_group *kept = take_kept()) return *kept;
    return *new job_group;
  }
  void give_back(job_group &unused) noexcept {
    unused.clear();
    unused.next = kept_.load(std::memory_order_relaxed);
    while (!kept_.compare_exchange_weak(unused.next, &unused, std::memory_order_acq_rel)) {
    }
  }

 private:
  job_group *take_kept() noexcept {
    job_group *first = kept_.load(std::memory_order_acquire);
    while (first && !kept_.compare_exchange_weak(first, first->next, std::memory_order_acq_rel)) {
    }
    return first;
  }

  std::atomic<job_group *> kept_{nullptr};
};

}  // namespace sg
