// SPDX-License-Identifier: Apache-2.0
// A context: one open device, and everything that is submitted to it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/device.hpp"
#include "base/combining_mutex.hpp"
#include "base/object.hpp"
#include "plan/model/device_model.hpp"
#include "plan/gemm/problem.hpp"
#include "run/memory/arena_pool.hpp"
#include "run/dispatch/engine.hpp"
#include "run/objects/event_lanes.hpp"
#include "run/order/generations.hpp"
#include "run/job/job_limit.hpp"
#include "run/job/job_pool.hpp"
#include "run/memory/memory_map.hpp"
#include "run/memory/pinned_memory.hpp"
#include "run/program/plan_cache.hpp"
#include "run/order/tracker.hpp"
#include "run/job/untold_failures.hpp"

namespace sg {

class device_buffer;
struct graph_program;
class partitions;
class service;
class stream;

struct context_settings {
  std::string device;                // "" and "auto": the environment's or the library's choice
  std::int32_t compute_lanes = 0;    // 0: the model's
  std::int32_t staging_threads = 0;  // 0: the model's
  std::int64_t memory_limit = 0;     // 0: the model's
  bool check_hazards = false;
  bool tune = false;  // the device times its kernels
  engine::settings dispatch;
  std::int64_t job_limit = 0;     // jobs in flight; 0: none
  bool refuse_when_full = false;  // otherwise a submission waits
};

// The order of a submission.
struct submission {
  stream *on = nullptr;
  job *behind = nullptr;  // runs after this job, however that ends
  const ref<job> *after = nullptr;
  std::size_t after_count = 0;
  bool untracked = false;
  bool limited = false;  // the context's job limit holds for it
};

class context final : public object {
 public:
  static ref<context> create(const context_settings &settings);  // Throws sg::error.
  ~context() override;

  const device &on() const noexcept { return *device_; }
  const device_model &model() const noexcept { return model_; }  // with the settings applied
  job_pool &jobs() noexcept { return jobs_; }
  engine &executor() noexcept { return *engine_; }
  event_lanes &lanes_of_events() noexcept { return event_lanes_; }
  partitions &parts() noexcept { return *partitions_; }
  arena_pool &device_memory() noexcept { return device_memory_; }
  pinned_memory &pinned() noexcept { return pinned_; }
  memory_map &known_memory() noexcept { return known_memory_; }
  untold_failures &untold() noexcept { return untold_; }
  // Failed jobs were to write there, which matters no longer: the memory is another's from now on.
  void forget_failures_in(const void *memory, std::uint64_t bytes) noexcept;
  // Of the memory that [memory, memory + bytes) lies in; with unified memory always SG_MEMORY_DEVICE.
  sg_memory_kind memory_kind(const void *memory, std::uint64_t bytes) const noexcept {
    if (device_->unified()) return SG_MEMORY_DEVICE;
    const memory_map::memo *const known = known_memory_.find(memory, bytes);
    return known ? known->kind() : device_->memory_kind(memory, bytes);
  }
  // The same for who asks about one piece of memory again and again: what was found the last time.
  sg_memory_kind memory_kind(const void *memory, std::uint64_t bytes, memory_map::memo &latest) const noexcept {
    if (device_->unified()) return SG_MEMORY_DEVICE;
    if (!known_memory_.holds(latest, memory, bytes)) {
      const memory_map::memo *const known = known_memory_.find(memory, bytes);
      if (!known) return device_->memory_kind(memory, bytes);
      latest = *known;
    }
    return latest.kind();
  }

  // Of so many compute units, those that a stream's products can be kept to. Throws SG_STATUS_UNSUPPORTED where the
  // device cannot be told.
  std::int32_t grant_units(std::int32_t wanted) const;

  bool checks_hazards() const noexcept { return check_hazards_; }
  std::uint64_t number() const noexcept { return plans_.number(); }  // no other context of the process has it
  ref<job> new_job() { return jobs_.take(ref<context>::share(this)); }
  // On a thread of the backend's.
  std::shared_ptr<const compiled_plan> plan_again(const compiled_plan &planned, const plan_request &request) {
    return plans_.look_up(planned.problems.data(), planned.problems.size(), request, model_, check_hazards_);
  }
  std::shared_ptr<const compiled_plan> plan_for(const problem *problems, std::size_t count,
                                                const plan_request &request);

  // Puts a job in order and lets it go; the reference becomes the engine's. At the job limit it waits, or throws
  // sg::error(SG_STATUS_BUSY). Throws std::bad_alloc or sg::error(SG_STATUS_SHUTDOWN); the job then ends unseen. With a
  // stream of the caller's it returns once the job's command is in there, or once the job has ended where it is not one
  // command on the device.
  void submit(ref<job> work, const submission &order, const access *accesses, std::size_t access_count);
  // Whether GEMMs that their submitters wait for are planned for that: in parts that several cores compute at a time.
  bool plans_for_latency() const noexcept {
    return model_.lanes_are_cores && device_->ops().run_here && device_->has_batches();
  }
  // Whether a job that its submitter waits for next may be computed by submit_here().
  bool computes_here(const job &work, const submission &order) const noexcept {
    return device_->ops().run_here && !has_job_limit_ && !order.on && order.after_count == 0 && !work.queue &&
           work.deadline_at_ns == 0 && !work.within && work.kind == work_kind::schedule && work.plan->short_here &&
           work.operands.pointers.empty();
  }
  // The same, on this thread and idle cores, where only such jobs are in flight and it comes after none of them: the
  // job has ended then when this returns. Otherwise it is submitted. A failed one gets another reference, `kept`.
  void submit_here(ref<job> work, const submission &order, const access *accesses, std::size_t access_count,
                   ref<job> *kept);
  // The same with a graph's run: its parts in the order that they were recorded in, and `whole`, which ends after them.
  void submit_parts(const ref<job> &whole, const submission &order, const graph_program &program);
  // Waits until everything submitted before has ended.
  void synchronize() noexcept;

