// SPDX-License-Identifier: Apache-2.0
#include "api/submission/submission.hpp"

#include <atomic>
#include <cstdio>

#include "api/entry.hpp"

namespace sg {

namespace {

// Submitter number of a thread without a stream, for fair sharing.
std::uint32_t number_of_thread() noexcept {
  static std::atomic<std::uint32_t> latest{0};
  thread_local const std::uint32_t own = latest.fetch_add(1, std::memory_order_relaxed);
  return own;
}

}  // namespace

checked_submit::checked_submit(context &to, const sg_submit *given) : to_(to) {
  if (!given) return;
  sg_submit room;
  const sg_submit &s = in_full(*given, room, "submit");
  if (s.flags & ~static_cast<std::uint32_t>(SG_SUBMIT_UNTRACKED | SG_SUBMIT_WILL_WAIT))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@submit->flags is 0x%x, which has unknown bits", s.flags);
  require_range(s.priority, -1, 1, "submit->priority");
  require_range(s.after_count, 0, INT32_MAX, "submit->after_count");
  if (s.after_count > 0) require(s.after, "submit->after");
  require_range(s.timeout_ns, 0, INT64_MAX, "submit->timeout_ns");
  deadline_ns_ = s.timeout_ns;
  untracked_ = (s.flags & SG_SUBMIT_UNTRACKED) != 0;
  will_wait_ = (s.flags & SG_SUBMIT_WILL_WAIT) != 0;
  priority_ = static_cast<std::int8_t>(s.priority);
  tag_ = s.tag;
  label_ = s.label;
  trace_id_ = s.trace_id;
  plan_ = s.plan;
  if (s.stream || s.graph || s.queue || s.after_count > 0) look_up(s);
}

checked_submit::checked_submit(context &to, ref<graph> changed, std::int32_t index, const submission &was) : to_(to) {
  named_in_submit &here = named_.emplace();
  here.records = std::move(changed);
  here.index = index;
  here.was = was.fixed;
  here.request = was.request;
  here.units = was.units;
}

checked_submit::checked_submit(context &to, const sg_plan_options *options, std::shared_ptr<const program> &made)
    : to_(to), plan_(options) {
  operand_spaces known;
  check_plan_options(options, "options", known);
  named_in_submit &here = named_.emplace();
  here.makes = &made;
  here.absent = known.absent;
}

void checked_submit::run(const std::shared_ptr<const program> &plan, std::uint64_t number) {
  const std::int32_t units = most_lanes();
  const int lanes = plan->schedule->lanes[static_cast<int>(lane_kind::compute)];
  if (units > 0 && lanes > units)
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@submit->stream may use %d compute units, and the plan is cut for %d workers", units, lanes);
  if (!named_) named_.emplace();
  named_->runs = plan;
  named_->runs_number = number;
}

void checked_submit::require_as_planned(const form &given, const char *name) const {
  const program &plan = *named_->runs;
  if (*plan.what == given) return;
  throw error(
      SG_STATUS_INVALID_ARGUMENT,
      "@%s differs from the plan in its sizes, types, strides, memory or options: it is %s, and the plan is of %s",
      name, given.describe(plan.request).c_str(), plan.what->describe(plan.request).c_str());
}

plan_request checked_submit::wanted(operand_spaces &known) const {
  if (updates()) return named_->request;
  if (plan_to_run()) return named_->runs->request;
  return limited(check_plan_options(plan_, makes_plan() ? "options" : "submit->plan", known));
}

void checked_submit::note(sg_operation operation, const form &fixed, const char *name) {
  named_in_submit &here = *named_;
  here.operation = operation;
  here.fixed = fixed.share();
  if (here.index >= 0 && !(*here.was == fixed))
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@%s differs from submission %d of the graph in its sizes, types, strides, memory or options: it is "
                "%s, and was "
                "recorded as %s",
                name, here.index, fixed.describe(here.request).c_str(), here.was->describe(here.request).c_str());
}

