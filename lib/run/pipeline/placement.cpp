// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/placement.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace sg {

namespace {

constexpr double worth_another = 0.97;
// Of shorter batches, launches and copies between devices decide, which the model knows least.
constexpr double worth_several_seconds = 1e-4;

constexpr double differs = 0.05;  // of measured rates and of memory: less is noise

bool is_near(double x, double y) { return std::abs(x - y) <= differs * std::max(std::abs(x), std::abs(y)); }

// Rates of measured models differ a little, and their names do.
bool are_alike(const device_model &one, const device_model &other) {
  if (one.unified_memory != other.unified_memory || one.copy_engines != other.copy_engines) return false;
  if (one.units != other.units || one.rates.size() != other.rates.size()) return false;
  for (std::size_t i = 0; i < one.rates.size(); ++i)
    if (one.rates[i].type != other.rates[i].type ||
        !is_near(one.rates[i].flops_per_second, other.rates[i].flops_per_second))
      return false;
  return is_near(double(one.memory_bytes), double(other.memory_bytes)) && is_near(one.memory_rate, other.memory_rate) &&
         is_near(one.link_in, other.link_in) && is_near(one.link_out, other.link_out);
}

// Whether the devices can be exchanged with next to no effect.
bool are_alike(const placement_request &wanted, const machine_model &machine, device_index one, device_index other) {
  if (!are_alike(machine.device(one), machine.device(other))) return false;
  const auto limit = [&](device_index of) {
    const auto found = wanted.limits.find(of);
    return found == wanted.limits.end() ? 0.0 : double(found->second);
  };
  if (!is_near(limit(one), limit(other))) return false;
  for (std::size_t i = 0; i < machine.devices.size(); ++i) {
    const auto third = device_index(i);
    if (third == one || third == other) continue;
    const device_link *const a = machine.link_between(one, third), *const b = machine.link_between(other, third);
    if (bool(a) != bool(b)) return false;
    if (a && (a->link_class != b->link_class || !is_near(a->bytes_per_second, b->bytes_per_second))) return false;
  }
  return std::all_of(machine.shared.begin(), machine.shared.end(), [&](const shared_limit &limit_of) {
    const auto has = [&](device_index x) {
      return std::binary_search(limit_of.devices.begin(), limit_of.devices.end(), x);
    };
    return has(one) == has(other);
  });
}

std::size_t devices_in(const placement &of) { return std::set<device_index>(of.begin(), of.end()).size(); }

class placement_search {
 public:
  placement_search(const placement_request &wanted, const machine_model &machine,
                   const std::function<double(const placement &)> &seconds)
      : wanted_(wanted), machine_(machine), seconds_(seconds) {
    for (const auto &each : wanted.fixed)
      if (each) named_.insert(*each);
  }

  placement best() {
    list({});
    if (all_.size() > wanted_.most_tried) {
      all_.clear();
      list_equal_groups();
      left_ = wanted_.most_tried - std::min(wanted_.most_tried, all_.size());
    }
    std::map<std::size_t, std::vector<placement>> by_devices;
    for (placement &each : all_) by_devices[devices_in(each)].push_back(std::move(each));
    placement chosen;
    double least = HUGE_VAL;
    for (const auto &[count, some] : by_devices) {
      if (least < worth_several_seconds) break;
      const auto [found, seconds] = best_of(some);
      if (chosen.empty() || seconds < worth_another * least) chosen = found, least = seconds;
    }
    return chosen;
  }

 private:
  struct timed {
    placement where;
    double seconds = HUGE_VAL;
  };

  // Stops behind the number that may be tried.
  void list(placement begun) {
    if (all_.size() > wanted_.most_tried) return;
    const std::size_t stage = begun.size();
    if (stage == wanted_.fixed.size()) return all_.push_back(std::move(begun));
    const auto go_on = [&](device_index next) {
      placement longer = begun;
      longer.push_back(next);
      list(std::move(longer));
    };
    if (wanted_.fixed[stage]) return go_on(*wanted_.fixed[stage]);
    if (stage > 0) go_on(begun.back());
    std::vector<device_index> offered;
    for (const device_index each : wanted_.among) {
      if (std::find(begun.begin(), begun.end(), each) != begun.end()) continue;
      const bool is_named = named_.count(each) != 0;
      const auto stands_for = [&](device_index x) {
        return named_.count(x) == 0 && are_alike(wanted_, machine_, x, each);
      };
      if (!is_named && std::any_of(offered.begin(), offered.end(), stands_for)) continue;
      offered.push_back(each);
      go_on(each);
    }
  }

  void list_equal_groups() {
    const std::size_t stages = wanted_.fixed.size(), devices = wanted_.among.size();
    for (std::size_t groups = 1; groups <= std::min(stages, devices); ++groups)
      for (std::size_t begin = 0; begin < devices; ++begin) {
        placement made;
        for (std::size_t s = 0; s < stages; ++s)
          made.push_back(wanted_.fixed[s].value_or(wanted_.among[(begin + s * groups / stages) % devices]));
        if (std::find(all_.begin(), all_.end(), made) == all_.end()) all_.push_back(std::move(made));
      }
    is_bounded_ = true;
  }

  timed best_of(const std::vector<placement> &some) {
    timed best;
    for (const placement &each : some) {
      const double seconds = seconds_(each);
      if (best.where.empty() || seconds < best.seconds) best = {each, seconds};
    }
    for (bool is_better = is_bounded_; is_better;) is_better = move_edges(best);
    return best;
  }

  // Each edge between two groups by one stage, either way.
  bool move_edges(timed &best) {
    for (std::size_t s = 1; s < best.where.size(); ++s) {
      const device_index before = best.where[s - 1], behind = best.where[s];
      if (before == behind) continue;
      for (const auto &[stage, on] : {std::pair(s, before), std::pair(s - 1, behind)}) {
        if (wanted_.fixed[stage] || left_ == 0) continue;
        --left_;
        timed moved{best.where, 0};
        moved.where[stage] = on;
        moved.seconds = seconds_(moved.where);
        if (moved.seconds >= best.seconds) continue;
        best = std::move(moved);
        return true;
      }
    }
    return false;
  }

  const placement_request &wanted_;
  const machine_model &machine_;
  const std::function<double(const placement &)> &seconds_;
  std::set<device_index> named_;
  std::vector<placement> all_;
  std::size_t left_ = 0;  // moves of edges
  bool is_bounded_ = false;
};

}  // namespace

placement best_placement(const placement_request &wanted, const machine_model &machine,
                         const std::function<double(const placement &)> &seconds) {
  return placement_search(wanted, machine, seconds).best();
}

}  // namespace sg
