// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <span>

#include "ops/operation.hpp"
#include "plan/schedule/dependents.hpp"
#include "plan/schedule/lanes.hpp"

namespace sg {
namespace {

struct work : command_cost {
  double earliest_issue = 0;  // no earlier issue
};

// A command that its lane has started.
struct running {
  std::uint32_t index;
  double ready;      // end of the delay
  double remaining;  // of work.amount
  double rate = 0;
};

class simulation {
 public:
  // `models`: by device, or one for all.
  simulation(const schedule &s, std::span<const device_model> models)
      : s_(s), models_(models), numbers_(s), dependents_(s), devices_(numbers_.devices()) {
    for (std::size_t d = 0; d < devices_.size(); ++d)
      devices_[d].busy_workers.resize(std::size_t(model_of({lane_kind::staging, 0, device_index(d)}).staging_workers));
    const std::size_t count = s.commands.size();
    work_.resize(count);
    blockers_.resize(count);
    queues_.resize(numbers_.count());
    out_.commands.resize(count);
    double earliest_issue = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const device_model &model = model_of(s.commands[i].where);
      work_[i] = {operation_of(s.commands[i]).cost(model, s.buffers, s.commands[i]), earliest_issue};
      earliest_issue += is_staging(i) ? model.staging_gap : model.launch_gap;
      blockers_[i] = s.commands[i].waits;
      out_.commands[i].where = s.commands[i].where;
      if (!is_staging(i))
        queues_[numbers_.of(s.commands[i].where)].commands.push_back(i);
      else if (blockers_[i] == 0)
        stageable_of(i).push(i);
    }
  }

