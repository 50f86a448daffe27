// SPDX-License-Identifier: Apache-2.0
#include "run/job/job.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "plan/schedule/schedule.hpp"
#include "run/job/completion_queue.hpp"
#include "run/job/job_home.hpp"
#include "run/program/device_graph.hpp"
#include "run/program/schedule_run.hpp"

namespace sg {

namespace {
std::atomic<std::uint32_t> g_ends{0};  // a futex: counts jobs that ended while somebody watched
std::atomic<std::uint32_t> g_watchers{0};
}  // namespace

job_ends::job_ends() noexcept { g_watchers.fetch_add(1); }
job_ends::~job_ends() { g_watchers.fetch_sub(1); }
std::uint32_t job_ends::count() const noexcept { return g_ends.load(); }
void job_ends::wait(std::uint32_t seen, const deadline &until) const noexcept { futex_wait(g_ends, seen, until); }

void job_ends::announce() noexcept {
  if (g_watchers.load() == 0) return;
  g_ends.fetch_add(1);
  futex_wake_all(g_ends);
}

job::job() noexcept : object(object_type::job) {}
job::~job() { run.reset(); }  // while its plan lives

void job::begin() noexcept {
  revive();
  kind = work_kind::marker;
  priority = 0;
  follows_on_device = admitted = writes_tracked = plain = may_help = false;
  cancel_.store(false, std::memory_order_relaxed);
  dependency_failed_.store(false, std::memory_order_relaxed);
  state_.store(0, std::memory_order_relaxed);
  failure_.store(SG_STATUS_OK, std::memory_order_relaxed);
  holds_.store(1, std::memory_order_relaxed);  // the work's own
  end_ns_.store(0, std::memory_order_relaxed);
  plan = nullptr;
  units = 0;
  tag = 0;
  whole = nullptr;
  blockers_.store(1, std::memory_order_relaxed);  // the submitter's own
  dependency_count_ = 0;
  behind_.store(0, std::memory_order_relaxed);
  ready_ns_.store(0, std::memory_order_relaxed);
  expected_ns_.store(0, std::memory_order_relaxed);
  const std::uint16_t incarnation = incarnation_.load(std::memory_order_relaxed);
  successors_.reopen(incarnation);
  callbacks_.reopen(incarnation);
}

// What is neither in the first line nor set by begin().
void job::clear_rest() noexcept {
  operands.clear();
  queue = {};
  deadline_at_ns = 0;
  has_label_ = false;
  native = within = nullptr;
  awaited = recorded = nullptr;
  single.batch_size = 1;
  run.reset();
  program.reset();
  if (plan_ && !plan_->is_single()) plan_.reset();
  status_ = SG_STATUS_OK;
  cause_.store(0, std::memory_order_relaxed);
  start_ns_ = unset;
  busy_ns_ = 0;
  commands_run_ = 0;
  more_dependencies_.clear();
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
  node->follows = follows_on_device && before.pool == pool;
  blockers_.fetch_add(1, std::memory_order_relaxed);
  if (node->follows) holds_.fetch_add(1, std::memory_order_relaxed);
  using pushed = closing_list<dependency>::pushed;
  const pushed result = before.successors_.push(node, tag_of_before);
  if (result != pushed::no) {
    if (dependency_count_ < inline_dependencies) ++dependency_count_;
    if (result == pushed::yes || !node->follows) return true;
    // Of another incarnation only when `before` has ended meanwhile: then any lane will do.
    behind_.fetch_or(before.issued_lanes_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  } else {
    if (node->follows) holds_.fetch_sub(1, std::memory_order_relaxed);  // the work's own still stands
    comes_after_end_of(before, tag_of_before);
  }
  blockers_.fetch_sub(1, std::memory_order_relaxed);  // the submitter's own still stands
  return result != pushed::no;
}

void job::comes_after_end_of(const job &before, std::uint16_t tag_of_before) noexcept {
  const std::int64_t end_ns = before.end_ns();
  if (before.incarnation() == tag_of_before && before.pool == pool) not_before(end_ns);
}

void job::not_before(std::int64_t device_ns) noexcept {
  std::int64_t now = ready_ns_.load(std::memory_order_relaxed);
  while (now < device_ns && !ready_ns_.compare_exchange_weak(now, device_ns, std::memory_order_relaxed)) {
  }
}

bool job::looks_plain() const noexcept {
  return kind == work_kind::schedule && plan->is_single() && operands.others.empty() && operands.pointers.empty() &&
         !queue && !whole && !has_label_ && dependency_count_ == 0 && ready_ns() == 0 && deadline_at_ns == 0;
}

void job::submit() noexcept {
  plain = looks_plain();
  release_start();
}

bool job::begin_here() noexcept {
  plain = looks_plain();
  return blockers_.load(std::memory_order_acquire) == 1 && !dependency_failed();
}

// The last one needs no subtraction: nobody else is left.
void job::release_start() noexcept {
  if (blockers_.load(std::memory_order_acquire) == 1 || blockers_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    owner_->push(*this);
}

void job::release_end() noexcept {
  if (holds_.load(std::memory_order_acquire) == 1 || holds_.fetch_sub(1, std::memory_order_acq_rel) == 1) finish();
}

void job::issued(lane_bits lanes) noexcept {
  issued_lanes_.store(lanes, std::memory_order_relaxed);
  for (dependency *node = successors_.mark(); node;) {
    dependency *next = node->next;
    if (node->follows) {
      node->successor->behind_.fetch_or(lanes, std::memory_order_relaxed);
      node->successor->release_start();
    }
    node = next;
  }
}

void job::become_part(job &of, std::int32_t index) noexcept {
  whole = &of;
  part_index = index;
  of.blockers_.fetch_add(1, std::memory_order_relaxed);
}

void job::set_label(const char *text) noexcept {
  std::size_t length = strnlen(text, sizeof label_);
  if (length == sizeof label_) {
    // Not within a character: its bytes after the first are 10xxxxxx, three at most.
    const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
    const std::size_t most = --length;
    while (length > most - 3 && continues(length)) --length;
    if (continues(length)) length = most;  // it is not UTF-8
  }
  std::memcpy(label_, text, length);
  label_[length] = '\0';
  has_label_ = length > 0;
}

void job::ran(const flight &command) noexcept { commands_run_ += command.commands; }

void job::group_ended(std::int64_t start_ns, std::int64_t end_ns, std::size_t batch_size) noexcept {
  if (plain && has_one_ref()) {  // nobody can ask for its statistics any more
    end_ns_.store(std::max(start_ns, end_ns), std::memory_order_relaxed);
  } else {
    plain = false;
    single.commands = 1;
    single.batch_size = static_cast<std::int32_t>(batch_size);
    single.start_ns = start_ns;
    single.end_ns = end_ns;
    ran(single);
  }
  work_ended();
}

void job::parts_ended(std::int64_t start_ns, std::int64_t end_ns, std::int64_t busy_ns) noexcept {
  commands_run_ = static_cast<std::int32_t>(plan->text->commands.size());
  if (end_ns != 0) {
    start_ns_ = start_ns;
    end_ns_.store(std::max(start_ns, end_ns), std::memory_order_relaxed);
  }
  busy_ns_ = busy_ns;
  work_ended();
}

void job::add_time(const flight &command, std::int64_t not_before_ns) noexcept {
  if (command.end_ns == 0) return;  // not timed: staging workers have no device clock
  // What it waited for may have ended later by the host's clock than itself by the device's.
  const std::int64_t start_ns = std::max(not_before_ns, command.start_ns);
  const std::int64_t end = std::max(start_ns, command.end_ns);
  if (start_ns_ == unset || start_ns < start_ns_) start_ns_ = start_ns;
  if (end > end_ns()) end_ns_.store(end, std::memory_order_relaxed);
  busy_ns_ += (end - start_ns) / command.batch_size;
}

void job::fetch() const noexcept {
  const auto *end = reinterpret_cast<const char *>(&pool);
  for (const auto *line = reinterpret_cast<const char *>(this); line < end; line += 64) __builtin_prefetch(line, 1);
}

// Sleeps until shortly before the job should end, and then asks the device; who is late is told.
bool job::wait(const deadline &until) noexcept {
  // Not where it waits for a time only: memory that comes late would hold it up beyond that.
  if (until.is_forever() && may_help && !done()) owner_->help(*this);
  bool asked_before_lane = false, asked = false, swept = deadline_at_ns == 0;
  std::int64_t early_ns = 0;
  for (;;) {
    const std::uint32_t state = state_.load(std::memory_order_acquire);
    if (state & done_bit) break;
    std::int64_t wake_ns = until.at_ns();
    if (owner_->polls()) {
      const std::int64_t expected_ns = expected_ns_.load(std::memory_order_relaxed), now_ns = monotonic_ns();
      std::int64_t ask_ns = 0;
      if (expected_ns == 0)  // it is not even in a lane
        ask_ns = std::exchange(asked_before_lane, true) ? 0 : job_home::short_poll_ns;
      else if (early_ns = std::max(early_ns, job_home::early_by(expected_ns - now_ns));
               expected_ns - now_ns > 2 * early_ns)
        wake_ns = std::min(wake_ns, expected_ns - early_ns);
      else if (!std::exchange(asked, true))
        ask_ns = job_home::ask_for_ns(expected_ns - now_ns);
      if (ask_ns > 0) {
        owner_->poll_until([&] { return done() || until.passed(); }, ask_ns);
        continue;
      }
    }
    if (until.passed()) return false;
    if (!swept) {  // by the service otherwise, which a callback may keep: perhaps the one that waits here
      if (deadline_passed()) {
        swept = true;
        owner_->sweep();
        continue;
      }
      wake_ns = std::min(wake_ns, deadline_at_ns);
    }
    if (state & waited_bit)
      futex_wait(state_, state, deadline::at(wake_ns));
    else
      state_.fetch_or(waited_bit, std::memory_order_acq_rel);
  }
  owner_->host_has_seen(end_ns());
  return true;
}

void job::expect_end(std::int64_t at_ns, std::int64_t predicted_ns) noexcept {
  expected_ns_.store(at_ns, std::memory_order_relaxed);
  if (at_ns != 0 && predicted_ns > job_home::long_poll_ns) announce_issued();
}

void job::announce_issued() noexcept {
  if (state_.fetch_or(issued_bit, std::memory_order_acq_rel) & waited_bit) futex_wake_all(state_);
}

void job::wait_issued() noexcept {
  const auto over = [&] { return (state_.load(std::memory_order_acquire) & (done_bit | issued_bit)) != 0; };
  if (over()) return;
  owner_->poll_until(over, job_home::short_poll_ns);
  while (!over()) {
    const std::uint32_t state = state_.fetch_or(waited_bit, std::memory_order_acq_rel) | waited_bit;
    if (!(state & (done_bit | issued_bit))) futex_wait(state_, state, deadline(-1));
  }
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

void job::statistics(sg_job_statistics &out) const noexcept {
  out.start_ns = start_ns_ == unset ? 0 : start_ns_;
  out.end_ns = start_ns_ == unset ? 0 : end_ns();
  out.busy_seconds = static_cast<double>(busy_ns_) * 1e-9;
  out.commands_run = commands_run_;
  out.batch_size = single.batch_size;
  if (program) {
    out.commands = program->commands;
    out.commands_run = status_ == SG_STATUS_OK ? out.commands : 0;
    out.flops = program->flops;
    copy_text(out.strategy, sizeof out.strategy, kind == work_kind::device_graph ? "graph of the device" : "graph");
  } else if (kind == work_kind::copy) {
    const auto bytes = static_cast<std::uint64_t>(copy.width) * static_cast<std::uint64_t>(copy.height);
    out.commands = 1;
    const bool to_device = copy.dst_space.kind == SG_MEMORY_DEVICE,
               from_device = copy.src_space.kind == SG_MEMORY_DEVICE;
    out.bytes_in = to_device && !from_device ? bytes : 0;
    out.bytes_out = from_device && !to_device ? bytes : 0;
    copy_text(out.strategy, sizeof out.strategy, "copy");
  } else if (kind == work_kind::schedule) {
    const schedule &s = *plan->text;
    out.commands = static_cast<std::int32_t>(s.commands.size());
    out.predicted_seconds = s.predicted_seconds;
    out.bound_seconds = s.bound_seconds;
    out.flops = s.flops;
    out.bytes_in = static_cast<std::uint64_t>(s.bytes_in);
    out.bytes_out = static_cast<std::uint64_t>(s.bytes_out);
    copy_text(out.strategy, sizeof out.strategy, s.strategy.c_str());
  } else {
    copy_text(out.strategy, sizeof out.strategy, "nothing to do");
  }
}

void job::last_ref_dropped() noexcept {
  if (!plain) clear_rest();
  const auto incarnation = static_cast<std::uint16_t>(incarnation_.load(std::memory_order_relaxed) + 1);
  incarnation_.store(incarnation, std::memory_order_release);
  owner_->take_back(*this);
}

}  // namespace sg
