// SPDX-License-Identifier: Apache-2.0
#include "run/context.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "run/completion_queue.hpp"
#include "run/device_buffer.hpp"
#include "run/graph_program.hpp"
#include "run/process.hpp"
#include "run/schedule_run.hpp"
#include "run/service.hpp"
#include "run/stream.hpp"

namespace sg {

namespace {

device_model settled(const device &on, const context_settings &settings) {
  device_model model = on.model();
  if (settings.compute_lanes > 0) model.compute_lanes = settings.compute_lanes;
  if (settings.staging_threads > 0) model.staging_workers = settings.staging_threads;
  model.memory_limit = settings.memory_limit;
  return model;
}

}  // namespace

ref<context> context::create(const context_settings &settings) {
  if (process_exits()) throw error(SG_STATUS_SHUTDOWN, "the process is exiting");
  auto opened = open_device(settings.device.empty() ? nullptr : settings.device.c_str());
  device_model model = settled(*opened, settings);
  std::unique_ptr<context> made(new context(std::move(opened), std::move(model), settings));
  register_context(*made);
  made->registered_ = true;
  made->service_ = service::start(*made);
  return ref<context>::adopt(made.release());
}

context::context(std::shared_ptr<device> opened, device_model model, const context_settings &settings)
    : object(object_type::context),
      device_(std::move(opened)),
      model_(std::move(model)),
      virtual_clock_(device_->ops().stream_begin_at != nullptr),
      follows_on_device_(!device_->unified() && !virtual_clock_),
      check_hazards_(settings.check_hazards),
      job_limit_(settings.job_limit),
      refuse_when_full_(settings.refuse_when_full),
      device_memory_(*device_, arena_pool::memory::device, model_.usable_memory()),
      staging_memory_(*device_, arena_pool::memory::pinned, INT64_MAX),
      pinned_(*device_, known_memory_),
      engine_(std::make_unique<engine>(*device_, model_, settings.dispatch, device_memory_, staging_memory_)) {}

context::~context() {
  if (registered_) unregister_context(*this);
}

void context::last_ref_dropped() noexcept {
  if (service_)
    service_->retire();
  else
    delete this;
}

std::shared_ptr<const compiled_plan> context::plan_for(const problem *problems, std::size_t count,
                                                       const plan_request &request) {
  return plans_.get(problems, count, request, model_, check_hazards_);
}

void context::put_in_order(job &work, const submission &order, const access *accesses, std::size_t access_count) {
  // Of several orders after one job the first counts, so those that need its success come first.
  for (std::size_t i = 0; i < order.after_count; ++i) {
    job &before = *order.after[i];
    work.order_after(before, before.incarnation(), true);
    if (before.done() && before.status() != SG_STATUS_OK) work.fail_dependency();
  }
  if (order.behind) work.order_after(*order.behind, order.behind->incarnation(), false);
  if (!order.untracked) tracker_.add(work, accesses, access_count, virtual_clock_ ? 0 : oldest_generation());
  if (order.on) order.on->append(work);
  if (virtual_clock_) work.not_before(host_seen_ns_.load(std::memory_order_relaxed));
}

void context::admit(job &work) {
  if (job_limit_ == 0) return;
  const auto enter = [&] {
    std::int64_t now = admitted_.load();
    while (now < job_limit_)
      if (admitted_.compare_exchange_weak(now, now + 1)) return true;
    return false;
  };
  if (!enter()) {
    if (refuse_when_full_)
      throw error(SG_STATUS_BUSY, "%lld jobs are in flight, the context's limit", static_cast<long long>(job_limit_));
    waiting_for_room_.fetch_add(1);
    for (;;) {
      const std::uint32_t seen = room_made_.load();
      if (enter()) break;
      futex_wait(room_made_, seen, deadline(-1));
    }
    waiting_for_room_.fetch_sub(1);
  }
  work.admitted = true;
}

void context::count_in(job &work) noexcept {
  if (++in_generation_ > most_in_generation) open_generation();
  work.generation = generation_;
  in_flight_[generation_ % generations].fetch_add(1, std::memory_order_relaxed);
}

void context::submit(const ref<job> &work, const submission &order, const access *accesses, std::size_t access_count) {
  if (process_exits()) throw error(SG_STATUS_SHUTDOWN, "the process is exiting");
  if (order.limited) admit(*work);
  work->add_ref_unshared();  // the engine's
  {
    const std::lock_guard lock(submission_lock_);
    count_in(*work);
    try {
      put_in_order(*work, order, accesses, access_count);
    } catch (...) {
      // Others may already know the record, so it has to end like a job, though one that does nothing.
      work->kind = work_kind::marker;
      work->queue = {};
      work->submit();
      throw;
    }
  }
  work->submit();
}

void context::submit_parts(const ref<job> &whole, const submission &order, const graph_program &program) {
  if (process_exits()) throw error(SG_STATUS_SHUTDOWN, "the process is exiting");
  const std::vector<recorded_work> &works = program.works;
  std::vector<ref<job>> parts;
  std::map<std::int64_t, job *> latest_of_stream;
  parts.reserve(works.size());
  for (const recorded_work &work : works) {
    parts.push_back(new_job());
    job &part = *parts.back();
    part.kind = work.kind;
    part.plan = work.plan;
    part.copy = work.copy;
    part.operands = work.operands.copy();
    part.follows_on_device = work.follows_on_device;
    part.priority = work.priority != 0 ? work.priority : whole->priority;
    part.submitter = whole->submitter;
    if (part.plan && !part.plan->is_single()) part.run = std::make_unique<schedule_run>(*part.plan);
    if (work.stream >= 0) latest_of_stream.emplace(work.stream, nullptr);
  }
  // What the run itself comes after is one job, so that not every part has to.
  const bool ordered = order.on || order.behind || order.after_count > 0;
  const ref<job> gate = ordered ? new_job() : ref<job>();
  const auto let_go = [](const ref<job> &each) {
    if (each) each->submit();
  };
  if (order.limited) admit(*whole);
  bool complete = false;
  {
    const std::lock_guard lock(submission_lock_);
    if (gate) {
      gate->add_ref_unshared();
      count_in(*gate);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i]->add_ref_unshared();
      parts[i]->become_part(*whole, static_cast<std::int32_t>(i));
      count_in(*parts[i]);
    }
    whole->add_ref_unshared();
    count_in(*whole);
    try {
      if (gate) put_in_order(*gate, order, nullptr, 0);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        submission place;
        place.after = &gate;
        place.after_count = gate ? 1 : 0;
        place.untracked = order.untracked || !works[i].tracked;
        if (works[i].stream >= 0)
          place.behind = std::exchange(latest_of_stream.find(works[i].stream)->second, parts[i].get());
        put_in_order(*parts[i], place, works[i].accesses.data(), works[i].accesses.size());
      }
      submission place;
      place.on = order.on;
      put_in_order(*whole, place, nullptr, 0);
      complete = true;
    } catch (const std::bad_alloc &) {
      for (const ref<job> &part : parts) part->kind = work_kind::marker;
      whole->queue = {};
    }
  }
  let_go(gate);
  for (const ref<job> &part : parts) let_go(part);
  let_go(whole);
  if (!complete) throw std::bad_alloc();
}

