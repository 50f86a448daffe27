// SPDX-License-Identifier: Apache-2.0
#include "run/job/job.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/schedule/schedule.hpp"
#include "run/job/completion_queue.hpp"
#include "run/job/job_home.hpp"
#include "run/program/device_graph.hpp"
#include "run/program/program_run.hpp"
#include "trace/profiler_ranges.hpp"

namespace sg {

job::job() noexcept : object(object_type::job) {}
job::~job() { run.reset(); }  // while its plan lives

void job::begin() noexcept {
  revive();
  priority = 0;
  follows_on_device = admitted = writes_tracked = plain = may_help = is_run = false;
  device = first_device, loaded_devices = 0;
  cancel_.store(false, std::memory_order_relaxed);
  dependency_failed_.store(false, std::memory_order_relaxed);
  state_.store(0, std::memory_order_relaxed);
  failure_.store(SG_STATUS_OK, std::memory_order_relaxed);
  holds_.store(1, std::memory_order_relaxed);  // the work's own hold
  end_ns_.store(0, std::memory_order_relaxed);
  program = nullptr, units = 0;
  tag = trace_id = trace_number = 0;
  parent = nullptr;
  blockers_.store(1, std::memory_order_relaxed);  // the submitter's own hold
  dependency_count_ = 0;
  behind_.store(0, std::memory_order_relaxed);
  behind_in_.store(0, std::memory_order_relaxed);
  behind_out_.store(0, std::memory_order_relaxed);
  ready_ns_.store(0, std::memory_order_relaxed);
  expected_ns_.store(0, std::memory_order_relaxed);
  const std::uint16_t incarnation = incarnation_.load(std::memory_order_relaxed);
  successors_.reopen(incarnation);
  callbacks_.reopen(incarnation);
}

// Resets the members that are neither in the first line nor set by begin().
void job::clear_rest() noexcept {
  operands.clear();
  queue = {};
  deadline_at_ns = 0;
  has_label_ = false;
  native = partition_lane = nullptr;
  awaited = recorded = nullptr;
  single.batch_size = 1;
  run.reset(), graph.reset(), kept.reset();
  if (program_ && !program_->is_single()) program_.reset();
  status_ = SG_STATUS_OK;
  causes_.clear();
  message_.clear();
  failed_child_ = INT32_MAX;
  child_message_.clear();
  start_ns_ = unset, busy_ns_ = 0;
  commands_run_.store(0, std::memory_order_relaxed);
  commands_.store(0, std::memory_order_relaxed);
  more_dependencies_.clear();
  if (profiler_range != 0) trace::end_range(std::exchange(profiler_range, 0));  // it was not submitted
}

bool job::order_after(job &before, std::uint16_t tag_of_before, bool needs_success) {
  const dependency *latest = before.successors_.latest();
  if (latest >= dependencies_ && latest < dependencies_ + inline_dependencies) return true;
  dependency *node;
  if (dependency_count_ < inline_dependencies) {
    node = &dependencies_[dependency_count_];
  } else {
    more_dependencies_.push_back(std::make_unique<dependency>());
    node = more_dependencies_.back().get();
  }
  node->successor = this;
  node->needs_success = needs_success;
  // Lanes are numbered for each device.
  node->follows = follows_on_device && before.pool == pool && before.device == device;
  blockers_.fetch_add(1, std::memory_order_relaxed);
  if (node->follows) holds_.fetch_add(1, std::memory_order_relaxed);
  using pushed = closing_list<dependency>::pushed;
  const pushed result = before.successors_.push(node, tag_of_before);
  if (result != pushed::no) {
    if (dependency_count_ < inline_dependencies) ++dependency_count_;
    if (result == pushed::yes || !node->follows) return true;
    // Another incarnation's lanes are read only if `before` has completed meanwhile: then any lane is right.
    follow(before.issued_lanes_.load(std::memory_order_relaxed),
           {before.issued_in_.load(std::memory_order_relaxed), before.issued_out_.load(std::memory_order_relaxed)});
  } else {
    if (node->follows) holds_.fetch_sub(1, std::memory_order_relaxed);  // the work's own hold still stands
    follows_completed(before, tag_of_before);
  }
  blockers_.fetch_sub(1, std::memory_order_relaxed);  // the submitter's own hold still stands
  return result != pushed::no;
}

void job::follows_completed(const job &before, std::uint16_t tag_of_before) noexcept {
  const std::int64_t end_ns = before.end_ns();
  if (before.incarnation() == tag_of_before && before.pool == pool) not_before(end_ns);
}

void job::not_before(std::int64_t device_ns) noexcept {
  std::int64_t now = ready_ns_.load(std::memory_order_relaxed);
  while (now < device_ns && !ready_ns_.compare_exchange_weak(now, device_ns, std::memory_order_relaxed)) {
  }
}

bool job::looks_plain() const noexcept {
  return program && program->is_single() && operands.more_parameters.empty() && operands.pointers.empty() && !queue &&
         !parent && !has_label_ && dependency_count_ == 0 && ready_ns() == 0 && deadline_at_ns == 0 &&
         trace_number == 0;
}

void job::submit() noexcept {
  plain = looks_plain();
  release_start();
}

bool job::begin_here() noexcept {
  plain = looks_plain();
  return blockers_.load(std::memory_order_acquire) == 1 && !dependency_failed();
}

// The last holder needs no atomic subtraction.
void job::release_start() noexcept {
  if (blockers_.load(std::memory_order_acquire) == 1 || blockers_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    owner_->push(*this);
}

void job::release_completion() noexcept {
  if (holds_.load(std::memory_order_acquire) == 1 || holds_.fetch_sub(1, std::memory_order_acq_rel) == 1) finish();
}

void job::follow(lane_bits lanes, copy_marks marks) noexcept {
  const auto raise = [](std::atomic<std::uint64_t> &to, std::uint64_t mark) {
    std::uint64_t now = to.load(std::memory_order_relaxed);
    while (now < mark && !to.compare_exchange_weak(now, mark, std::memory_order_relaxed)) {
    }
  };
  raise(behind_in_, marks.in);
  raise(behind_out_, marks.out);
  behind_.fetch_or(lanes, std::memory_order_relaxed);
}

void job::issued(lane_bits lanes, copy_marks marks) noexcept {
  issued_in_.store(marks.in, std::memory_order_relaxed);
  issued_out_.store(marks.out, std::memory_order_relaxed);
  issued_lanes_.store(lanes, std::memory_order_relaxed);
  for (dependency *node = successors_.mark(); node;) {
    dependency *next = node->next;
    if (node->follows) {
      node->successor->follow(lanes, marks);
      node->successor->release_start();
    }
    node = next;
  }
}

void job::become_child(job &of, std::int32_t index) noexcept {
  parent = &of;
  child_index = index;
  of.blockers_.fetch_add(1, std::memory_order_relaxed);
}

void job::set_label(const char *text) noexcept {
  const std::size_t length = copy_utf8(label_, sizeof label_, text);
  has_label_ = length > 0;
}

void job::fetch() const noexcept {
  const auto *end = reinterpret_cast<const char *>(&pool);
  for (const auto *line = reinterpret_cast<const char *>(this); line < end; line += 64) __builtin_prefetch(line, 1);
}

bool job::request_cancel() noexcept {
  if (done()) return false;
  cancel_.store(true, std::memory_order_relaxed);
  owner_->sweep();
  return true;
}

void job::call_back(callback_request *request) noexcept {
  if (callbacks_.push(request, incarnation()) == closing_list<callback_request>::pushed::no)
    owner_->post_callback(request);
}

void job::acquire_run() {
  if (!run) run = owner_->runs().acquire(program_);
}

void job::replace_program(const std::shared_ptr<const sg::program> &what) {
  run = owner_->runs().acquire(what);
  give_program(what);
}

void job::last_ref_dropped() noexcept {
  if (!plain) clear_rest();
  const auto incarnation = static_cast<std::uint16_t>(incarnation_.load(std::memory_order_relaxed) + 1);
  incarnation_.store(incarnation, std::memory_order_release);
  owner_->recycle(*this);
}

}  // namespace sg
