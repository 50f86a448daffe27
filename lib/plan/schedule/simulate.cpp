// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "ops/operation.hpp"
#include "plan/schedule/dependents.hpp"
#include "plan/schedule/lanes.hpp"

namespace sg {
namespace {

struct work : command_cost {
  double turn = 0;  // issued no earlier
};

// A command that its lane has begun.
struct running {
  std::uint32_t index;
  double ready;      // end of the delay
  double remaining;  // of work.amount
  double rate = 0;
};

class simulation {
 public:
  simulation(const schedule &s, const device_model &model)
      : s_(s), model_(model), numbers_(s), dependents_(s), busy_workers_(std::size_t(model.staging_workers), false) {
    const std::size_t count = s.commands.size();
    work_.resize(count);
    blockers_.resize(count);
    queues_.resize(numbers_.count());
    out_.commands.resize(count);
    double turn = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      work_[i] = {operation_of(s.commands[i]).cost(model, s.buffers, s.commands[i]), turn};
      turn += is_staging(i) ? model.staging_gap : model.launch_gap;
      blockers_[i] = s.commands[i].waits;
      out_.commands[i].where = s.commands[i].where;
      if (!is_staging(i))
        queues_[numbers_.of(s.commands[i].where)].commands.push_back(i);
      else if (blockers_[i] == 0)
        stageable_.push(i);
    }
  }

  timeline run() {
    for (;;) {
      const double next_turn = start_what_can();
      if (active_.empty() && next_turn == HUGE_VAL) break;
      set_rates();
      advance_to(std::min(next_turn, next_end()));
    }
    finish();
    return std::move(out_);
  }

 private:
  struct queue {
    std::vector<std::uint32_t> commands;
    std::size_t head = 0;
    bool busy = false;
    double free_since = -1;
  };

  bool is_staging(std::uint32_t i) const { return s_.commands[i].where.kind == lane_kind::staging; }

  // Begins every command that nothing holds back; returns when the next one held back by its turn only may begin.
  double start_what_can() {
    double next_turn = HUGE_VAL;
    for (;;) {
      int chosen = -1;
      std::uint32_t first = UINT32_MAX;
      next_turn = HUGE_VAL;
      const auto may_begin = [&](std::uint32_t i) {
        if (work_[i].turn <= now_) return true;
        next_turn = std::min(next_turn, work_[i].turn);
        return false;
      };
      for (int l = 0; l < int(queues_.size()); ++l) {
        const queue &q = queues_[l];
        if (q.busy || q.head == q.commands.size()) continue;
        const std::uint32_t i = q.commands[q.head];
        if (blockers_[i] > 0 || engine_taken(s_.commands[i].where.kind) || !may_begin(i)) continue;
        // Lanes that compete for one engine get it in the order of the schedule.
        if (i < first) chosen = l, first = i;
      }
      const auto worker = std::find(busy_workers_.begin(), busy_workers_.end(), false);
      if (!stageable_.empty() && worker != busy_workers_.end() && stageable_.top() < first &&
          may_begin(stageable_.top()))
        stage(std::size_t(worker - busy_workers_.begin()));
      else if (chosen >= 0)
        begin(queues_[chosen]);
      else
        return next_turn;
    }
  }

  static bool is_copy(lane_kind kind) noexcept { return kind == lane_kind::copy_in || kind == lane_kind::copy_out; }

  bool engine_taken(lane_kind kind) const {
    return model_.copy_engines == 1 && is_copy(kind) &&
           std::any_of(active_.begin(), active_.end(),
                       [&](const running &r) { return is_copy(s_.commands[r.index].where.kind); });
  }

  void begin(queue &q) {
    const std::uint32_t i = q.commands[q.head++];
    q.busy = true;
    const double delay = q.free_since == now_ ? work_[i].delay_queued : work_[i].delay_idle;
    out_.commands[i].start = now_;
    active_.push_back({i, now_ + delay, work_[i].amount});
  }

