// SPDX-License-Identifier: Apache-2.0
// The commands of lanes that can start: those that wait for no other, of each job the next one in its order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "plan/schedule/lanes.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

using command_queue = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;  // by index

struct lane_state {
  bool busy = false;
  double free_since = -1;
};

class lane_queues {
 public:
  // `jobs`: by command; empty: all are one job's. Commands of host workers are in no lane.
  lane_queues(const schedule &s, const lane_numbers &numbers, std::span<const std::uint32_t> jobs)
      : lane_of_(s.commands.size(), none), next_(s.commands.size(), none), states_(s.commands.size()) {
    ready_.resize(std::size_t(numbers.count()));
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> latest;  // of a lane and a job
    for (std::uint32_t i = 0; i < s.commands.size(); ++i) {
      if (!on_device(s.commands[i].where)) continue;
      lane_of_[i] = std::uint32_t(numbers.of(s.commands[i].where));
      const auto [before, is_first] = latest.try_emplace({lane_of_[i], jobs.empty() ? 0 : jobs[i]}, i);
      states_[i].is_next = is_first;
      if (!is_first) next_[std::exchange(before->second, i)] = i;
    }
  }

  std::size_t size() const noexcept { return ready_.size(); }
  // The first that can start in the lane, in the order of the schedule; UINT32_MAX: none.
  std::uint32_t first(std::size_t lane) const noexcept { return ready_[lane].empty() ? none : ready_[lane].top(); }
  std::size_t lane_of(std::uint32_t command) const noexcept { return lane_of_[command]; }
  void start_first(std::size_t lane) {
    const std::uint32_t next = next_[ready_[lane].top()];
    ready_[lane].pop();
    if (next == none) return;
    states_[next].is_next = true;
    add_if_ready(next);
  }
  void unblock(std::uint32_t command) {  // it waits for no other now
    states_[command].is_unblocked = true;
    add_if_ready(command);
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct state {
    bool is_next = false, is_unblocked = false;
  };
  void add_if_ready(std::uint32_t i) {
    if (states_[i].is_next && states_[i].is_unblocked) ready_[lane_of_[i]].push(i);
  }

  std::vector<std::uint32_t> lane_of_, next_;  // by command; the next of its lane and job
  std::vector<state> states_;
  std::vector<command_queue> ready_;  // by lane
};

}  // namespace sg
