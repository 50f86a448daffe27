// SPDX-License-Identifier: Apache-2.0
#include "run/context.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/gemm/resident/latency_parts.hpp"
#include "run/dispatch/launcher.hpp"
#include "run/dispatch/stage.hpp"
#include "run/dispatch/traced_commands.hpp"
#include "run/job/completion_queue.hpp"
#include "run/job/process.hpp"
#include "run/job/service.hpp"
#include "run/objects/device_buffer.hpp"
#include "run/objects/partitions.hpp"
#include "run/objects/stream.hpp"
#include "trace/profiler_ranges.hpp"

namespace sg {

namespace {

// Of the staging workers; on a machine with cores to spare.
int polling_workers() noexcept { return std::min(2, static_cast<int>(std::thread::hardware_concurrency()) / 4); }

}  // namespace

ref<context> context::create(const context_settings &settings) {
  if (process_exits()) throw error(SG_STATUS_SHUTDOWN, "the process is exiting");
  auto made =
      ref<context>::adopt(new context(open_machine({settings.device, settings.compute_lanes, settings.staging_threads,
                                                    settings.memory_limit, settings.tune}),
                                      settings));
  made->open();
  return made;
}

context::context(opened_machine &&opened, const context_settings &settings)
    : job_sink(std::move(opened.devices), settings.job_limit, settings.refuse_when_full),
      machine_(std::move(opened.model)),
      check_hazards_(settings.check_hazards),
      has_job_limit_(settings.job_limit > 0),
      memory_(devices()),
      pinned_(devices(), memory_.known()),
      stagers_(machine_, polling_workers(), stage),
      rooms_(machine_.devices.size(),
             [&](device_index index) {
               return device_room(on(index), index, model(index), settings.dispatch, stagers_, *this);
             }),
      plans_(number()) {}

context::~context() { close(); }

std::shared_ptr<const program> context::plan_for(const form &what, const plan_request &request) {
  return plans_.get(what, request, machine_, check_hazards_);
}

std::uint64_t context::working_devices() const noexcept {
  std::uint64_t working = 0;
  for (std::size_t i = 0; i < devices().size() && i < 64; ++i)
    if (on(device_index(i)).status() == SG_STATUS_OK) working |= std::uint64_t{1} << i;
  return working;
}

device_index context::least_busy(std::uint64_t among) const {
  if (devices().size() == 1) return first_device;
  const std::uint64_t working = among & working_devices();
  if (working == 0)
    throw error(SG_STATUS_NO_DEVICE, "every device that may do it is lost: %s",
                on().status() == SG_STATUS_OK ? "" : printable(on().ops().last_message(on().handle()), 300).c_str());
  const std::int64_t now_ns = device_now_ns();
  device_index best = first_device;
  std::int64_t earliest_ns = INT64_MAX;
  for (std::size_t i = 0; i < devices().size(); ++i) {
    const std::int64_t end_ns = loads_[device_index(i)].end_ns(now_ns);
    if (!(working >> i & 1) || end_ns >= earliest_ns) continue;
    best = device_index(i);
    earliest_ns = end_ns;
  }
  return best;
}

ref<job> context::put_in_order(job &work, const submission_order &order, const access *accesses,
                               std::size_t access_count, tracker *among) {
  // Of several orders after one job the first counts, so those that need its success come first.
  for (std::size_t i = 0; i < order.after_count; ++i) {
    job &before = *order.after[i];
    work.order_after(before, before.incarnation(), true);
    const failure_causes unknown;
    if (before.done() && before.status() != SG_STATUS_OK)
      work.fail_dependency(before.pool == work.pool ? before.causes() : unknown);
  }
  if (order.behind) work.order_after(*order.behind, order.behind->incarnation(), false);
  if (!order.untracked)
    (among ? *among : tracker_)
        .add(work, accesses, access_count, virtual_clock_ ? 0 : in_flight_.oldest(), unobserved());
  if (virtual_clock_) work.not_before(host_seen_ns_.load(std::memory_order_relaxed));
  return order.on ? order.on->append(work) : ref<job>();
}

void context::trace_submission(trace::timed_event &call, job &work, const submission_order &order) noexcept {
  work.trace_number = trace::new_job_number();
  call.concerns(work.trace_number, order.on ? order.on->number() + 1 : 0, static_cast<std::uint8_t>(work.priority + 1));
  trace_names(work);
  if (trace::profiler_is_on() && work.trace_number != 0)
    work.profiler_range = trace::start_range(*work.label() ? work.label() : "job");
}

void context::trace_names(const job &of) noexcept {
  if (*of.label()) trace::record_text(trace::event_kind::label, number(), of.trace_number, of.label());
  if (of.trace_id == 0) return;
  trace::event e(trace::event_kind::trace_id, number(), of.trace_number);
  e.body.value = of.trace_id;
  trace::record(e);
}

void context::trace_child(job &child) noexcept {
  child.trace_number = trace::new_job_number();
  trace_names(child);
}

void context::follow_native(stream &in) {
  submission_order order;
  order.on = &in;
  submit(new_job(), order, nullptr, 0);
}

void context::submit(ref<job> given, const submission_order &order, const access *accesses, std::size_t access_count) {
  if (process_exits()) throw error(SG_STATUS_SHUTDOWN, "the process is exiting");
  trace::timed_event submitting(trace::event_kind::submission, number());
  if (submitting.is_on()) trace_submission(submitting, *given, order);
  const bool in_event_lane = given->native != nullptr;
  const bool native = in_event_lane || (order.on && order.on->is_native());
  const bool taken = in_event_lane || (native && order.on->takes(*given));
  if (native && !taken) follow_native(*order.on);
  if (given->deadline_at_ns != 0) helper().sweep_at(given->deadline_at_ns);
  if (order.limited) given->admitted = limit_.enter();
  add_load(*given);
  if (native) given->add_ref_unshared();
  job *const work = given.release();  // owned by the engine
  const auto awaited = ref<job>::adopt(native ? work : nullptr);
  std::exception_ptr failure;
  ref<job> replaced;
  const auto enter_order = [&] {
    work->epoch = in_flight_.count_in();
    try {
      replaced = put_in_order(*work, order, accesses, access_count);
    } catch (...) {
      // Other threads may already know the record, so it must complete: as a job without work.
      work->drop_work();
      work->queue = {};
      failure = std::current_exception();
    }
  };
  const auto fetch = [=] {
    work->fetch();
    for (std::size_t i = 0; i < access_count; i += 2) __builtin_prefetch(accesses + i);
  };
  submission_lock_.run(enter_order, fetch);
  work->submit();  // not under the lock: the engine may submit
  if (failure) std::rethrow_exception(failure);
  if (!native) return;
  if (taken)
    work->wait_issued();
  else
    work->wait(deadline(-1));
}

void context::submit_here(ref<job> given, const submission_order &order, const access *accesses,
                          std::size_t access_count, ref<job> *kept) {
  if (process_exits()) throw error(SG_STATUS_SHUTDOWN, "the process is exiting");
  trace::timed_event submitting(trace::event_kind::submission, number());
  if (submitting.is_on()) trace_submission(submitting, *given, order);
  job *const work = given.release();
  bool here = false;
  std::exception_ptr failure;
  submission_lock_.run([&] {
    const bool beside_others = in_flight_.count() > here_.load(std::memory_order_relaxed);
    work->epoch = in_flight_.count_in();
    try {
      put_in_order(*work, order, accesses, access_count);
      here = !beside_others && work->begin_here();
      if (here) here_.fetch_add(1, std::memory_order_relaxed);
    } catch (...) {
      work->drop_work();  // as in submit()
      failure = std::current_exception();
    }
  });
  if (!here) {
    if (kept) *kept = ref<job>::share(work);
    work->submit();
    if (failure) std::rethrow_exception(failure);
    return;
  }
  compute_here(*work, kept);
  here_.fetch_sub(1, std::memory_order_relaxed);
}

void context::compute_here(job &work, ref<job> *kept) noexcept {
  const auto run = [&](const sg_backend_command *const *commands, std::size_t count, std::int64_t *busy_ns) {
    const sg_status status = on().ops().run_here(on().handle(), commands, static_cast<std::int32_t>(count), busy_ns);
    if (status == SG_STATUS_OK) return;
    work.fail(status, on().ops().last_message(on().handle()));
    if (kept) *kept = ref<job>::share(&work);
  };
  const bool is_observable = !work.has_one_ref() || work.trace_number != 0;
  const std::int64_t start_ns = is_observable ? monotonic_ns() : 0;
  const auto end_ns = [&]() -> std::int64_t {
    const std::int64_t now_ns = is_observable ? monotonic_ns() : 0;
    if (work.trace_number != 0 && trace::recording_is_on()) trace_here(work, start_ns, now_ns);
    return now_ns;
  };
  if (const std::size_t count = work.program->schedule->commands.size(); count == 1) {
    const sg_backend_gemm gemm = launcher::gemm_of(work, 0);
    const sg_backend_command *const one = &gemm.header;
    run(&one, 1, nullptr);
    work.completed_in_batch(start_ns, end_ns(), 1);
  } else {
    std::array<sg_backend_gemm, most_latency_parts> parts;
    std::array<const sg_backend_command *, most_latency_parts> commands;
    for (std::size_t i = 0; i < count; ++i) {
      parts[i] = launcher::gemm_of(work, static_cast<std::uint32_t>(i));
      commands[i] = &parts[i].header;
    }
    std::int64_t busy_ns = 0;
    run(commands.data(), count, is_observable ? &busy_ns : nullptr);
    work.commands_completed(start_ns, end_ns(), busy_ns);
  }
}

bool context::count_completions(std::uint32_t epoch, std::int64_t count) noexcept {
  in_flight_.completed(epoch, count);
  return released_count_.load(std::memory_order_acquire) > 0;
}

void context::free_when_unused(device_buffer &released) noexcept {
  const auto keep = ref<context>::share(this);  // a listed buffer, which also holds the context, may be freed
  submission_lock_.run([&] {
    released.last_user_epoch = in_flight_.present();
    in_flight_.open_next();
    released.next_released = released_;
    released_ = &released;
    released_count_.fetch_add(1, std::memory_order_acq_rel);
  });
  helper().wake();
}

void context::free_unused_buffers() noexcept {
  if (released_count_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard one_at_a_time(freeing_lock_);  // a second thread then finds the memory free
  device_buffer *free_now = nullptr;
  submission_lock_.run_here([&] {
    for (device_buffer **link = &released_; *link;) {
      device_buffer *const candidate = *link;
      if (!in_flight_.completed_up_to(candidate->last_user_epoch)) {
        link = &candidate->next_released;
        continue;
      }
      *link = candidate->next_released;
      candidate->next_released = free_now;
      free_now = candidate;
      if (!unobserved().none()) tracker_.forget(candidate->data(), candidate->size());
    }
  });
  while (free_now) {
    device_buffer *const next = free_now->next_released;
    delete free_now;
    released_count_.fetch_sub(1, std::memory_order_acq_rel);
    free_now = next;
  }
}

void context::record_name() const noexcept {
  job_home::record_name();
  trace::note_machine(number(), machine());
}

void context::forget_failures_in(const void *memory, std::uint64_t bytes) noexcept {
  if (unobserved().none()) return;
  submission_lock_.run([&] { tracker_.forget(memory, bytes); });
}

}  // namespace sg
