// SPDX-License-Identifier: Apache-2.0
// A graph's run where no device takes the graph as one: its works as jobs, in the order that they were recorded in.
#include <map>
#include <new>
#include <utility>

#include "run/context.hpp"
#include "run/job/completion_queue.hpp"
#include "run/job/process.hpp"
#include "run/job/service.hpp"
#include "run/objects/graph_program.hpp"
#include "run/objects/stream.hpp"
#include "run/program/program_run.hpp"

namespace sg {

void context::submit_parts(const ref<job> &whole, const submission_order &order, const graph_program &program) {
  if (process_exits()) throw error(SG_STATUS_SHUTDOWN, "the process is exiting");
  trace::timed_event submitting(trace::event_kind::submission, number());
  if (submitting.is_on()) trace_submission(submitting, *whole, order);
  const bool native = order.on && order.on->is_native();
  if (native) come_after_native(*order.on);
  const std::vector<submission> &works = program.works;
  std::vector<ref<job>> parts;
  std::map<std::int64_t, job *> latest_of_stream;
  parts.reserve(works.size());
  for (const submission &work : works) {
    parts.push_back(new_job());
    job &part = *parts.back();
    part.kind = work.kind;
    if (work.program) part.give_schedule(work.program);
    part.copy = work.copy;
    part.operands = work.operands.copy();
    part.follows_on_device = work.follows_on_device;
    part.priority = work.priority != 0 ? work.priority : whole->priority;
    part.units = work.units;
    if (!work.label.empty()) part.set_label(work.label.c_str());
    if (whole->trace_number != 0) trace_part(part);
    if (work.within) part.within = work.within->within();
    part.submitter = whole->submitter;
    if (work.stream >= 0) latest_of_stream.emplace(work.stream, nullptr);
  }
  // What the run itself comes after is one job, so that not every part has to.
  const bool ordered = order.on || order.behind || order.after_count > 0;
  const ref<job> gate = ordered ? new_job() : ref<job>();
  const auto let_go = [](const ref<job> &each) {
    if (each) each->submit();
  };
  if (whole->deadline_at_ns != 0) helper().sweep_at(whole->deadline_at_ns);
  if (order.limited) whole->admitted = limit_.enter();
  bool complete = false;
  ref<job> replaced[2];
  submission_lock_.run_here([&] {
    if (gate) {
      gate->add_ref_unshared();
      gate->epoch = in_flight_.count_in();
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i]->add_ref_unshared();
      parts[i]->become_part(*whole, static_cast<std::int32_t>(i));
      parts[i]->epoch = in_flight_.count_in();
    }
    whole->add_ref_unshared();
    whole->epoch = in_flight_.count_in();
    try {
      if (gate) replaced[0] = put_in_order(*gate, order, nullptr, 0);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        submission_order place;
        place.after = &gate;
        place.after_count = gate ? 1 : 0;
        place.untracked = order.untracked || !works[i].tracked;
        if (works[i].stream >= 0)
          place.behind = std::exchange(latest_of_stream.find(works[i].stream)->second, parts[i].get());
        put_in_order(*parts[i], place, works[i].accesses.data(), works[i].accesses.size());
      }
      submission_order place;
      place.on = order.on;
      replaced[1] = put_in_order(*whole, place, nullptr, 0);
      complete = true;
    } catch (const std::bad_alloc &) {
      for (const ref<job> &part : parts) part->kind = work_kind::marker;
      whole->queue = {};
    }
  });
  let_go(gate);
  for (const ref<job> &part : parts) let_go(part);
  let_go(whole);
  if (!complete) throw std::bad_alloc();
  if (native) whole->wait(deadline(-1));
}

}  // namespace sg
