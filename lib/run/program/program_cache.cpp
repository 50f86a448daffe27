// SPDX-License-Identifier: Apache-2.0
#include "run/program/program_cache.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/thread_owned.hpp"
#include "plan/planner.hpp"
#include "plan/schedule/hazard.hpp"
#include "trace/recorder.hpp"

namespace sg {

namespace {

class hash {
 public:
  hash &operator<<(std::int64_t value) noexcept {
    state_ = (state_ ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ull;
    state_ ^= state_ >> 29;
    return *this;
  }
  hash &operator<<(const operand &x) noexcept {
    return *this << x.rows << x.cols << x.ld << x.item_stride
                 << (std::int64_t{x.type} | std::int64_t{x.pointer_array} << 16 | std::int64_t{x.space.bits()} << 24);
  }
  hash &operator<<(const problem &p) noexcept {
    if (p.has_epilogue()) *this << p.bias << std::int64_t{p.activation};
    return *this << p.m << p.n << p.k << p.batch << p.a << p.b << p.c
                 << (std::int64_t{p.op_a} | std::int64_t{p.op_b} << 4 | std::int64_t{p.compute} << 8 |
                     std::int64_t{p.no_multiply} << 16 | std::int64_t{p.beta_zero} << 17);
  }
  hash &operator<<(const conv_form &f) noexcept {
    const ops::windows &w = f.of;
    return *this << w.kernel_h << w.kernel_w << w.stride_h << w.stride_w << w.dilation_h << w.pad_top << w.pad_left
                 << w.out_h << w.groups << f.workspace;
  }
  hash &operator<<(const plan_request &r) noexcept {
    if (r.conv) *this << *r.conv;
    if (r.form) *this << static_cast<std::int64_t>(r.form->hash());
    return *this << (static_cast<std::int64_t>(r.split) | std::int64_t{r.latency} << 7 | std::int64_t{r.parts} << 8)
                 << r.streams << r.memory_limit << r.tile_m << r.tile_n << r.tile_k
                 << (static_cast<std::int64_t>(r.layer) | std::int64_t{r.dy_is_a[0]} << 8 |
                     std::int64_t{r.dy_is_a[1]} << 9);
  }
  std::uint64_t value() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace

struct program_cache::memos {
  static constexpr std::size_t count = 8;
  memo latest[count];
};

program_cache::memo *program_cache::memo_of(const problem &shape) noexcept {
  memos *const own = thread_owned<memos>::get();
  return own ? &own->latest[static_cast<std::size_t>(shape.m * 5 + shape.n * 3 + shape.k) / 8 % memos::count] : nullptr;
}

std::shared_ptr<const sg::program> program_cache::get(const problem *problems, std::size_t count,
                                                      const plan_request &request, const device_model &model,
                                                      bool check) {
  memo *const latest = count == 1 ? memo_of(problems[0]) : nullptr;
  if (latest && latest->cache == number_ && latest->shape == problems[0] && latest->request == request)
    return latest->program;
  auto program = look_up(problems, count, request, model, check);
  if (latest) *latest = {number_, problems[0], request, program};
  return program;
}

auto program_cache::find(std::uint64_t key, const problem *problems, std::size_t count,
                         const plan_request &request) noexcept -> entry_position {
  const auto [first, last] = positions_.equal_range(key);
  for (auto at = first; at != last; ++at) {
    const entry &known = *at->second;
    if (known.request == request &&
        std::equal(known.problems, known.problems + known.count, problems, problems + count))
      return at->second;
  }
  return entries_.end();
}

void program_cache::erase(entry_position which) noexcept {
  const auto [first, last] = positions_.equal_range(which->key);
  positions_.erase(std::find_if(first, last, [&](const auto &each) { return each.second == which; }));
  entries_.erase(which);
}

// Programs in use outlive their entries.
void program_cache::evict() noexcept {
  for (auto at = entries_.end(); entries_.size() > most_entries && at != entries_.begin();) {
    --at;
    if (!at->program) continue;
    const entry_position gone = at++;
    erase(gone);
  }
}

std::shared_ptr<const sg::program> program_cache::look_up(const problem *problems, std::size_t count,
                                                          const plan_request &request, const device_model &model,
                                                          bool check) {
  hash mixed;
  for (std::size_t i = 0; i < count; ++i) mixed << problems[i];
  mixed << request;
  const std::uint64_t key = mixed.value();
  std::unique_lock lock(lock_);
  for (entry_position known = find(key, problems, count, request); known != entries_.end();
       known = find(key, problems, count, request)) {
    if (known->program) {
      entries_.splice(entries_.begin(), entries_, known);
      return known->program;
    }
    planned_.wait(lock);
  }
  entries_.push_front({key, problems, count, request, nullptr});
  const entry_position created = entries_.begin();
  try {
    positions_.emplace(key, created);
  } catch (...) {
    entries_.erase(created);
    throw;
  }
  lock.unlock();
  try {
    std::vector<problem> all(problems, problems + count);
    const trace::timed_event planning(trace::event_kind::planning, number_);
    auto made = make_plan(all, model, request);
    if (check) require_no_hazards(*made);
    auto program = std::make_shared<const sg::program>(std::move(all), request, std::move(made), model);
    lock.lock();
    created->problems = program->problems.data();
    created->program = program;
    evict();
    planned_.notify_all();
    return program;
  } catch (...) {  // each waiting thread then plans itself
    lock.lock();
    erase(created);
    planned_.notify_all();
    throw;
  }
}

}  // namespace sg
