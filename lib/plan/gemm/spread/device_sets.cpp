// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/spread/device_sets.hpp"

#include <algorithm>
#include <numeric>

#include "model/rates.hpp"
#include "ops/gemm.hpp"
#include "plan/gemm/resident/cost.hpp"

namespace sg {
namespace {

double sum_of(std::span<const double> all) { return std::accumulate(all.begin(), all.end(), 0.0); }

struct copy_flows {
  bool in, out;
};

std::vector<double> shared_rates(const machine_model &machine, const machine_limits &limits,
                                 std::span<const device_index> devices, copy_flows which) {
  std::vector<flow> flows;
  const bool both = which.in && which.out;
  for (const device_index each : devices) {
    const device_model &m = machine.device(each);
    if (which.in) flows.push_back({both ? m.link_in_both : m.link_in, limits.in(each)});
    if (which.out) flows.push_back({both ? m.link_out_both : m.link_out, limits.out(each)});
  }
  std::vector<double> most;
  for (const machine_limits::limit &each : limits.all()) most.push_back(each.bytes_per_second);
  flow_rates().share(flows, most);
  std::vector<double> rates;
  for (const flow &each : flows) rates.push_back(each.rate);
  return rates;
}

}  // namespace

set_rates rates_together(const machine_model &machine, std::span<const device_index> devices) {
  const machine_limits limits(machine);
  return {shared_rates(machine, limits, devices, {true, false}), shared_rates(machine, limits, devices, {false, true}),
          sum_of(shared_rates(machine, limits, devices, {true, true}))};
}

bool are_peers(const machine_model &machine, std::span<const device_index> devices) {
  const machine_limits limits(machine);
  return std::all_of(devices.begin(), devices.end(), [&](device_index from) {
    return std::all_of(devices.begin(), devices.end(),
                       [&](device_index to) { return from == to || !limits.peer_crosses_links(from, to); });
  });
}

std::vector<device_index> best_set(const machine_model &machine, std::span<const device_index> among,
                                   std::size_t count) {
  std::vector<device_index> chosen;
  while (chosen.size() < std::min(count, among.size())) {
    std::vector<device_index> best;
    std::pair<bool, double> most{};
    for (const device_index each : among) {
      if (std::find(chosen.begin(), chosen.end(), each) != chosen.end()) continue;
      std::vector<device_index> trial = chosen;
      trial.push_back(each);
      const set_rates rates = rates_together(machine, trial);
      const std::pair value{are_peers(machine, trial), sum_of(rates.in) + sum_of(rates.out)};
      if (best.empty() || value > most) best = trial, most = value;
    }
    chosen = std::move(best);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

time_bound bound_seconds(const machine_model &machine, std::span<const problem> problems,
                         std::span<const device_index> devices) {
  link_bytes bytes;
  double arithmetic = 0, memory_bytes = 0, memory_rate = 0;
  for (const problem &given : problems) {
    const problem p = given.as_on_device();
    const link_bytes own = bytes_over_link(p);
    bytes.in += own.in;
    bytes.out += own.out;
    memory_bytes += problem::bytes(p.c, p.batch) * (p.beta_zero ? 1 : 2);
    if (p.no_multiply) continue;
    memory_bytes += problem::bytes(p.a, p.batch) + problem::bytes(p.b, p.batch);
    double rate = 0;
    for (const device_index each : devices) {
      const device_model &m = machine.device(each);
      rate += gemm_rate_of(m, p.a.type, p.compute) * (m.lanes_are_cores ? m.compute_lanes : 1);
    }
    if (rate > 0) arithmetic += p.flops() / rate;
  }
  for (const device_index each : devices) memory_rate += machine.device(each).memory_rate;
  std::vector<time_bound> all{{arithmetic, "arithmetic"}, {memory_bytes / memory_rate, "device memory"}};
  if (!machine.device(devices[0]).unified_memory) {
    const set_rates rates = rates_together(machine, devices);
    all.push_back({bytes.in / sum_of(rates.in), "copies in"});
    all.push_back({bytes.out / sum_of(rates.out), "copies out"});
    all.push_back({(bytes.in + bytes.out) / rates.both, "copies in and out"});
  }
  return *std::max_element(all.begin(), all.end(),
                           [](const time_bound &x, const time_bound &y) { return x.seconds < y.seconds; });
}

}  // namespace sg
