// SPDX-License-Identifier: Apache-2.0
// A graph's run on a device without graphs, or batches of a pipeline: one child job for each submission, in that order.
#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "run/context.hpp"
#include "run/job/completion_queue.hpp"
#include "run/job/process.hpp"
#include "run/job/service.hpp"
#include "run/objects/stream.hpp"
#include "run/objects/submission_list.hpp"
#include "run/program/program_run.hpp"

namespace sg {

void context::submit_children(std::span<const parent_run> runs, const submission_list &recorded) {
  if (process_exits()) throw error(SG_STATUS_SHUTDOWN, "the process is exiting");
  trace::timed_event submitting(trace::event_kind::submission, number());
  const auto is_native = [](const parent_run &run) { return run.order.on && run.order.on->is_native(); };
  for (const parent_run &run : runs) {
    if (submitting.is_on()) trace_submission(submitting, *run.parent, run.order);
    if (is_native(run)) follow_native(*run.order.on);
  }
  std::vector<ref<job>> children;
  std::vector<std::size_t> counts(runs.size());                                 // of children, by run
  std::map<std::pair<std::size_t, std::int64_t>, job *> latest_of_stream;       // of each run
  std::vector<access> room;
  children.reserve(recorded.size());
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const submission &work = recorded.at(i);
    const std::size_t of = recorded.run_of(i);
    const ref<job> &parent = runs[of].parent;
    children.push_back(new_job());
    job &child = *children.back();
    child.device = work.device;
    if (work.program) child.give_work(work.program);
    child.operands = recorded.operands(i);
    child.follows_on_device = work.follows_on_device;
    child.priority = work.priority != 0 ? work.priority : parent->priority;
    child.units = work.units;
    if (!work.label.empty()) child.set_label(work.label.c_str());
    child.trace_id = work.trace_id != 0 ? work.trace_id : parent->trace_id;
    if (parent->trace_number != 0) trace_child(child);
    if (work.partition_stream) child.partition_lane = work.partition_stream->partition_lane();
    child.submitter = parent->submitter;
    if (work.stream >= 0) latest_of_stream.emplace(std::pair(of, work.stream), nullptr);
    ++counts[of];
  }
  // The predecessors of a run are gathered in one job, so that not every child depends on all of them.
  std::vector<ref<job>> gates(runs.size());
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (const submission_order &order = runs[r].order; order.on || order.behind || order.after_count > 0)
      gates[r] = new_job();
  // An untracked run promises that it conflicts with no other job; its own submissions may conflict with each other.
  const auto own = runs[0].order.untracked ? std::make_unique<tracker>() : nullptr;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    job &parent = *runs[r].parent;
    if (parent.deadline_at_ns != 0) helper().sweep_at(parent.deadline_at_ns);
    if (runs[r].order.limited) parent.admitted = limit_.enter();
    parent.begins(counts[r]);
  }
  bool complete = false;
  std::vector<ref<job>> replaced(2 * runs.size());
  submission_lock_.run_here([&] {
    for (const ref<job> &gate : gates) {
      if (!gate) continue;
      gate->add_ref_unshared();
      gate->epoch = in_flight_.count_in();
    }
    std::fill(counts.begin(), counts.end(), 0);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::size_t of = recorded.run_of(i);
      children[i]->add_ref_unshared();
      children[i]->become_child(*runs[of].parent, static_cast<std::int32_t>(counts[of]++));
      children[i]->epoch = in_flight_.count_in();
    }
    for (const parent_run &run : runs) {
      run.parent->add_ref_unshared();
      run.parent->epoch = in_flight_.count_in();
    }
    try {
      for (std::size_t r = 0; r < runs.size(); ++r)
        if (gates[r]) replaced[2 * r] = put_in_order(*gates[r], runs[r].order, nullptr, 0);
      for (std::size_t i = 0; i < children.size(); ++i) {
        const std::size_t of = recorded.run_of(i);
        submission_order child_order;
        child_order.after = &gates[of];
        child_order.after_count = gates[of] ? 1 : 0;
        const submission &work = recorded.at(i);
        child_order.untracked = !work.tracked;
        if (work.stream >= 0)
          child_order.behind = std::exchange(latest_of_stream.at({of, work.stream}), children[i].get());
        const std::span<const access> accesses = recorded.accesses(i, room);
        put_in_order(*children[i], child_order, accesses.data(), accesses.size(), own.get());
      }
      for (std::size_t r = 0; r < runs.size(); ++r) {
        submission_order parent_order;
        parent_order.on = runs[r].order.on;
        parent_order.behind = runs[r].order.completes_behind;
        replaced[2 * r + 1] = put_in_order(*runs[r].parent, parent_order, nullptr, 0);
      }
      complete = true;
    } catch (const std::bad_alloc &) {
      for (const ref<job> &child : children) child->drop_work();
      for (const parent_run &run : runs) run.parent->queue = {};
    }
  });
  for (const ref<job> &gate : gates)
    if (gate) gate->submit();
  for (const ref<job> &child : children) child->submit();
  for (const parent_run &run : runs) run.parent->submit();
  if (!complete) throw std::bad_alloc();
  for (const parent_run &run : runs)
    if (is_native(run)) run.parent->wait(deadline(-1));
}

}  // namespace sg
