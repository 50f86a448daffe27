// SPDX-License-Identifier: Apache-2.0
// Events and steps. Starting queued jobs: engine_start.cpp; batches: batcher.cpp; runs of programs: engine_runs.cpp.
#include "run/dispatch/engine.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/linked_list.hpp"
#include "run/dispatch/stage.hpp"
#include "run/dispatch/traced_commands.hpp"
#include "run/job/job_home.hpp"
#include "trace/recorder.hpp"

namespace sg {

namespace {

// Submissions that gather in a busy device's inbox before a step takes them.
constexpr std::int64_t most_left_in_inbox = 32;

// Weight of a small GEMM in the inbox: its predicted time, on a device times the share that it fills.
std::int64_t weight_of(const sg::program &program, bool device_ordered) noexcept {
  return device_ordered ? static_cast<std::int64_t>(double(program.share) * program.work_seconds * 1e9)
                        : program.work_ns();
}

// Whether this thread has left enough jobs or work in inboxes to request a step.
bool has_left_enough(std::int64_t weight_ns) noexcept {
  constexpr std::int64_t enough_ns = lane_set::worth_a_step_ns;
  thread_local std::int64_t left_ns = 0;
  left_ns += std::max(weight_ns, enough_ns / most_left_in_inbox);
  if (left_ns < enough_ns) return false;
  left_ns = 0;
  return true;
}

}  // namespace

engine::engine(const device_model &model, const settings &how, arena_pool &device_memory, arena_pool &staging_memory,
               const node_stagers &staging, job_home &keeper)
    : keeper_(keeper),
      device_(device_memory.on()),
      model_(model),
      ops_(device_.ops()),
      coalesce_(how.coalesce && device_.has_batches()),
      device_memory_(device_memory),
      staging_memory_(staging_memory),
      usage_(ops_.stream_begin_at != nullptr),
      lanes_(device_, device_memory.index(), model, how.most_in_flight),
      own_(device_),
      stagers_(staging),
      steps_([this] { step(); }, keeper) {
  for (auto &list : running_) list.reserve(most_running);  // so that starting a run allocates nothing
  if (ops_.stop_when) ops_.stop_when(device_.handle(), is_cancelled);
}

engine::~engine() = default;

// ---- Events, from any thread ----

void engine::push(job &ready) noexcept {
  const bool patient = ready.priority <= 0 && ready.program && ready.program->small && !ready.partition_lane;
  const std::int64_t weight = patient ? weight_of(*ready.program, lanes_.device_ordered()) : 0;
  push_to(inbox_, ready);
  // Sequentially consistent with on_device_progress(): either it sees the job, or this thread sees the flag it has set.
  if (patient && saturated_.load() && !has_left_enough(weight)) return;
  steps_.request();
  // A chain of jobs that the device runs faster than completions are reported: a submitter that extends it polls.
  if (lane_full_.load(std::memory_order_relaxed) && ops_.poll) ops_.poll(device_.handle());
}

void engine::hurry() noexcept {
  if (!saturated_.load()) return;  // no job is gathered
  saturated_.store(false);
  hurry_wanted_.store(true, std::memory_order_release);
  steps_.request();
}

void engine::help(const job &awaited) noexcept {
  while (inflight_command *const staged = stagers_.take(awaited)) stage(*staged);
  if (!ops_.run_waiting) return;
  while (!awaited.done() && ops_.run_waiting(device_.handle(), is_of, const_cast<job *>(&awaited)) != 0) {
  }
}

// Whether the job of a running command is to stop early.
int32_t engine::is_cancelled(const sg_backend_done *done) {
  if (done->fn == launcher::completed)
    return static_cast<const inflight_command *>(done->user)->owner->cancel_requested();
  if (done->fn != batch_completed) return 0;
  const job *const owner = static_cast<const batch *>(done->user)->inflight.owner;
  return owner && owner->cancel_requested();
}

// Whether a command in flight is one of the job, or of a batch with the job.
int32_t engine::is_of(const sg_backend_done *done, void *awaited) {
  const job *const wanted = static_cast<const job *>(awaited);
  const auto is_wanted = [wanted](const job *one) {
    while (one && one != wanted) one = one->parent;
    return one != nullptr;
  };
  if (done->fn == launcher::completed) return is_wanted(static_cast<const inflight_command *>(done->user)->owner);
  if (done->fn != batch_completed) return 0;
  const batch &b = *static_cast<const batch *>(done->user);
  if (b.inflight.owner) return is_wanted(b.inflight.owner);
  return std::any_of(b.members.begin(), b.members.end(), is_wanted);
}

// A command in flight has completed.
void engine::on_device_progress() noexcept {
  saturated_.store(false);
  if (ops_.poll) leave_to_submitter();
  steps_.request();
}

// A submitter that left a job in the inbox may be about to submit again: it then takes the inbox itself, on the core
// whose caches hold the jobs.
void engine::leave_to_submitter() const noexcept {
  if (!inbox_.load(std::memory_order_relaxed) || steps_.is_working()) return;
  for (const deadline next_submission(1000); inbox_.load(std::memory_order_relaxed) && !next_submission.passed();) {
  }
}

void engine::sweep() noexcept {
  sweep_wanted_.store(true, std::memory_order_release);
  steps_.request();
}

bool engine::admit(lane_slot &dedicated) noexcept {
  lane_change wanted{.dedicated = &dedicated};
  change_lanes(wanted);
  return wanted.granted;
}

void engine::dismiss(lane_slot &dedicated) noexcept {
  lane_change wanted{.dedicated = &dedicated, .arrives = false};
  change_lanes(wanted);
}

void engine::change_lanes(lane_change &wanted) noexcept {
  push_to(lane_changes_, wanted);
  steps_.request();
  while (wanted.over.load(std::memory_order_acquire) == 0) futex_wait(wanted.over, 0, deadline(-1));
}

void engine::complete_calls(inflight_command &f, sg_status status, const char *message, std::int64_t start_ns,
                            std::int64_t end_ns, std::int32_t backend_calls) noexcept {
  if (status == SG_STATUS_CANCELLED && f.owner->cancel_requested())
    f.owner->fail_early("while it ran; C may be partly written");
  else if (status != SG_STATUS_OK)
    f.owner->fail(status, message ? message : name_of(status));
  if (status != SG_STATUS_OK) retire_buffers_if_stuck(f.lane);
  if (end_ns != 0) {
    f.start_ns = f.start_ns == 0 ? start_ns : std::min(f.start_ns, start_ns);
    f.end_ns = std::max(f.end_ns, end_ns);
  }
  if (f.backend_calls.fetch_sub(backend_calls, std::memory_order_acq_rel) == backend_calls) inflight_completed(f);
}

// The lane has room before the completion is visible: an observer may submit the next job, which must not wait for
// another core.
void engine::inflight_completed(inflight_command &f) noexcept {
  const auto keep = ref<job_home>::share(&f.owner->owner());  // the job may hold the last reference to it
  if (f.lane) {
    lanes_.awake(f.lane);
    if (f.owner->is_run)
      lanes_.left_of_run(*f.lane);
    else
      lanes_.left(*f.lane, f.share, f.predicted_ns);
  }
  if (f.owner->is_run) {
    push_to(completed_, f);
  } else {
    f.owner->ran(f);
    usage_.count_command(f, f.owner->ready_ns());
    if (f.owner->trace_number != 0 && trace::recording_is_on()) trace_single(f);
    f.owner->work_completed();
  }
  on_lane_notified();
}

void engine::on_lane_notified() noexcept {
  on_device_progress();
  lanes_.awake(nullptr);
}

// ---- Steps, on one thread at a time ----

void engine::step() noexcept {
  lane_full_.store(false, std::memory_order_relaxed);
  for (inflight_command *f = take_in_order(completed_); f;) {
    inflight_command *next = f->next;
    command_completed(*f);
    f = next;
  }
  for (lane_change *change = take_in_order(lane_changes_); change;) {
    lane_change *next = change->next;
    if (change->arrives)
      change->granted = lanes_.admit(*change->dedicated);
    else
      lanes_.dismiss(*change->dedicated);
    change->over.store(1, std::memory_order_release);
    futex_wake_all(change->over);  // by address only: the requesting thread may have destroyed it
    change = next;
  }
  for (job *j = take_in_order(inbox_); j;) {
    job *next = j->next;
    sort_in(*j);
    j = next;
  }
  if (sweep_wanted_.load(std::memory_order_acquire) && sweep_wanted_.exchange(false)) drop_cancelled();
  start_in_partitions();
  hurried_ = hurry_wanted_.load(std::memory_order_acquire) && hurry_wanted_.exchange(false);
  do {
    memory_released_ = memory_refused_ = false;
    bool held = false;  // compute jobs below this priority wait for commands in flight
    for (int priority = priorities - 1; priority >= 0; --priority) {
      auto &running = running_[static_cast<std::size_t>(priority)];
      for (std::size_t i = 0; i < running.size();) {
        job &j = *running[i];
        advance(j);
        if (i < running.size() && running[i] == &j) ++i;  // otherwise it has completed and left the list
      }
      held = start_ready(priority, held);
    }
  } while (memory_released_);  // a run of higher priority may wait for it, and no other event would start it
  note_saturation();
  note_queued();
}

void engine::note_queued() noexcept {
  for (std::size_t priority = 0; priority < priorities; ++priority) {
    std::size_t queued = 0;
    for (const ready_jobs &list : ready_[priority]) queued += list.size();
    usage_.set_queued(priority, queued);
  }
}

void engine::note_saturation() noexcept {
  if (!coalesce_ || saturated_.load(std::memory_order_relaxed) || !lanes_.busy_with_small()) return;
  if (ready_[1][computing].empty() && ready_[0][computing].empty()) return;
  saturated_.store(true);
  // Work in flight may have completed earlier, with the previous step.
  if (!lanes_.busy_with_small()) saturated_.store(false);
}

// Completes jobs that need no device.
bool engine::complete_unrun(job &ready) noexcept {
  // The children have completed, successfully or not.
  const bool has_children = !ready.program && ready.graph;
  if (has_children) ready.fail_as_children();
  if (ready.cancel_requested() && !has_children)
    ready.fail_early("before it started; nothing was written");
  else if (ready.dependency_failed())
    ready.fail_with_dependency("nothing was written");
  else if (ready.program)
    return false;
  else if (ready.follows_on_device && !has_children)
    ready.issued(ready.behind(), ready.behind_marks());
  ready.work_completed();
  return true;
}

void engine::sort_in(job &ready) noexcept {
  if (complete_unrun(ready)) return;
  if (ready.native) return start_single(ready, *ready.native);  // the submitter waits until it is enqueued
  if (ready.partition_lane && ready.program->computes && !ready.is_run) return ready_in_partitions_.push(ready);
  work_class what = ready.is_run ? of_runs : computing;
  if (!ready.is_run && lanes_.device_ordered()) {
    const lane_kind where = ready.program->schedule->commands[0].where.kind;
    if (where == lane_kind::copy_in) what = to_device;
    if (where == lane_kind::copy_out) what = from_device;
  }
  ready_[static_cast<std::size_t>(ready.priority + 1)][what].push(ready);
}

void engine::drop_cancelled() noexcept {
  const auto drop_from = [](ready_jobs &list) { list.keep([](job &j) { return !complete_unrun(j); }); };
  for (auto &classes : ready_)
    for (ready_jobs &list : classes) drop_from(list);
  drop_from(ready_in_partitions_);
}

}  // namespace sg
