// SPDX-License-Identifier: Apache-2.0
#include "run/job/job_home.hpp"

#include <utility>

#include "run/job/job_completions.hpp"
#include "run/job/process.hpp"
#include "run/job/service.hpp"
#include "trace/recorder.hpp"
#include "trace/trace_file.hpp"

namespace sg {

namespace {
thread_local job_home::completion_batch *t_together = nullptr;
std::atomic<std::uint64_t> g_homes_made{0};
}  // namespace

job_home::job_home(std::vector<std::shared_ptr<device>> opened, std::int64_t job_limit, bool refuse_when_full)
    : object(object_type::context),
      devices_(std::move(opened)),
      virtual_clock_(on().ops().stream_begin_at != nullptr),
      loads_(devices_.size(), [](device_index) { return device_load(); }),
      limit_(job_limit, refuse_when_full),
      number_(++g_homes_made) {}

void job_home::open() {
  register_home(*this);
  registered_ = true;
  service_ = service::start(*this);
  trace::start_by_variable();
  trace::start_for_profiler();
  if (trace::recording_is_on()) record_name();
  for (const auto &each : devices_)
    each->time_commands(trace::wants_device_times());  // the recording may have ended meanwhile
}

void job_home::record_name() const noexcept {
  if (trace::wants_device_times())
    for (const auto &each : devices_) each->time_commands(true);
  trace::record_text(trace::event_kind::context, number_, 0, on().name().c_str(),
                     virtual_clock_ ? trace::virtual_clock_bit : 0);
}

void job_home::close() noexcept {
  if (registered_) unregister_home(*this);
}

void job_home::last_ref_dropped() noexcept {
  if (service_)
    service_->retire();
  else
    delete this;
}

job_home::completion_batch::completion_batch(job_home &of) noexcept : of_(of), outer_(t_together) { t_together = this; }

job_home::completion_batch::~completion_batch() {
  t_together = outer_;
  if (unused_ > 0) {
    of_.jobs_.release(*first_unused_, *last_unused_);
    of_.drop_refs(unused_);
  }
  if (count_ > 0) of_.announce_completions(epoch_, count_);
}

void job_home::recycle(job &unused) noexcept {
  completion_batch *const all = t_together;
  if (!all || &all->of_ != this) {
    jobs_.release(unused);
    return drop_ref();
  }
  job_pool::link(unused, all->first_unused_);
  all->first_unused_ = &unused;
  if (!all->last_unused_) all->last_unused_ = &unused;
  ++all->unused_;
}

void job_home::announce_completions(std::uint32_t epoch, std::int64_t count) noexcept {
  if (count_completions(epoch, count)) service_->wake();
  job_completions::announce();
}

void job_home::add_load(job &placed) noexcept {
  if (devices_.size() == 1 || !placed.program) return;
  placed.loaded_devices = placed.program->device_bits();
  const std::int64_t now_ns = device_now_ns(), predicted_ns = placed.program->predicted_ns();
  for_each_device(placed.loaded_devices, [&](device_load &load) { load.add(now_ns, predicted_ns); });
}

void job_home::remove_load(const job &completed) noexcept {
  // Where the clock is virtual, work is completed before its time, and stays counted.
  if (!virtual_clock_) for_each_device(completed.loaded_devices, [](device_load &load) { load.remove(); });
}

void job_home::job_completed(const job &completed) noexcept {
  if (completed.admitted) limit_.leave();
  completion_batch *const all = t_together;
  if (!all || &all->of_ != this) return announce_completions(completed.epoch, 1);
  if (all->count_ > 0 && all->epoch_ != completed.epoch)
    announce_completions(all->epoch_, std::exchange(all->count_, 0));
  all->epoch_ = completed.epoch;
  ++all->count_;
}

void job_home::post_callback(callback_request *request) noexcept { service_->post(request); }

void job_home::host_has_seen(std::int64_t device_ns) noexcept {
  if (!virtual_clock_) return;
  std::int64_t now = host_seen_ns_.load(std::memory_order_relaxed);
  while (now < device_ns && !host_seen_ns_.compare_exchange_weak(now, device_ns, std::memory_order_relaxed)) {
  }
}

std::int64_t job_home::device_now_ns() const noexcept {
  return virtual_clock_ ? host_seen_ns_.load(std::memory_order_relaxed) : monotonic_ns();
}

}  // namespace sg