  timeline run() {
    for (;;) {
      const double next_issue = start_what_can();
      if (active_.empty() && next_issue == HUGE_VAL) break;
      set_rates();
      advance_to(std::min(next_issue, next_end()));
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

  using command_queue = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;  // by index
  // The staging workers of a device, and the demands of its running commands.
  struct device_state {
    command_queue stageable;  // by any free worker
    std::vector<bool> busy_workers;
    int in = 0, out = 0, workers = 0;
    double chip = 0, memory = 0, kernel_speed = 1, staging_speed = 0;

    bool has_idle_worker() const {
      return std::find(busy_workers.begin(), busy_workers.end(), false) != busy_workers.end();
    }
  };

  const device_model &model_of(lane where) const { return models_[models_.size() == 1 ? 0 : number_of(where.device)]; }
  command_queue &stageable_of(std::uint32_t i) { return devices_[number_of(s_.commands[i].where.device)].stageable; }
  bool is_staging(std::uint32_t i) const { return s_.commands[i].where.kind == lane_kind::staging; }

  // Starts every command that can run; returns when the next one that waits only for its issue can start.
  double start_what_can() {
    double next_issue = HUGE_VAL;
    for (;;) {
      int chosen = -1;
      std::uint32_t first = UINT32_MAX;
      next_issue = HUGE_VAL;
      const auto may_begin = [&](std::uint32_t i) {
        if (work_[i].earliest_issue <= now_) return true;
        next_issue = std::min(next_issue, work_[i].earliest_issue);
        return false;
      };
      for (int l = 0; l < int(queues_.size()); ++l) {
        const queue &q = queues_[l];
        if (q.busy || q.head == q.commands.size()) continue;
        const std::uint32_t i = q.commands[q.head];
        if (blockers_[i] > 0 || engine_taken(s_.commands[i].where) || !may_begin(i)) continue;
        // Lanes that compete for one engine get it in schedule order.
        if (i < first) chosen = l, first = i;
      }
      device_state *staging = nullptr;
      for (device_state &each : devices_) {
        if (each.stageable.empty() || each.stageable.top() >= first || !each.has_idle_worker()) continue;
        if (may_begin(each.stageable.top())) first = each.stageable.top(), staging = &each;
      }
      if (staging)
        stage(*staging);
      else if (chosen >= 0)
        begin(queues_[chosen]);
      else
        return next_issue;
    }
  }

  static bool is_copy(lane_kind kind) noexcept { return kind == lane_kind::copy_in || kind == lane_kind::copy_out; }

  bool engine_taken(lane wanted) const {
    return model_of(wanted).copy_engines == 1 && is_copy(wanted.kind) &&
           std::any_of(active_.begin(), active_.end(), [&](const running &r) {
             const lane where = s_.commands[r.index].where;
             return is_copy(where.kind) && where.device == wanted.device;
           });
  }

  void begin(queue &q) {
    const std::uint32_t i = q.commands[q.head++];
    q.busy = true;
    const double delay = q.free_since == now_ ? work_[i].delay_queued : work_[i].delay_idle;
    out_.commands[i].start = now_;
    active_.push_back({i, now_ + delay, work_[i].amount});
  }

  void stage(device_state &of) {
    const std::uint32_t i = of.stageable.top();
    of.stageable.pop();
    const auto idle = std::find(of.busy_workers.begin(), of.busy_workers.end(), false);
    const auto worker = idle - of.busy_workers.begin();
    *idle = true;
    out_.commands[i].start = now_;
    out_.commands[i].where.index = std::uint16_t(worker);
    active_.push_back({i, now_, work_[i].amount});
  }

  void set_rates() {
    for (device_state &each : devices_) {
      each.in = each.out = each.workers = 0;
      each.chip = each.memory = 0;
    }
    for (const running &r : active_) {
      if (r.ready > now_) continue;
      const lane where = s_.commands[r.index].where;
      device_state &of = devices_[number_of(where.device)];
      of.in += where.kind == lane_kind::copy_in;
      of.out += where.kind == lane_kind::copy_out;
      of.workers += where.kind == lane_kind::staging;
      of.chip += work_[r.index].chip_share;
      of.memory += work_[r.index].memory_share;
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      device_state &of = devices_[d];
      // Concurrent kernels that need more than the chip run in waves, like the tiles of one larger kernel.
      of.kernel_speed = 1 / std::max({1.0, of.chip > 1 ? waves_of(of.chip) : 1.0, of.memory});
      const device_model &model = model_of({lane_kind::staging, 0, device_index(d)});
      of.staging_speed = of.workers ? staging_rate_of(model, of.workers) / of.workers : 0;
    }
    for (running &r : active_) {
      const work &w = work_[r.index];
      const lane where = s_.commands[r.index].where;
      const device_state &of = devices_[number_of(where.device)];
      switch (where.kind) {
        case lane_kind::copy_in: r.rate = (of.out ? w.both_ways : w.one_way) / std::max(1, of.in); break;
        case lane_kind::copy_out: r.rate = (of.in ? w.both_ways : w.one_way) / std::max(1, of.out); break;
        case lane_kind::staging: r.rate = of.staging_speed; break;
        case lane_kind::compute: r.rate = of.kernel_speed; break;
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
    // Commands within rounding of this event complete with it.
    const double horizon = time * (1 + 1e-14);
    bool works[lane_kinds] = {false, false, false, false};
    std::size_t kept = 0;
    completed_.clear();
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
        completed_.push_back(r.index);
      else
        active_[kept++] = r;
    }
    active_.resize(kept);
    for (int kind = 0; kind < lane_kinds; ++kind)
      if (works[kind]) out_.busy[kind] += step;
    now_ = time;
    for (std::uint32_t i : completed_) end(i);
  }

  void end(std::uint32_t i) {
    out_.commands[i].end = now_;
    if (is_staging(i)) {
      devices_[number_of(s_.commands[i].where.device)].busy_workers[out_.commands[i].where.index] = false;
    } else {
      queue &q = queues_[numbers_.of(s_.commands[i].where)];
      q.busy = false;
      q.free_since = now_;
    }
    for (const std::uint32_t d : dependents_.of(i))
      if (--blockers_[d] == 0 && is_staging(d)) stageable_of(d).push(d);
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
  const std::span<const device_model> models_;
  lane_numbers numbers_;
  dependents dependents_;
  std::vector<work> work_;
  std::vector<std::uint32_t> blockers_;  // incomplete waits
  std::vector<queue> queues_;
  std::vector<device_state> devices_;
  std::vector<running> active_;
  std::vector<std::uint32_t> completed_;
  double now_ = 0;
  timeline out_;
};

}  // namespace

timeline simulate(const schedule &s, const device_model &model) { return simulation(s, {&model, 1}).run(); }
timeline simulate(const schedule &s, const machine_model &machine) { return simulation(s, machine.devices).run(); }

}  // namespace sg