  void stage(std::size_t worker) {
    const std::uint32_t i = stageable_.top();
    stageable_.pop();
    busy_workers_[worker] = true;
    out_.commands[i].start = now_;
    out_.commands[i].where.index = std::uint16_t(worker);
    active_.push_back({i, now_, work_[i].amount});
  }

  void set_rates() {
    int in = 0, out = 0, workers = 0;
    double chip = 0, memory = 0;
    for (const running &r : active_) {
      if (r.ready > now_) continue;
      const lane_kind kind = s_.commands[r.index].where.kind;
      in += kind == lane_kind::copy_in;
      out += kind == lane_kind::copy_out;
      workers += kind == lane_kind::staging;
      chip += work_[r.index].chip_share;
      memory += work_[r.index].memory_share;
    }
    // Together, kernels that need more than the chip run in waves, as the tiles of one that is larger would.
    const double kernel_speed = 1 / std::max({1.0, chip > 1 ? waves_of(chip) : 1.0, memory});
    const double staging_speed = workers ? staging_rate_of(model_, workers) / workers : 0;
    for (running &r : active_) {
      const work &w = work_[r.index];
      switch (s_.commands[r.index].where.kind) {
        case lane_kind::copy_in: r.rate = (out ? w.both_ways : w.one_way) / std::max(1, in); break;
        case lane_kind::copy_out: r.rate = (in ? w.both_ways : w.one_way) / std::max(1, out); break;
        case lane_kind::staging: r.rate = staging_speed; break;
        case lane_kind::compute: r.rate = kernel_speed; break;
      }
    }
  }

  double end_of(const running &r) const { return r.ready > now_ ? r.ready : now_ + r.remaining / r.rate; }

  double next_end() const {
    double next = HUGE_VAL;
    for (const running &r : active_) next = std::min(next, end_of(r));
    return next;
  }

  void advance_to(double time) {
    const double step = time - now_;
    // What would end within rounding of this event ends with it.
    const double horizon = time * (1 + 1e-14);
    bool works[lane_kinds] = {false, false, false, false};
    std::size_t kept = 0;
    ended_.clear();
    for (running r : active_) {
      bool ends = false;
      if (r.ready <= now_) {
        works[int(s_.commands[r.index].where.kind)] = true;
        ends = end_of(r) <= horizon;
        r.remaining -= step * r.rate;
      } else {
        ends = r.ready <= time && r.remaining <= 0;
      }
      if (ends)
        ended_.push_back(r.index);
      else
        active_[kept++] = r;
    }
    active_.resize(kept);
    for (int kind = 0; kind < lane_kinds; ++kind)
      if (works[kind]) out_.busy[kind] += step;
    now_ = time;
    for (std::uint32_t i : ended_) end(i);
  }

  void end(std::uint32_t i) {
    out_.commands[i].end = now_;
    if (is_staging(i)) {
      busy_workers_[out_.commands[i].where.index] = false;
    } else {
      queue &q = queues_[numbers_.of(s_.commands[i].where)];
      q.busy = false;
      q.free_since = now_;
    }
    for (const std::uint32_t d : dependents_.of(i))
      if (--blockers_[d] == 0 && is_staging(d)) stageable_.push(d);
  }

  void finish() {
    out_.seconds = now_;
    double sum = 0, longest = 0;
    for (double busy : out_.busy) {
      sum += busy;
      longest = std::max(longest, busy);
    }
    if (sum > longest) out_.overlap_efficiency = std::clamp((sum - out_.seconds) / (sum - longest), 0.0, 1.0);
  }

  const schedule &s_;
  const device_model &model_;
  lane_numbers numbers_;
  dependents dependents_;
  std::vector<work> work_;
  std::vector<std::uint32_t> blockers_;  // waits that have not ended
  std::vector<queue> queues_;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> stageable_;  // by any free worker
  std::vector<bool> busy_workers_;
  std::vector<running> active_;
  std::vector<std::uint32_t> ended_;
  double now_ = 0;
  timeline out_;
};

}  // namespace

timeline simulate(const schedule &s, const device_model &model) { return simulation(s, model).run(); }

}  // namespace sg