void context::open_generation() noexcept {
  if (in_flight_[(generation_ + 1) % generations].load(std::memory_order_acquire) != 0) return;
  ++generation_;
  in_generation_ = 0;
}

std::uint32_t context::oldest_generation() noexcept {
  while (oldest_generation_ != generation_ && in_flight_[oldest_generation_ % generations].load() == 0)
    ++oldest_generation_;
  return oldest_generation_;
}

bool context::ended_up_to(std::uint32_t generation) noexcept {
  if (static_cast<std::int32_t>(oldest_generation() - generation) > 0) return true;
  return oldest_generation_ == generation && in_flight_[generation % generations].load() == 0;
}

void context::synchronize() noexcept {
  const job_ends ends;
  const auto wait_for = [&](auto &&condition) {
    for (std::uint32_t seen = ends.count();; seen = ends.count()) {
      {
        const std::lock_guard lock(submission_lock_);
        if (condition()) return;
      }
      ends.wait(seen, deadline(-1));
    }
  };
  std::uint32_t mine = 0;
  wait_for([&] {  // a new generation for what comes
    mine = generation_;
    open_generation();
    return generation_ != mine;
  });
  poll_until(
      [&] {
        const std::lock_guard lock(submission_lock_);
        return ended_up_to(mine);
      },
      long_poll_ns);
  wait_for([&] { return ended_up_to(mine); });
}

namespace {
thread_local context::ends_together *t_together = nullptr;
}  // namespace

context::ends_together::ends_together(context &of) noexcept : of_(of), outer_(t_together) { t_together = this; }

context::ends_together::~ends_together() {
  t_together = outer_;
  if (count_ > 0) of_.count_ends(generation_, count_);
}

void context::count_ends(std::uint32_t generation, std::int64_t count) noexcept {
  in_flight_[generation % generations].fetch_sub(count);  // in one order with job_ends' counts
  if (condemned_count_.load(std::memory_order_acquire) > 0) service_->wake();
  job_ends::announce();
}

void context::job_ended(const job &ended) noexcept {
  if (ended.admitted) {
    admitted_.fetch_sub(1);
    if (waiting_for_room_.load() > 0) {
      room_made_.fetch_add(1);
      futex_wake_all(room_made_);
    }
  }
  ends_together *const all = t_together;
  if (!all || &all->of_ != this) return count_ends(ended.generation, 1);
  if (all->count_ > 0 && all->generation_ != ended.generation)
    count_ends(all->generation_, std::exchange(all->count_, 0));
  all->generation_ = ended.generation;
  ++all->count_;
}

void context::condemn(device_buffer &gone) noexcept {
  {
    const std::lock_guard lock(submission_lock_);
    gone.last_user_generation = generation_;
    open_generation();
    gone.next_condemned = condemned_;
    condemned_ = &gone;
    condemned_count_.fetch_add(1, std::memory_order_acq_rel);
  }
  service_->wake();
}

void context::free_condemned() noexcept {
  if (condemned_count_.load(std::memory_order_acquire) == 0) return;
  device_buffer *free_now = nullptr;
  {
    const std::lock_guard lock(submission_lock_);
    for (device_buffer **link = &condemned_; *link;) {
      device_buffer *const candidate = *link;
      if (!ended_up_to(candidate->last_user_generation)) {
        link = &candidate->next_condemned;
        continue;
      }
      *link = candidate->next_condemned;
      candidate->next_condemned = free_now;
      free_now = candidate;
      condemned_count_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }
  while (free_now) {
    device_buffer *const next = free_now->next_condemned;
    delete free_now;
    free_now = next;
  }
}

void context::post_callback(callback_request *request) noexcept { service_->post(request); }

void context::host_has_seen(std::int64_t device_ns) noexcept {
  if (!virtual_clock_) return;
  std::int64_t now = host_seen_ns_.load(std::memory_order_relaxed);
  while (now < device_ns && !host_seen_ns_.compare_exchange_weak(now, device_ns, std::memory_order_relaxed)) {
  }
}

std::int64_t context::device_now_ns() const noexcept {
  return virtual_clock_ ? host_seen_ns_.load(std::memory_order_relaxed) : monotonic_ns();
}

}  // namespace sg
