// SPDX-License-Identifier: Apache-2.0
// What a job needs of its context: an executor, a clock, a device to poll, and an observer of its completion. Jobs,
// completion queues, callbacks and the executor know no more of a context than this.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/device_array.hpp"
#include "base/device_index.hpp"
#include "base/futex.hpp"
#include "base/object.hpp"
#include "devices/device.hpp"
#include "run/job/context_counters.hpp"
#include "run/job/device_load.hpp"
#include "run/job/job.hpp"
#include "run/job/job_limit.hpp"
#include "run/job/job_pool.hpp"
#include "run/job/unobserved_failures.hpp"
#include "run/program/run_pool.hpp"

namespace sg {

class arena_pool;
class service;

class job_home : public object {
 public:
  const device &on(device_index which = first_device) const noexcept { return *devices_[number_of(which)]; }
  std::span<const std::shared_ptr<device>> devices() const noexcept { return devices_; }  // all of one backend
  ref<job> new_job() { return jobs_.acquire(ref<job_home>::share(this)); }
  unobserved_failures &unobserved() noexcept { return unobserved_; }

  // --- Dispatch ---
  virtual void push(job &ready) noexcept = 0;  // takes over one reference of the job
  virtual void sweep() noexcept = 0;           // a job was cancelled: drop it if it is queued
  virtual void wake_engines() noexcept = 0;    // memory that runs wait for may be free
  // Executes on this thread the commands of the job that are in a lane and that no worker has begun.
  virtual void help(const job &awaited) noexcept = 0;
  virtual std::shared_ptr<const program> replan(const program &planned, const plan_request &request) = 0;
  // Frees released device buffers that no job in flight uses. Any thread that does not hold the submission lock.
  virtual void free_unused_buffers() noexcept = 0;

  virtual arena_pool &device_memory(device_index of) noexcept = 0;
  virtual arena_pool &staging_memory(device_index of) noexcept = 0;

  // --- Load: of each of several devices ---
  // The job is about to be submitted to its devices.
  void add_load(job &placed) noexcept;
  // It is about to be seen completed.
  void remove_load(const job &completed) noexcept;

  // --- Completion ---
  void job_completed(const job &completed) noexcept;
  run_pool &runs() noexcept { return runs_; }
  // Recycles a job record without references, and releases the record's reference to this.
  void recycle(job &unused) noexcept;
  void post_callback(callback_request *request) noexcept;
  // While one exists, completions of these jobs on this thread are counted, and their records are recycled, together:
  // one by one they would move cache lines that submitters write too. The thread holds another reference to the home.
  class completion_batch {
   public:
    explicit completion_batch(job_home &of) noexcept;
    ~completion_batch();
    completion_batch(const completion_batch &) = delete;
    completion_batch &operator=(const completion_batch &) = delete;

   private:
    friend job_home;
    job_home &of_;
    completion_batch *const outer_;
    std::uint32_t epoch_ = 0;
    std::int64_t count_ = 0;
    job *first_unused_ = nullptr, *last_unused_ = nullptr;  // records to recycle
    std::int64_t unused_ = 0;
  };

  void count_failure(sg_status status) noexcept {
    const bool wanted = status == SG_STATUS_CANCELLED || status == SG_STATUS_DEADLINE_EXCEEDED;
    (wanted ? cancelled_ : failed_).fetch_add(1, std::memory_order_relaxed);
  }
  // Any thread that does not hold the submission lock.
  virtual context_counters counters() noexcept = 0;

  // --- The clock: the device's where that is virtual ---
  // The host has observed this time of the device's clock, so later submissions start no earlier.
  void host_has_seen(std::int64_t device_ns) noexcept;
  std::int64_t device_now_ns() const noexcept;

  // --- Polling ---
  // Whether a waiting thread may poll the device for completions, for a short time, before it sleeps.
  bool polls() const noexcept { return on().ops().poll != nullptr; }
  void poll() const noexcept {
    for (const auto &each : devices_) each->ops().poll(each->handle());
  }
  // Launches the gathered GEMMs, and polls the device until `done()`, or for that time.
  template <class Done>
  void poll_until(Done &&done, std::int64_t ns) noexcept {
    if (!polls()) return;
    hurry();
    for (const deadline enough(ns); !done() && !enough.passed();) poll();
  }
  static constexpr std::int64_t long_poll_ns = 1'000'000, short_poll_ns = 200'000;
  // How much earlier than predicted a completion may come that is so far away.
  static constexpr std::int64_t early_by(std::int64_t left_ns) noexcept {
    return std::clamp(left_ns / 16, long_poll_ns / 2, 2 * long_poll_ns);
  }
  // For how long to poll for a completion that is due so soon, or is overdue: it may be as late again.
  static constexpr std::int64_t poll_time_ns(std::int64_t left_ns) noexcept {
    return std::max(short_poll_ns, std::min(2 * left_ns, left_ns + long_poll_ns / 2));
  }

  std::uint64_t number() const noexcept { return number_; }  // no other of the process has it
  virtual void record_name() const noexcept;                 // in the trace

  job_home *next_registered = nullptr, *previous_registered = nullptr;  // process.cpp's list

 protected:
  // The last reference may be released on any thread: the service, once started, deletes the object.
  job_home(std::vector<std::shared_ptr<device>> opened, std::int64_t job_limit, bool refuse_when_full);
  ~job_home() override = default;
  // Registers it with the exit handler and starts its service thread. Throws sg::error.
  void open();
  // Unregisters it. The derived class's destructor calls it first.
  void close() noexcept;
  virtual void hurry() noexcept = 0;  // a thread waits: launch the gathered GEMMs
  // `count` jobs of that epoch have completed. True: a released buffer waits for jobs.
  virtual bool count_completions(std::uint32_t epoch, std::int64_t count) noexcept = 0;

  service &helper() noexcept { return *service_; }

  const std::vector<std::shared_ptr<device>> devices_;  // by index in the machine
  const bool virtual_clock_;
  const device_array<device_load> loads_;
  job_limit limit_;
  std::atomic<std::int64_t> host_seen_ns_{0};
  std::atomic<std::uint64_t> failed_{0}, cancelled_{0};  // jobs
  const std::int64_t created_ns_ = monotonic_ns();

 private:
  friend service;
  template <class Use>
  void for_each_device(std::uint64_t devices, Use &&use) const noexcept {
    for (; devices != 0; devices &= devices - 1) use(loads_[device_index(std::countr_zero(devices))]);
  }
  void last_ref_dropped() noexcept override;
  void announce_completions(std::uint32_t epoch, std::int64_t count) noexcept;

  const std::uint64_t number_;
  run_pool runs_;
  job_pool jobs_;  // after runs_, which its jobs release their runs to
  unobserved_failures unobserved_;
  bool registered_ = false;
  service *service_ = nullptr;
};

}  // namespace sg
