// SPDX-License-Identifier: Apache-2.0
// A graph's run on a device without graphs, or batches of a pipeline: one child job for each submission, in that order.
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

void context::submit_children(const ref<job> &parent, const submission_order &order, const submission_list &recorded,
                              std::span<const child_run> runs) {
  if (process_exits()) throw error(SG_STATUS_SHUTDOWN, "the process is exiting");
  trace::timed_event submitting(trace::event_kind::submission, number());
  if (submitting.is_on()) trace_submission(submitting, *parent, order);
  const bool native = order.on && order.on->is_native();
  if (native) follow_native(*order.on);
  const auto run_of = [&](std::size_t child) -> job & {
    return runs.empty() ? *parent : *runs[recorded.run_of(child)].run;
  };
  std::vector<ref<job>> children;
  std::map<std::pair<const job *, std::int64_t>, job *> latest_of_stream;  // of each run
  std::vector<access> room;
  children.reserve(recorded.size());
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const submission &work = recorded.at(i);
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
    if (work.stream >= 0) latest_of_stream.emplace(std::pair(&run_of(i), work.stream), nullptr);
  }
  // The predecessors of the run are gathered in one job, so that not every child depends on all of them.
  const bool ordered = order.on || order.behind || order.after_count > 0;
  const ref<job> gate = ordered ? new_job() : ref<job>();
  // An untracked run promises that it conflicts with no other job; its own submissions may conflict with each other.
  const auto own = order.untracked ? std::make_unique<tracker>() : nullptr;
  const auto let_go = [](const ref<job> &each) {
    if (each) each->submit();
  };
  if (parent->deadline_at_ns != 0) helper().sweep_at(parent->deadline_at_ns);
  if (order.limited) parent->admitted = limit_.enter();
  bool complete = false;
  std::vector<ref<job>> replaced(runs.size() + 2);
  parent->begins(runs.empty() ? children.size() : runs.size());
  std::vector<std::size_t> counts(runs.size());  // of children
  for (std::size_t i = 0; i < children.size() && !runs.empty(); ++i) ++counts[recorded.run_of(i)];
  for (std::size_t r = 0; r < runs.size(); ++r) runs[r].run->begins(counts[r]);
  submission_lock_.run_here([&] {
    const auto enter = [&](job &each) {
      each.add_ref_unshared();
      each.epoch = in_flight_.count_in();
    };
    if (gate) enter(*gate);
    for (std::size_t r = 0; r < runs.size(); ++r) {
      runs[r].run->become_child(*parent, runs[r].number);
      enter(*runs[r].run);
    }
    for (std::size_t i = 0; i < children.size(); ++i) {
      children[i]->become_child(run_of(i), static_cast<std::int32_t>(i));
      enter(*children[i]);
    }
    enter(*parent);
    try {
      if (gate) replaced[0] = put_in_order(*gate, order, nullptr, 0);
      for (std::size_t i = 0; i < children.size(); ++i) {
        submission_order child_order;
        child_order.after = &gate;
        child_order.after_count = gate ? 1 : 0;
        const submission &work = recorded.at(i);
        child_order.untracked = !work.tracked;
        if (work.stream >= 0)
          child_order.behind = std::exchange(latest_of_stream.at({&run_of(i), work.stream}), children[i].get());
        const std::span<const access> accesses = recorded.accesses(i, room);
        put_in_order(*children[i], child_order, accesses.data(), accesses.size(), own.get());
      }
      for (std::size_t r = 0; r < runs.size(); ++r) {
        submission_order run_order;
        run_order.behind = runs[r].completes_behind;
        replaced[2 + r] = put_in_order(*runs[r].run, run_order, nullptr, 0);
      }
      submission_order parent_order;
      parent_order.on = order.on;
      parent_order.behind = order.completes_behind;
      replaced[1] = put_in_order(*parent, parent_order, nullptr, 0);
      complete = true;
    } catch (const std::bad_alloc &) {
      for (const ref<job> &child : children) child->drop_work();
      parent->queue = {};
    }
  });
  let_go(gate);
  for (const ref<job> &child : children) let_go(child);
  for (const child_run &each : runs) let_go(each.run);
  let_go(parent);
  if (!complete) throw std::bad_alloc();
  if (native) parent->wait(deadline(-1));
}

}  // namespace sg
