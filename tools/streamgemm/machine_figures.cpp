// SPDX-License-Identifier: Apache-2.0
#include "machine_figures.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <thread>

#include "machine_probe.hpp"

namespace sg::cli {

namespace {

// A figure of several devices below this part of their figures alone: they share a limit.
constexpr double shared_part = 0.95;
// As for the library's own workers: of each device at most, and of the host's cores.
constexpr int most_workers_of_device = 8;
constexpr double most_of_cores = 0.75;

using device_set = std::vector<std::int32_t>;  // ascending

struct link_rates {
  double in = 0, out = 0, sum = 0;
};

link_rates operator+(const link_rates &x, const link_rates &y) { return {x.in + y.in, x.out + y.out, x.sum + y.sum}; }

std::string text_of(const device_set &devices) {
  std::string text;
  for (const std::int32_t each : devices) text += (text.empty() ? "" : ", ") + std::to_string(each);
  return text;
}

class link_sets {
 public:
  link_sets(machine_probe &measure, const telling &tell) : measure_(measure), tell_(tell) {}

  // Sets of devices with a limit of their own, the smaller first.
  std::vector<device_set> find() {
    const std::int32_t count = measure_.devices();
    device_set all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    std::vector<std::int32_t> group(all);  // of each device, its lowest one
    for (std::int32_t i = 0; i < count; ++i)
      for (std::int32_t j = i + 1; j < count; ++j)
        if (count > 2 && is_limit({i, j}, {{i}, {j}})) {
          const std::int32_t from = std::max(group[std::size_t(i)], group[std::size_t(j)]);
          std::replace(group.begin(), group.end(), from, std::min(group[std::size_t(i)], group[std::size_t(j)]));
        }
    std::map<std::int32_t, device_set> members;
    for (const std::int32_t each : all) members[group[std::size_t(each)]].push_back(each);
    std::vector<device_set> parts, limits;
    for (auto &[lowest, part] : members) parts.push_back(part);
    if (parts.size() == 1) parts.clear();
    for (const device_set &part : parts)
      if (part.size() > 1) limits.push_back(part);
    if (parts.empty())
      for (const std::int32_t each : all) parts.push_back({each});
    if (is_limit(all, parts)) limits.push_back(all);
    return limits;
  }

  const link_rates &of(const device_set &devices) {
    const auto [known, is_new] = rates_.try_emplace(devices);
    if (is_new) {
      tell_("links of " + text_of(devices));
      known->second = {positive(measure_.links(devices, true, false), "copies to the devices"),
                       positive(measure_.links(devices, false, true), "copies from the devices"),
                       positive(measure_.links(devices, true, true), "copies both ways")};
    }
    return known->second;
  }

  const std::map<device_set, link_rates> &all() const noexcept { return rates_; }

 private:
  bool is_limit(const device_set &devices, const std::vector<device_set> &parts) {
    link_rates alone;
    for (const device_set &part : parts) alone = alone + of(part);
    const link_rates &together = of(devices);
    return together.in < shared_part * alone.in || together.out < shared_part * alone.out ||
           together.sum < shared_part * alone.sum;
  }

  machine_probe &measure_;
  const telling &tell_;
  std::map<device_set, link_rates> rates_;
};

json row_of(const device_set &devices, const link_rates &rates) {
  return {{"devices", devices}, {"in", rates.in}, {"out", rates.out}, {"sum", rates.sum}};
}

// An edge has the rate of its slower direction.
void measure_peers(machine_figures &found, machine_probe &measure, const telling &tell) {
  json edges = json::array();
  for (std::int32_t i = 0; i < measure.devices(); ++i)
    for (std::int32_t j = i + 1; j < measure.devices(); ++j) {
      tell("copies between " + text_of({i, j}));
      const double there = positive(measure.peer(i, j), "copies between devices");
      const double back = positive(measure.peer(j, i), "copies between devices");
      found.peers.push_back({{"from", i}, {"to", j}, {"bytes_per_second", there}});
      found.peers.push_back({{"from", j}, {"to", i}, {"bytes_per_second", back}});
      json edge = {{"between", {i, j}}, {"class", "host"}};
      for (const json &known : found.machine["peers"])
        if (known["between"] == edge["between"]) edge = known;
      edge["bytes_per_second"] = std::min(there, back);
      edges.push_back(edge);
    }
  found.machine["peers"] = edges;
}

void measure_staging(json &machine, machine_probe &measure, const telling &tell) {
  const int cores = int(std::thread::hardware_concurrency());
  const int most = std::max(1, std::min(most_workers_of_device * int(measure.devices()), int(most_of_cores * cores)));
  json rows = json::array();
  for (int workers = std::min(4, most); workers <= most; workers += 4) {
    tell(std::to_string(workers) + " staging threads");
    rows.push_back({{"workers", workers}});
    measure_staging_row(rows.back(), measure);
  }
  machine["host"]["staging"] = rows;
}

std::string machine_of(sg_context *context) {
  std::uint64_t size = 0;
  check(sg_context_machine(context, nullptr, 0, &size), "machine");
  std::vector<char> text(size);
  check(sg_context_machine(context, text.data(), size, nullptr), "machine");
  return text.data();
}

std::string rate_of(const json &x) { return format_rate(x.get<double>(), "B/s"); }

}  // namespace

machine_figures figures_of_machine(const std::string &device, bool virtual_time, const telling &tell) {
  const context_handle context = open_context({.device = device, .flags = SG_CONTEXT_NO_COALESCING});
  machine_figures found{json::parse(machine_of(context.get())), json::array(), json::array()};
  machine_probe measure(context.get());
  link_sets links(measure, tell);
  json shared = json::array();
  for (const device_set &each : links.find()) {
    json row = row_of(each, links.of(each));
    row["name"] = int(each.size()) == measure.devices() ? "host" : "links of " + text_of(each);
    shared.push_back(row);
  }
  for (const auto &[devices, rates] : links.all()) found.links.push_back(row_of(devices, rates));
  found.machine["shared"] = shared;
  measure_peers(found, measure, tell);
  if (!virtual_time) measure_staging(found.machine, measure, tell);
  if (found.machine["name"] == "") found.machine["name"] = "calibrated";
  return found;
}

void print_machine_figures(const machine_figures &figures, const std::vector<std::string> &devices) {
  const auto name_of = [&](const json &index) { return devices[index.get<std::size_t>()]; };
  for (const json &row : figures.links) {
    std::string names;
    for (const json &each : row["devices"]) names += (names.empty() ? "" : ", ") + name_of(each);
    std::printf("links      of %s: in %s, out %s, both %s\n", names.c_str(), rate_of(row["in"]).c_str(),
                rate_of(row["out"]).c_str(), rate_of(row["sum"]).c_str());
  }
  for (const json &row : figures.peers)
    std::printf("peers      from %s to %s: %s\n", name_of(row["from"]).c_str(), name_of(row["to"]).c_str(),
                rate_of(row["bytes_per_second"]).c_str());
  for (const json &row : figures.machine["shared"])
    std::printf("shared     %s: in %s, out %s, both %s\n", row["name"].get<std::string>().c_str(),
                rate_of(row["in"]).c_str(), rate_of(row["out"]).c_str(), rate_of(row["sum"]).c_str());
  if (figures.machine["host"].contains("staging"))
    for (const json &row : figures.machine["host"]["staging"])
      std::printf("staging    %d threads for all devices: %s\n", row["workers"].get<int>(), staging_text(row).c_str());
}

}  // namespace sg::cli
