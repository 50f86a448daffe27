// SPDX-License-Identifier: Apache-2.0
#include "run/program/plan_cache.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/thread_owned.hpp"
#include "plan/planner.hpp"
#include "plan/schedule/hazard.hpp"

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
                 << (std::int64_t{x.type} | std::int64_t{x.pointer_array} << 16 | std::int64_t{x.place.bits()} << 24);
  }
  hash &operator<<(const problem &p) noexcept {
    if (p.has_epilogue()) *this << p.bias << std::int64_t{p.activation};
    return *this << p.m << p.n << p.k << p.batch << p.a << p.b << p.c
                 << (std::int64_t{p.op_a} | std::int64_t{p.op_b} << 4 | std::int64_t{p.compute} << 8 |
                     std::int64_t{p.no_product} << 16 | std::int64_t{p.beta_zero} << 17);
  }
  hash &operator<<(const plan_request &r) noexcept {
    return *this << (static_cast<std::int64_t>(r.split) | std::int64_t{r.latency} << 7 | std::int64_t{r.parts} << 8)
                 << r.streams << r.memory_limit << r.tile_m << r.tile_n << r.tile_k;
  }
  std::uint64_t value() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace

struct plan_cache::memos {
  static constexpr std::size_t count = 8;
  memo latest[count];
};

plan_cache::memo *plan_cache::memo_of(const problem &shape) noexcept {
  memos *const own = thread_owned<memos>::get();
  return own ? &own->latest[static_cast<std::size_t>(shape.m * 5 + shape.n * 3 + shape.k) / 8 % memos::count] : nullptr;
}

std::shared_ptr<const compiled_plan> plan_cache::get(const problem *problems, std::size_t count,
                                                     const plan_request &request, const device_model &model,
                                                     bool check) {
  memo *const latest = count == 1 ? memo_of(problems[0]) : nullptr;
  if (latest && latest->cache == number_ && latest->shape == problems[0] && latest->request == request)
    return latest->plan;
  auto plan = look_up(problems, count, request, model, check);
  if (latest) *latest = {number_, problems[0], request, plan};
  return plan;
}

std::shared_ptr<const compiled_plan> plan_cache::look_up(const problem *problems, std::size_t count,
                                                         const plan_request &request, const device_model &model,
                                                         bool check) {
  hash key;
  for (std::size_t i = 0; i < count; ++i) key << problems[i];
  key << request;
  {
    const std::lock_guard lock(lock_);
    const auto [first, last] = entries_.equal_range(key.value());
    for (auto at = first; at != last; ++at) {
      const compiled_plan &known = *at->second;
      if (known.request == request &&
          std::equal(known.problems.begin(), known.problems.end(), problems, problems + count))
        return at->second;
    }
  }
  std::vector<problem> all(problems, problems + count);
  auto made = make_plan(all, model, request);
  if (check) require_no_hazards(*made);
  auto plan = std::make_shared<const compiled_plan>(std::move(all), request, std::move(made), model);
  const std::lock_guard lock(lock_);
  if (entries_.size() >= most_entries) entries_.clear();
  entries_.emplace(key.value(), plan);
  return plan;
}

}  // namespace sg
