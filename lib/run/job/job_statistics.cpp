// SPDX-License-Identifier: Apache-2.0
// Times and counters of a job.
#include <algorithm>
#include <atomic>

#include "base/error.hpp"
#include "plan/schedule/schedule.hpp"
#include "run/job/job.hpp"
#include "run/program/device_graph.hpp"
#include "run/program/program_run.hpp"

namespace sg {

void job::ran(const inflight_command &command) noexcept {
  const std::int32_t before = commands_run_.load(std::memory_order_relaxed);  // calls are serialized
  commands_run_.store(before + command.commands, std::memory_order_relaxed);
}

double job::progress() const noexcept {
  if (done() && status_ == SG_STATUS_OK) return 1;
  const std::int32_t all = commands_.load(std::memory_order_relaxed),
                     run = commands_run_.load(std::memory_order_relaxed);
  // The last command completes shortly before the job, and a job whose commands all ran may have failed.
  return all > 0 ? std::min(double(run) / double(all), 1 - 1 / (1 + double(all))) : 0;
}

void job::completed_in_batch(std::int64_t start_ns, std::int64_t end_ns, std::size_t batch_size) noexcept {
  if (plain && has_one_ref()) {  // no caller can query its statistics any more
    end_ns_.store(std::max(start_ns, end_ns), std::memory_order_relaxed);
  } else {
    plain = false;
    single.commands = 1;
    single.batch_size = static_cast<std::int32_t>(batch_size);
    single.start_ns = start_ns;
    single.end_ns = end_ns;
    ran(single);
  }
  work_completed();
}

void job::commands_completed(std::int64_t start_ns, std::int64_t end_ns, std::int64_t busy_ns) noexcept {
  commands_run_ = static_cast<std::int32_t>(program->schedule->commands.size());
  if (end_ns != 0) {
    start_ns_ = start_ns;
    end_ns_.store(std::max(start_ns, end_ns), std::memory_order_relaxed);
  }
  busy_ns_ = busy_ns;
  work_completed();
}

void job::add_time(const inflight_command &command, std::int64_t not_before_ns) noexcept {
  if (command.end_ns == 0) return;  // not timed: staging workers have no device clock
  // A predecessor's end on the host's clock may be later than this command's end on the device's.
  const std::int64_t start_ns = std::max(not_before_ns, command.start_ns);
  const std::int64_t end = std::max(start_ns, command.end_ns);
  if (start_ns_ == unset || start_ns < start_ns_) start_ns_ = start_ns;
  if (end > end_ns()) end_ns_.store(end, std::memory_order_relaxed);
  busy_ns_ += (end - start_ns) / command.batch_size;
}

void job::add_child(const job &completed) noexcept {
  commands_run_.fetch_add(1, std::memory_order_relaxed);
  not_before(completed.end_ns());
  if (completed.start_ns_ == unset) return;
  const std::atomic_ref<std::int64_t> start(start_ns_), busy(busy_ns_);
  busy.fetch_add(completed.busy_ns_, std::memory_order_relaxed);
  for (std::int64_t now = start.load(std::memory_order_relaxed);
       (now == unset || completed.start_ns_ < now) &&
       !start.compare_exchange_weak(now, completed.start_ns_, std::memory_order_relaxed);) {
  }
}

std::uint64_t job::device_bits() const noexcept {
  return graph ? graph->device_bits : program ? program->device_bits() : 0;
}

void job::count_moved_bytes() noexcept {
  if (run)
    moved_ = run->moved();
  else if (program && program->is_single() && commands_run_ > 0)
    moved_ = {program->schedule->bytes_in, program->schedule->bytes_out, program->schedule->bytes_peer};
  else
    moved_ = {};
}

void job::statistics(sg_job_statistics &out) const noexcept {
  out.start_ns = start_ns_ == unset ? 0 : start_ns_;
  out.end_ns = start_ns_ == unset ? 0 : end_ns();
  out.busy_seconds = static_cast<double>(busy_ns_) * 1e-9;
  out.commands_run = commands_run_;
  out.batch_size = single.batch_size;
  out.trace_id = trace_id;
  out.devices = device_bits();
  if (graph) {
    out.commands = graph->commands;
    out.commands_run = status_ == SG_STATUS_OK ? out.commands : 0;
    out.flops = graph->flops;
    out.bytes_in = graph->bytes_in;
    out.bytes_out = graph->bytes_out;
    out.bytes_peer = graph->bytes_peer;
    copy_text(out.strategy, sizeof out.strategy, program ? "graph of the device" : "graph");
  } else if (program) {
    const schedule &s = *program->schedule;
    out.commands = static_cast<std::int32_t>(s.commands.size());
    out.predicted_seconds = s.predicted_seconds;
    out.bound_seconds = s.bound_seconds;
    out.flops = s.flops;
    const bytes_moved all =
        done() && status_ != SG_STATUS_OK ? moved_ : bytes_moved{s.bytes_in, s.bytes_out, s.bytes_peer};
    out.bytes_in = static_cast<std::uint64_t>(all.in);
    out.bytes_out = static_cast<std::uint64_t>(all.out);
    out.bytes_peer = static_cast<std::uint64_t>(all.peer);
    copy_text(out.strategy, sizeof out.strategy, s.strategy.c_str());
  } else {
    copy_text(out.strategy, sizeof out.strategy, "nothing to do");
  }
}

}  // namespace sg
