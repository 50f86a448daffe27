// SPDX-License-Identifier: Apache-2.0
// A context: one open device, and everything that is submitted to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/device.hpp"
#include "base/object.hpp"
#include "plan/device_model.hpp"
#include "plan/problem.hpp"
#include "run/arena_pool.hpp"
#include "run/engine.hpp"
#include "run/job_pool.hpp"
#include "run/pinned_memory.hpp"
#include "run/plan_cache.hpp"
#include "run/tracker.hpp"

namespace sg {

class device_buffer;
class service;
class stream;

struct context_settings {
  std::string device;               // "" and "auto": the environment's or the library's choice
  std::int32_t compute_lanes = 0;   // 0: the model's
  std::int32_t staging_threads = 0; // 0: the model's
  std::int64_t memory_limit = 0;    // 0: the model's
  bool check_hazards = false;
};

// The order of a submission.
struct submission {
  stream *on = nullptr;
  job *behind = nullptr;  // runs after this job, however that ends
  const ref<job> *after = nullptr;
  std::size_t after_count = 0;
  bool untracked = false;
};

class context final : public object {
 public:
  static ref<context> create(const context_settings &settings);  // Throws sg::error.
  ~context() override;

  const device &on() const noexcept { return *device_; }
  const device_model &model() const noexcept { return model_; }  // with the settings applied
  job_pool &jobs() noexcept { return jobs_; }
  engine &executor() noexcept { return *engine_; }
  arena_pool &device_memory() noexcept { return device_memory_; }
  pinned_memory &pinned() noexcept { return pinned_; }

  ref<job> new_job() { return jobs_.take(ref<context>::share(this)); }
  std::shared_ptr<const compiled_plan> plan_for(const problem *problems, std::size_t count, const plan_request &request);

  // Puts a job in order and lets it go. Throws std::bad_alloc or sg::error(SG_STATUS_SHUTDOWN); the job then ends unseen.
  void submit(const ref<job> &work, const submission &order, const access *accesses, std::size_t access_count);
  // Waits until everything submitted before has ended.
  void synchronize() noexcept;

  void post_callback(callback_request *request) noexcept;
  void job_ended(std::uint32_t generation) noexcept;
  // Frees a buffer once every job submitted so far has ended: on the service's thread.
  void condemn(device_buffer &gone) noexcept;
  void free_condemned() noexcept;
  // The host knows that the device's clock has reached this time, so later submissions come no earlier.
  void host_has_seen(std::int64_t device_ns) noexcept;
  std::int64_t device_now_ns() const noexcept;

  // What stands between submitting threads: the order of submissions. Completions never take it.
  std::mutex &submission_lock() noexcept { return submission_lock_; }

  context *next_registered = nullptr, *previous_registered = nullptr;  // process.cpp's list

 private:
  context(std::shared_ptr<device> opened, device_model model, const context_settings &settings);
  void last_ref_dropped() noexcept override;
  bool ended_up_to(std::uint32_t generation) const noexcept;
  void put_in_order(job &work, const submission &order, const access *accesses, std::size_t access_count);

  // Jobs in flight are counted by generation, so that synchronize() waits for what was there and not for what comes.
  static constexpr std::uint32_t generations = 64;

  const std::shared_ptr<device> device_;
  const device_model model_;
  const bool virtual_clock_;
  const bool check_hazards_;
  arena_pool device_memory_;
  arena_pool staging_memory_;
  pinned_memory pinned_;
  job_pool jobs_;
  std::unique_ptr<engine> engine_;
  plan_cache plans_;
  std::mutex submission_lock_;
  tracker tracker_;
  std::uint32_t generation_ = 0;
  std::atomic<std::int64_t> in_flight_[generations] = {};
  std::atomic<std::int64_t> host_seen_ns_{0};
  device_buffer *condemned_ = nullptr;  // guarded by the submission lock
  std::atomic<std::int32_t> condemned_count_{0};
  bool registered_ = false;
  service *service_ = nullptr;
};

}  // namespace sg