  void post_callback(callback_request *request) noexcept;
  void job_ended(const job &ended) noexcept;
  // A record that nobody refers to, with its reference to this context.
  void take_back(job &unused) noexcept;
  // While it lives, ends of this context's jobs on this thread are counted, and announced, and their records given
  // back, together: each by itself would move cache lines that submitters write too. Its thread holds another reference
  // to the context.
  class ends_together {
   public:
    explicit ends_together(context &of) noexcept;
    ~ends_together();
    ends_together(const ends_together &) = delete;
    ends_together &operator=(const ends_together &) = delete;

   private:
    friend context;
    context &of_;
    ends_together *const outer_;
    std::uint32_t generation_ = 0;
    std::int64_t count_ = 0;
    job *first_unused_ = nullptr, *last_unused_ = nullptr;  // records to give back
    std::int64_t unused_ = 0;
  };
  // Commands may follow others on the device, without the host between them.
  bool follows_on_device() const noexcept { return follows_on_device_; }
  // Whoever waits may ask the device for what has ended, for a short time, before it sleeps.
  bool polls() const noexcept { return device_->ops().poll != nullptr; }
  void poll() const noexcept { device_->ops().poll(device_->handle()); }
  // Sends out what has gathered, and asks the device until `done()`, or for that time.
  template <class Done>
  void poll_until(Done &&done, std::int64_t ns) const noexcept {
    if (!polls()) return;
    engine_->hurry();
    for (const deadline enough(ns); !done() && !enough.passed();) poll();
  }
  static constexpr std::int64_t long_poll_ns = 1'000'000, short_poll_ns = 200'000;
  // How much sooner than it should what is so far away may end, as a rule.
  static constexpr std::int64_t early_by(std::int64_t left_ns) noexcept {
    return std::clamp(left_ns / 16, long_poll_ns / 2, 2 * long_poll_ns);
  }
  // For how long to ask about what should end so soon, or should have ended: it may be as late again.
  static constexpr std::int64_t ask_for_ns(std::int64_t left_ns) noexcept {
    return std::max(short_poll_ns, std::min(2 * left_ns, left_ns + long_poll_ns / 2));
  }
  // Frees a buffer once every job submitted so far has ended: on the service's thread.
  void condemn(device_buffer &gone) noexcept;
  void free_condemned() noexcept;  // any thread without the submission lock
  // The host knows that the device's clock has reached this time, so later submissions come no earlier.
  void host_has_seen(std::int64_t device_ns) noexcept;
  std::int64_t device_now_ns() const noexcept;

  // What stands between submitting threads: the order of submissions. Completions enter it only to free memory.
  combining_mutex &submission_lock() noexcept { return submission_lock_; }

  context *next_registered = nullptr, *previous_registered = nullptr;  // process.cpp's list

 private:
  context(std::shared_ptr<device> opened, device_model model, const context_settings &settings);
  void last_ref_dropped() noexcept override;
  void compute_here(job &work, ref<job> *kept) noexcept;
  void count_ends(std::uint32_t generation, std::int64_t count) noexcept;
  void come_after_native(stream &in);  // lets what is next in it run after what the caller has enqueued there
  // Returns what is to be dropped without the submission lock.
  ref<job> put_in_order(job &work, const submission &order, const access *accesses, std::size_t access_count);

  const std::shared_ptr<device> device_;
  const device_model model_;
  const bool virtual_clock_;
  const bool follows_on_device_;
  const bool check_hazards_;
  const bool has_job_limit_;
  std::atomic<std::int64_t> here_{0};  // jobs in flight that their submitters compute
  job_limit limit_;
  arena_pool device_memory_;
  arena_pool staging_memory_;
  memory_map known_memory_;
  pinned_memory pinned_;
  job_pool jobs_;
  std::unique_ptr<engine> engine_;
  event_lanes event_lanes_{*this};
  const std::unique_ptr<partitions> partitions_;
  plan_cache plans_;
  combining_mutex submission_lock_;
  tracker tracker_;
  untold_failures untold_;
  generations in_flight_;  // guarded by the submission lock, but for what ends
  std::atomic<std::int64_t> host_seen_ns_{0};
  device_buffer *condemned_ = nullptr;  // guarded by the submission lock
  std::atomic<std::int32_t> condemned_count_{0};
  std::mutex freeing_lock_;
  bool registered_ = false;
  service *service_ = nullptr;
};

}  // namespace sg
