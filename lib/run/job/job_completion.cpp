// SPDX-License-Identifier: Apache-2.0
// How jobs fail and complete, and which threads are notified.
#include <cstdio>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/linked_list.hpp"
#include "base/log.hpp"
#include "run/job/completion_queue.hpp"
#include "run/job/job.hpp"
#include "run/job/job_home.hpp"
#include "run/program/device_graph.hpp"
#include "run/program/program_run.hpp"
#include "trace/profiler_ranges.hpp"
#include "trace/recorder.hpp"

namespace sg {

void job::predecessor_completed(const dependency &how, bool issued, const failure_causes *causes,
                                std::int64_t end_ns) noexcept {
  const bool follows = how.follows;  // the first release may free the node
  if (causes) fail_dependency(*causes);
  not_before(end_ns);
  if (!follows || !issued) release_start();
  if (follows) release_completion();
}

void job::fail(sg_status status, const char *message) noexcept {
  std::int32_t none = SG_STATUS_OK;
  if (!failure_.compare_exchange_strong(none, status, std::memory_order_acq_rel)) return;
  if (has_label_)
    message_.set("job \"%s\": %s", label_, message);
  else
    message_.set("%s", message);
}

namespace {
std::mutex g_failed_children;  // guards the failed children of all parents: failures are rare
}

void job::child_failed(const job &child) noexcept {
  causes_.add(child.causes_);
  const std::lock_guard lock(g_failed_children);
  if (child.child_index >= failed_child_) return;
  failed_child_ = child.child_index;
  child_status_ = child.status_;
  child_message_.set("submission %d of the graph%s%s%s: %s", child.child_index, child.has_label_ ? " (" : "",
                     child.label(), child.has_label_ ? ")" : "", child.message_.c_str());
}

void job::fail_as_children() noexcept {
  const std::lock_guard lock(g_failed_children);
  if (failed_child_ != INT32_MAX) fail(child_status_, child_message_.c_str());
}

void job::fail_early(const char *when) noexcept {
  const job *late = this;
  while (late && !late->deadline_passed()) late = late->parent;
  char text[120];
  std::snprintf(text, sizeof text, "%s %s", late ? "the deadline passed" : "cancelled", when);
  fail(late ? SG_STATUS_DEADLINE_EXCEEDED : SG_STATUS_CANCELLED, text);
}

void job::fail_with_dependency(const char *consequence) noexcept {
  std::string first;
  try {
    first = owner_->unobserved().text_of(causes_.first());
  } catch (const std::bad_alloc &) {
  }
  failure_text text;
  text.set("a job that this one was ordered after failed; %s%s%s", consequence,
           first.empty() ? "" : ". The first failure: ", first.c_str());
  fail(SG_STATUS_DEPENDENCY_FAILED, text.c_str());
}

// Called before the completion is visible: later readers of the memory must find the failure.
void job::record_failure() noexcept {
  if (causes_.none()) causes_.add(unobserved_failures::new_cause());
  if (writes_tracked) owner_->unobserved().add({this, epoch, incarnation()}, causes_, message_.c_str());
}

// A job without work counts as the first device's.
void job::log_failure() const noexcept {
  // Not an error: the application asked for it.
  const bool wanted = status_ == SG_STATUS_CANCELLED || status_ == SG_STATUS_DEADLINE_EXCEEDED;
  const log_level level = wanted ? log_level::info : log_level::error;
  if (!logs(level, log_area::job)) return;
  const std::uint64_t devices = device_bits() != 0 ? device_bits() : 1;
  char names[400] = "";
  std::size_t length = 0;
  for (std::size_t i = 0; i < owner_->devices().size() && i < 64 && length < sizeof names; ++i)
    if (devices >> i & 1)
      length +=
          static_cast<std::size_t>(std::snprintf(names + length, sizeof names - length, "%s%s", length > 0 ? ", " : "",
                                                 owner_->on(device_index(i)).name().c_str()));
  log_message(level, log_area::job, "%s on %s: %s", name_of(status_), names, message());
}

void job::mark_observed() const noexcept {
  if (status_ != SG_STATUS_OK) causes_.for_each([this](std::uint64_t cause) { owner_->unobserved().observed(cause); });
}

void job::record_completion() noexcept {
  if (profiler_range != 0) trace::end_range(std::exchange(profiler_range, 0));
  if (!trace::recording_is_on()) return;
  trace::event e(trace::event_kind::completion, owner_->number(), trace_number);
  e.body.start_ns = start_ns_ == unset ? 0 : start_ns_;
  e.body.end_ns = start_ns_ == unset ? 0 : end_ns();
  e.body.value = static_cast<std::uint64_t>(monotonic_ns());
  e.body.index = static_cast<std::uint32_t>(status_);
  e.body.count = static_cast<std::uint32_t>(single.batch_size);
  trace::record(e);
}

void job::complete_in_full(sg_status status) noexcept {
  status_ = status;
  const bool has_children = graph && !program;  // whose commands are not its own
  if (!is_run && !has_children && commands_run_ > 0) add_time(single, ready_ns());
  if (end_ns() == 0) end_ns_.store(ready_ns() ? ready_ns() : owner_->device_now_ns(), std::memory_order_relaxed);
  operands.clear();
  if (status != SG_STATUS_OK) count_moved_bytes();
  run.reset();
  if (graph) graph = std::shared_ptr<const recorded_graph>(graph->totals);
  if (status != SG_STATUS_OK) {
    owner_->count_failure(status);
    record_failure();
    log_failure();
  }
}

void job::finish() noexcept {
  // A thread that sees the job done may release the last reference but the engine's; this one keeps the record.
  const auto engines = ref<job>::adopt(this);
  job_home &home = *owner_;  // which the record keeps alive
  if (dependency_failed())
    fail_with_dependency("this one was already behind it on the device, and what it wrote is not valid");
  const auto status = static_cast<sg_status>(failure_.load(std::memory_order_acquire));
  // No thread waits for it, no callback is set, and none can be. The tracker may still add successors.
  const bool anonymous = has_one_ref();
  plain = plain && anonymous && status == SG_STATUS_OK && !kept;
  // Released behind the completion and the callbacks, which may use the same `user`.
  std::shared_ptr<const void> used, used_by_graph;
  if (!plain) {
    used = std::move(kept);
    if (graph) used_by_graph = graph->kept;
    complete_in_full(status);
  }
  if (trace_number != 0) record_completion();
  if (loaded_devices != 0) home.remove_load(*this);
  if (anonymous) {
    state_.store(done_bit, std::memory_order_release);
  } else if (state_.fetch_or(done_bit) & waited_bit) {  // in one order with job_completions' counts
    futex_wake_all(state_);
  }
  if (!plain && queue) {
    // The queue keeps the job until its completion is collected; the job does not keep the queue.
    const ref<completion_queue> to = std::move(queue);
    to->post(ref<job>::share(this));
  }

  if (parent && status != SG_STATUS_OK) parent->child_failed(*this);  // before a successor of this job can fail
  const bool was_issued = successors_.is_marked();
  for (dependency *node = successors_.close(); node;) {
    dependency *next = node->next;  // the successor may run and be recycled at once
    const bool one_clock = node->successor->pool == pool;
    const auto keep = one_clock ? ref<job_home>() : ref<job_home>::share(&node->successor->owner());
    const failure_causes unknown;
    const failure_causes *const causes = status == SG_STATUS_OK || !node->needs_success ? nullptr
                                         : one_clock                                    ? &causes_
                                                                                        : &unknown;
    node->successor->predecessor_completed(*node, was_issued, causes, one_clock ? end_ns() : 0);
    node = next;
  }
  for (callback_request *request = anonymous ? nullptr : reversed(callbacks_.close()); request;) {
    callback_request *const next = request->next;
    home.post_callback(request);
    request = next;
  }
  home.job_completed(*this);
  if (plain || !parent) return;
  parent->add_child(*this);
  parent->release_start();
}

}  // namespace sg
