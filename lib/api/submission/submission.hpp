// SPDX-License-Identifier: Apache-2.0
// A checked sg_submit with its handles resolved.
#pragma once

#include <streamgemm/graph.h>
#include <streamgemm/job.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/plan_options.hpp"
#include "run/job/completion_queue.hpp"
#include "run/memory/process_ranges.hpp"
#include "run/objects/graph.hpp"
#include "run/objects/stream.hpp"

namespace sg {

// Rare options of a submission.
struct named_in_submit {
  ref<stream> in;
  std::int32_t units = 0;  // limit of compute units, of the stream; 0: none
  ref<completion_queue> queue;
  std::vector<ref<job>> after;
  ref<graph> records;
  // For recording into a graph, see struct submission.
  sg_operation operation = SG_OPERATION_MARKER;
  std::shared_ptr<const form> fixed;
  plan_request request;
  std::int32_t index = -1;          // in the graph; -1: at its end
  std::shared_ptr<const form> was;  // of an update: what it must keep
  // Of sg_plan_create: receives the program, unless there is nothing to do.
  std::shared_ptr<const program> *makes = nullptr;
  std::optional<sg_memory_kind> absent;  // the memory of operands without an address
  // Of sg_plan_run_async: the plan's program, and its number.
  std::shared_ptr<const program> runs;
  std::uint64_t runs_number = 0;
};

class checked_submit {
 public:
  checked_submit(context &to, const sg_submit *given);
  // For the update of a graph's submission that was recorded as `was`.
  checked_submit(context &to, ref<graph> changed, std::int32_t index, const submission &was);
  // For a plan made ahead: checks and plans, and submits nothing.
  checked_submit(context &to, const sg_plan_options *options, std::shared_ptr<const program> &made);

  const sg_plan_options *plan() const noexcept { return plan_; }
  // The device of its stream; empty: none is named.
  std::optional<device_index> device() const noexcept {
    return named_ && named_->in ? named_->in->device() : std::nullopt;
  }
  // On cores, GEMMs of a limited stream are split for fewer workers; 0: for all.
  std::int32_t most_lanes() const noexcept { return named_ && to_.model().lanes_are_cores ? named_->units : 0; }
  plan_request limited(plan_request request) const noexcept {
    const std::int32_t most = most_lanes();
    if (most > 0) request.streams = request.streams > 0 ? std::min(request.streams, most) : most;
    return request;
  }
  bool makes_plan() const noexcept { return named_ && named_->makes; }
  // The memory of operands without an address, of a plan made ahead; empty: each must have one.
  std::optional<sg_memory_kind> place_of_absent() const noexcept { return named_ ? named_->absent : std::nullopt; }
  // Runs a plan made ahead instead of planning. Throws if it uses more workers than the stream allows.
  // `number`: of the plan, which no other one of the process has.
  void run(const std::shared_ptr<const program> &plan, std::uint64_t number);
  std::uint64_t number_of_plan() const noexcept { return plan_to_run() ? named_->runs_number : 0; }
  const std::shared_ptr<const program> *plan_to_run() const noexcept {
    return named_ && named_->runs ? &named_->runs : nullptr;
  }
  // The plan to run has nothing to do, which is allowed.
  void run_nothing() noexcept { named_->runs = nullptr; }
  // Throws unless the plan to run is one of that form. `name`: the descriptor's name in messages.
  void require_as_planned(const form &given, const char *name) const;
  // The caller waits for the job next. `pending`, if given, receives it unless it completes successfully before go()
  // returns, for a caller without a handle.
  void will_wait(ref<job> *pending) noexcept {
    will_wait_ = true;
    pending_ = pending;
  }
  bool will_wait() const noexcept { return will_wait_; }
  bool records() const noexcept { return named_ && named_->records; }
  // Whether the planner has a free choice: no options, no limit or device of the stream; and the job runs now.
  bool is_planners_choice() const noexcept {
    return !plan_ && !records() && !makes_plan() && !plan_to_run() && most_lanes() == 0 && !device();
  }

  // Whether another submission that differs in its addresses only may have the same program: see cached_submission.hpp.
  bool repeats() const noexcept { return is_planners_choice() || (plan_to_run() && !records() && !device()); }

  bool updates() const noexcept { return records() && named_->index >= 0; }
  // The plan request: from the options, within the stream's limit; that of a plan to run; in an update as recorded.
  // `known`: see check_plan_options.
  plan_request wanted(operand_spaces &known) const;

  // For recording: the operation and what updates of it must keep, as a form. An update throws if that differs from the
  // recorded one; `name` is the descriptor's name in messages.
  void note(sg_operation operation, const form &fixed, const char *name);
  void note_operation(sg_operation operation) noexcept { named_->operation = operation; }  // nothing is fixed
  // What the operation's function uses: it is kept as long as the job or the recorded submission needs it.
  void keep(std::shared_ptr<user_release> what) noexcept { kept_ = std::move(what); }
  void note_request(const plan_request &request) noexcept { named_->request = request; }
  // Submits a job with children by `run(parent, order)`.
  template <class Run>
  void go_with(const ref<job> &parent, sg_job **out_job, Run &&run) {
    const submission_order order = settle(*parent);
    hand_out(*parent, out_job, [&] { run(parent, order); });
  }
  // Submits or records the work, and makes a handle if the caller requests one. Call once.
  void go(ref<job> work, const access *accesses, std::size_t access_count, sg_job **out_job);

 private:
  [[gnu::noinline]] void look_up(const sg_submit &given);
  submission_order settle(job &work);
  // The reserved lane of its stream; nullptr: it has none, or the job runs on another device, by a plan made ahead.
  lane_slot *partition_of(const job &work) const noexcept;
  // Makes the caller's handle, if requested, before `submit()`, and releases it if that throws.
  template <class Submit>
  void hand_out(job &work, sg_job **out_job, Submit &&submit) {
    if (!out_job) return submit();
    work.add_ref_unshared();
    const handle_bits handle = make_handle(ref<object>::adopt(&work));
    try {
      submit();
    } catch (...) {
      release_handle(handle, object_type::job);
      throw;
    }
    *out_job = handle_of<sg_job>(handle);
  }
  void require_memory(const access *accesses, std::size_t access_count) const;
  void record(const ref<job> &work, const access *accesses, std::size_t access_count);

  context &to_;
  std::optional<named_in_submit> named_;
  const sg_plan_options *plan_ = nullptr;
  std::uint64_t tag_ = 0;
  std::int64_t deadline_ns_ = 0;
  const char *label_ = nullptr;  // the caller's, during the call
  std::uint64_t trace_id_ = 0;
  std::int8_t priority_ = 0;
  bool untracked_ = false;
  bool will_wait_ = false;
  ref<job> *pending_ = nullptr;
  std::shared_ptr<user_release> kept_;
};

}  // namespace sg