void checked_submit::look_up(const sg_submit &s) {
  named_in_submit &here = named_.emplace();
  if (s.stream) {
    here.in = object_of<stream>(s.stream, object_type::stream, "submit->stream");
    if (&here.in->owner() != &to_)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@submit->stream is %p, a stream of another context",
                  static_cast<void *>(s.stream));
    here.units = here.in->units();
    if (priority_ == 0) priority_ = static_cast<std::int8_t>(here.in->priority());
  }
  if (s.graph) {
    here.records = object_of<graph>(s.graph, object_type::graph, "submit->graph");
    if (&here.records->owner() != &to_)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@submit->graph is %p, a graph of another context",
                  static_cast<void *>(s.graph));
    if (s.after_count > 0)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@submit->after_count is %d; what is recorded comes after no job",
                  s.after_count);
    if (s.timeout_ns != 0)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@submit->timeout_ns is %lld; what is recorded has no deadline",
                  static_cast<long long>(s.timeout_ns));
    if (s.queue)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@submit->queue is %p; what is recorded posts no completion",
                  static_cast<void *>(s.queue));
  }
  if (s.queue) here.queue = object_of<completion_queue>(s.queue, object_type::queue, "submit->queue");
  if (s.after_count > 0) here.after.reserve(static_cast<std::size_t>(s.after_count));
  for (std::int32_t i = 0; i < s.after_count; ++i) {
    char name[40];
    std::snprintf(name, sizeof name, "submit->after[%d]", i);
    here.after.push_back(object_of<job>(s.after[i], object_type::job, name));
  }
}

void checked_submit::record(const ref<job> &work, const access *accesses, std::size_t access_count) {
  const named_in_submit &here = *named_;
  submission recorded;
  if (label_) work->set_label(label_);  // truncated there
  recorded.label = work->label();
  recorded.trace_id = trace_id_;
  recorded.priority = priority_;
  recorded.units = here.units;
  if (partition_of(*work)) recorded.partition_stream = here.in;
  recorded.follows_on_device = work->follows_on_device;
  if (here.in) recorded.stream = here.in->number();
  recorded.program = work->shared_program();
  recorded.operands = std::move(work->operands);
  recorded.tracked = !untracked_;
  recorded.accesses.assign(accesses, accesses + access_count);
  recorded.operation = here.operation;
  recorded.fixed = here.fixed;
  recorded.request = here.request;
  recorded.kept = kept_;
  if (here.index < 0)
    here.records->record(std::move(recorded));
  else
    here.records->replace(here.index, std::move(recorded));
}

lane_slot *checked_submit::partition_of(const job &work) const noexcept {
  const bool is_there = named_ && named_->in && work.program && work.program->device() == named_->in->device();
  return is_there ? named_->in->partition_lane() : nullptr;
}

submission_order checked_submit::settle(job &work) {
  work.priority = priority_;
  work.tag = tag_;
  work.trace_id = trace_id_;
  if (label_) work.set_label(label_);
  if (deadline_ns_ != 0) work.deadline_at_ns = deadline(deadline_ns_).at_ns();
  submission_order order;
  order.untracked = untracked_;
  order.limited = true;
  if (named_) {
    work.queue = std::move(named_->queue);
    order.on = named_->in.get();
    order.after = named_->after.data();
    order.after_count = named_->after.size();
  }
  work.units = order.on ? order.on->units() : 0;
  work.partition_lane = partition_of(work);
  work.submitter = order.on ? order.on->number() : number_of_thread();
  return order;
}

// Throws if an operand is in a pipeline's stage, whose addresses have memory only in what is recorded for the stage.
void checked_submit::require_memory(const access *accesses, std::size_t access_count) const {
  if (records() && named_->records->records_only()) return;  // the pipeline checks them
  for (const access *a = accesses; a != accesses + access_count; ++a) {
    const auto *const first = reinterpret_cast<const void *>(a->bytes.lo);
    if (process_ranges::stages.excludes(first, a->bytes.hi - a->bytes.lo)) continue;
    const auto range = process_ranges::find(first, a->bytes.hi - a->bytes.lo);
    if (range && range->kind == range_kind::stage)
      throw error(
          SG_STATUS_INVALID_ARGUMENT,
          "an operand (%p) is an address of a pipeline's stage: only operations that are recorded for the stage "
          "have memory there",
          first);
  }
}

void checked_submit::go(ref<job> work, const access *accesses, std::size_t access_count, sg_job **out_job) {
  if (makes_plan()) {
    *named_->makes = work->shared_program();
    return;
  }
  if (plan_to_run() && !work->program)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@operation->desc leaves nothing to do, and the plan is of %s",
                named_->runs->what->describe(named_->runs->request).c_str());
  require_memory(accesses, access_count);
  if (untracked_ && !records()) access_count = 0;
  if (work->program) work->follows_on_device = work->program->may_follow && to_.on().orders_commands();
  if (records()) return record(work, accesses, access_count);
  if (kept_) work->kept = kept_;  // of plain jobs nothing but their first cache lines is written
  const submission_order order = settle(*work);
  hand_out(*work, out_job, [&] {
    if (will_wait_ && to_.computes_here(*work, order))
      return to_.submit_here(std::move(work), order, accesses, access_count, pending_);
    if (pending_) *pending_ = work;
    to_.submit(std::move(work), order, accesses, access_count);
  });
}

}  // namespace sg
