// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule/simulate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "model/rates.hpp"
#include "ops/operation.hpp"
#include "plan/schedule/dependents.hpp"
#include "plan/schedule/lane_queues.hpp"
#include "plan/schedule/lanes.hpp"
#include "plan/schedule/shared_queues.hpp"

namespace sg {
namespace {

struct work : command_cost {
  double earliest_issue = 0;     // no earlier issue
  machine_limits::path path;     // limits that it shares with commands of other devices
  bool over_both_links = false;  // a peer copy: over its device's link to the host, and that of `source`
  device_index source{};
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
  // `models`: by device, or one for all. `machine`: whose limits they share; nullptr: none. `jobs`: by command, or
  // empty.
  simulation(const schedule &s, std::span<const device_model> models, const machine_model *machine,
             std::span<const std::uint32_t> jobs = {})
      : s_(s),
        models_(models),
        numbers_(s),
        dependents_(s),
        shared_queues_(
            s.commands, numbers_.devices(), [this](lane where) -> auto & { return model_of(where); }),
        queues_(s, numbers_, jobs),
        lanes_(queues_.size()),
        devices_(std::max(numbers_.devices(), machine ? machine->devices.size() : 0)) {  // some only send
    if (machine && (machine->devices.size() > 1 || !machine->shared.empty()))
      machine_ = machine, limits_.emplace(*machine);
    for (std::size_t d = 0; d < devices_.size(); ++d)
      devices_[d].busy_workers.resize(
          workers_of(s, numbers_.devices(), model_of({lane_kind::staging, 0, device_index(d)})));
    work_.resize(s.commands.size());
    blockers_.resize(s.commands.size());
    out_.commands.resize(s.commands.size());
    out_.busy.resize(numbers_.devices());
    std::vector<double> next_issue(devices_.size(), 0);  // a thread issues a job, or all jobs of one device
    for (std::uint32_t i = 0; i < s.commands.size(); ++i) {
      const device_model &model = model_of(s.commands[i].where);
      double &earliest_issue = next_issue[jobs.empty() ? 0 : number_of(s.commands[i].where.device)];
      // The workers have all of a job's commands from its begin.
      work_[i] = {
          operation_of(s.commands[i]).cost(model, s.buffers, s.commands[i]), is_staging(i) ? 0 : earliest_issue, {}};
      if (!is_staging(i)) earliest_issue += model.launch_gap;
      if (copies_slot(s.buffers, s.commands[i])) earliest_issue += model.staging_gap;
      if (limits_) set_path(work_[i], s.commands[i]);
      blockers_[i] = s.commands[i].waits;
      out_.commands[i].where = s.commands[i].where;
      if (blockers_[i] == 0) make_ready(i);
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
  // The staging workers of a device, and the demands of its running commands.
  struct device_state {
    command_queue stageable;  // by any free worker
    std::vector<bool> busy_workers;
    int in = 0, out = 0;
    staging_load workers;
    bool receives = false, sends = false;  // over the link to the host
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
      std::size_t chosen = queues_.size();
      std::uint32_t first = UINT32_MAX;
      next_issue = HUGE_VAL;
      const auto may_begin = [&](std::uint32_t i) {
        if (work_[i].earliest_issue <= now_) return true;
        next_issue = std::min(next_issue, work_[i].earliest_issue);
        return false;
      };
      for (std::size_t l = 0; l < queues_.size(); ++l) {
        const std::uint32_t i = lanes_[l].busy ? UINT32_MAX : queues_.first(l);
        if (i == UINT32_MAX || !shared_queues_.is_first(i) || engine_taken(s_.commands[i].where) || !may_begin(i))
          continue;
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
      else if (chosen < queues_.size())
        begin(chosen);
      else
        return next_issue;
    }
  }

  static bool is_copy(lane_kind kind) noexcept { return kind == lane_kind::copy_in || kind == lane_kind::copy_out; }

  bool engine_taken(lane wanted) const {
    const device_model &model = model_of(wanted);
    const bool copies = model.copy_engines == 1 && is_copy(wanted.kind);
    const bool computes = model.queues == stream_queues::serial && wanted.kind == lane_kind::compute;
    return (copies || computes) && std::any_of(active_.begin(), active_.end(), [&](const running &r) {
             const lane where = s_.commands[r.index].where;
             return (copies ? is_copy(where.kind) : where.kind == wanted.kind) && where.device == wanted.device;
           });
  }

  void begin(std::size_t lane) {
    const std::uint32_t i = queues_.first(lane);
    queues_.start_first(lane);
    lanes_[lane].busy = true;
    shared_queues_.start(i);
    const double delay = lanes_[lane].free_since == now_ ? work_[i].delay_queued : work_[i].delay_idle;
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

  void set_path(work &w, const command &c) const {
    const device_index to = c.where.device;
    if (c.where.kind == lane_kind::copy_in) w.path = limits_->in(to);
    if (c.where.kind == lane_kind::copy_out) w.path = limits_->out(to);
    if (c.where.kind == lane_kind::staging) w.path = limits_->staging();
    if (c.where.kind != lane_kind::copy_peer) return;
    w.source = buffer_of(s_.buffers, source_of(c)).space.device();
    w.path = limits_->peer(w.source, to);
    w.over_both_links = limits_->peer_crosses_links(w.source, to);
    const double rate = limits_->peer_rate(w.source, to);
    w.one_way = w.over_both_links ? std::min(rate, w.one_way) : rate;
    w.both_ways = w.over_both_links ? std::min(rate, w.both_ways) : rate;
  }

  void set_rates() {
    for (device_state &each : devices_) {
      each.in = each.out = 0, each.workers = {};
      each.receives = each.sends = false;
      each.chip = each.memory = 0;
    }
    for (const running &r : active_) {
      if (r.ready > now_) continue;
      const work &w = work_[r.index];
      const lane where = s_.commands[r.index].where;
      device_state &of = devices_[number_of(where.device)];
      of.in += where.kind == lane_kind::copy_in;
      of.out += where.kind == lane_kind::copy_out;
      if (where.kind == lane_kind::staging) of.workers += load_of(s_.commands[r.index]);
      of.chip += w.chip_share;
      of.memory += w.memory_share;
      of.receives = of.receives || where.kind == lane_kind::copy_in || w.over_both_links;
      of.sends = of.sends || where.kind == lane_kind::copy_out;
      if (w.over_both_links) devices_[number_of(w.source)].sends = true;
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      device_state &of = devices_[d];
      // Concurrent kernels that need more than the chip run in waves, like the tiles of one larger kernel.
      of.kernel_speed = 1 / std::max({1.0, of.chip > 1 ? waves_of(of.chip) : 1.0, of.memory});
      const device_model &model = model_of({lane_kind::staging, 0, device_index(d)});
      of.staging_speed = staging_rate_of(model, of.workers) / std::max(1, of.workers.workers());
    }
    for (running &r : active_) r.rate = rate_alone(r);
    if (limits_) share_limits();
  }

  // Of a command on its device, without the limits that devices share.
  double rate_alone(const running &r) const {
    const work &w = work_[r.index];
    const lane where = s_.commands[r.index].where;
    const device_state &of = devices_[number_of(where.device)];
    switch (where.kind) {
      case lane_kind::copy_in: return (of.sends ? w.both_ways : w.one_way) / std::max(1, of.in);
      case lane_kind::copy_out: return (of.receives ? w.both_ways : w.one_way) / std::max(1, of.out);
      case lane_kind::copy_peer: return of.sends ? w.both_ways : w.one_way;
      case lane_kind::staging: return of.staging_speed;
      case lane_kind::compute: break;
    }
    return of.kernel_speed;
  }

  void share_limits() {
    flows_.clear();
    capacities_.clear();
    for (const machine_limits::limit &each : limits_->all()) capacities_.push_back(each.bytes_per_second);
    staging_load all;
    for (const device_state &each : devices_) all += each.workers;
    if (!machine_->staging.empty()) capacities_.push_back(staging_rate_of(machine_->staging, all));
    for (const running &r : active_)
      flows_.push_back({r.rate, r.ready > now_ ? machine_limits::path() : work_[r.index].path});
    sharing_.share(flows_, capacities_);
    for (std::size_t i = 0; i < active_.size(); ++i) active_[i].rate = flows_[i].rate;
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
    works_.assign(out_.busy.size(), {});
    std::size_t kept = 0;
    completed_.clear();
    for (running r : active_) {
      bool ends = false;
      if (r.ready <= now_) {
        const lane where = s_.commands[r.index].where;
        works_[number_of(where.device)][std::size_t(where.kind)] = true;
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
    for (std::size_t d = 0; d < works_.size(); ++d)
      for (std::size_t kind = 0; kind < lane_kinds; ++kind)
        if (works_[d][kind]) out_.busy[d][kind] += step;
    now_ = time;
    for (std::uint32_t i : completed_) end(i);
  }

  void end(std::uint32_t i) {
    out_.commands[i].end = now_;
    if (is_staging(i)) {
      devices_[number_of(s_.commands[i].where.device)].busy_workers[out_.commands[i].where.index] = false;
    } else {
      lanes_[queues_.lane_of(i)] = {false, now_};
    }
    for (const std::uint32_t d : dependents_.of(i))
      if (!shared_queues_.waits_for_burst(i, s_.commands[d].where)) unblock(d);
    for (const std::uint32_t kernel : shared_queues_.complete(i))
      for (const std::uint32_t d : dependents_.of(kernel))
        if (shared_queues_.waits_for_burst(kernel, s_.commands[d].where)) unblock(d);
  }

  void unblock(std::uint32_t i) {
    if (--blockers_[i] == 0) make_ready(i);
  }
  void make_ready(std::uint32_t i) {
    if (is_staging(i))
      stageable_of(i).push(i);
    else
      queues_.unblock(i);
  }

  void finish() {
    out_.seconds = now_;
    double sum = 0, longest = 0;
    for (const auto &device : out_.busy)
      for (const double busy : device) {
        sum += busy;
        longest = std::max(longest, busy);
      }
    if (sum > longest) out_.overlap_efficiency = std::clamp((sum - out_.seconds) / (sum - longest), 0.0, 1.0);
  }

  const schedule &s_;
  const std::span<const device_model> models_;
  const machine_model *machine_ = nullptr;
  std::optional<machine_limits> limits_;
  lane_numbers numbers_;
  dependents dependents_;
  shared_queues shared_queues_;
  lane_queues queues_;
  std::vector<lane_state> lanes_;
  std::vector<work> work_;
  std::vector<std::uint32_t> blockers_;  // incomplete waits
  std::vector<device_state> devices_;
  std::vector<running> active_;
  std::vector<std::uint32_t> completed_;
  std::vector<std::array<bool, lane_kinds>> works_;  // by device
  flow_rates sharing_;
  std::vector<flow> flows_;
  std::vector<double> capacities_;
  double now_ = 0;
  timeline out_;
};

}  // namespace

timeline simulate(const schedule &s, const device_model &model) { return simulation(s, {&model, 1}, nullptr).run(); }
timeline simulate(const schedule &s, const machine_model &machine) { return simulate(s, machine, {}); }
timeline simulate(const schedule &s, const machine_model &machine, std::span<const std::uint32_t> jobs) {
  return simulation(s, machine.devices, &machine, jobs).run();
}

}  // namespace sg
