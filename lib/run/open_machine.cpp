// SPDX-License-Identifier: Apache-2.0
#include "run/open_machine.hpp"

#include <algorithm>
#include <span>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "devices/peer_check.hpp"
#include "run/program/calibration.hpp"

namespace sg {

namespace {

device_model settled(device_model model, const machine_settings &settings) {
  if (settings.compute_lanes > 0) model.compute_lanes = settings.compute_lanes;
  if (settings.staging_threads > 0) model.staging_workers = settings.staging_threads;
  model.memory_limit = settings.memory_limit;
  return model;
}

// Whose cores are closest to which devices is not known.
host_node host_of(std::size_t devices) {
  host_node node{static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency())), {}};
  for (std::size_t i = 0; i < devices; ++i) node.devices.push_back(device_index(i));
  return node;
}

// Links are queried only for several devices: a driver is slow to answer.
machine_model found_machine(std::span<const std::shared_ptr<device>> all) {
  std::vector<found_device> found;
  for (const auto &on : all) {
    found.push_back({on->name(), on->model(), {}});
    if (all.size() == 1) continue;
    const sg_backend_facts facts = on->facts();
    for (const sg_backend_peer &each : std::span(facts.peers, static_cast<std::size_t>(facts.peer_count)))
      found.back().peers.push_back({on->name_of(each.device), each.link_class, each.links, each.bytes_per_second});
  }
  machine_model machine = machine_of(std::move(found));
  machine.nodes.push_back(host_of(all.size()));
  return machine;
}

machine_model model_of(std::span<const std::shared_ptr<device>> all, const machine_settings &settings) {
  const machine_model *const described = all.front()->machine();
  const bool is_whole = described && described->devices.size() == all.size();
  machine_model machine = is_whole ? *described : found_machine(all);
  for (std::size_t i = 0; i < all.size(); ++i) machine.devices[i] = all[i]->model();
  machine = calibrated(std::move(machine), all);
  for (device_model &each : machine.devices) each = settled(std::move(each), settings);
  return machine;
}

arrival check_both_ways(const device &one, const device &other, std::string &reason) {
  const arrival there = check_copies(one, other, reason);
  return there == arrival::right ? check_copies(other, one, reason) : there;
}

// Prepares copies between two devices, and checks them. False: they cross the links to the host; `reason` says why.
bool connect(const device &one, const device &other, double bytes_per_second, std::string &reason) {
  std::string back;
  const bool there = one.connect(other, bytes_per_second, reason);
  const bool linked = other.connect(one, bytes_per_second, there ? reason : back) && there;
  std::string fault;
  if (check_both_ways(one, other, fault) == arrival::right) return linked;
  reason = fault;
  if (one.status() != SG_STATUS_OK || other.status() != SG_STATUS_OK) return false;  // lost: no copy is made
  one.connect(other, -1, back);
  other.connect(one, -1, back);
  if (check_both_ways(one, other, fault) == arrival::wrong)
    throw error(SG_STATUS_BACKEND_FAILURE, "%s, through the host's memory, too", printable(fault, 300).c_str());
  return false;
}

// A rate that the driver does not tell, as in virtual machines: that of the slower direction.
void measure(device_link &link, const device &one, const device &other) {
  const bool has_ports = link.link_class == SG_LINK_NVLINK || link.link_class == SG_LINK_UNKNOWN;
  if (has_ports && link.bytes_per_second == 0)
    link.bytes_per_second = std::min(rate_of_copies(one, other), rate_of_copies(other, one));
}

// Without a working link of their own, devices reach each other through the host's memory.
void connect_all(std::span<const std::shared_ptr<device>> all, machine_model &machine) {
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      auto known = std::find_if(machine.links.begin(), machine.links.end(), [&](const device_link &each) {
        return number_of(each.first) == i && number_of(each.second) == j;
      });
      if (known == machine.links.end())
        known = machine.links.insert(known, {device_index(i), device_index(j), SG_LINK_HOST, 0, 0, ""});
      const bool has_link = known->link_class != SG_LINK_HOST;
      std::string reason;
      // Of a link whose rate is not known: that over the host's links, until it is measured.
      const double over_host = std::min(machine.devices[i].link_out, machine.devices[j].link_in);
      const double rate = known->bytes_per_second > 0 ? known->bytes_per_second : over_host;
      const bool is_connected = connect(*all[i], *all[j], has_link ? rate : 0, reason);
      if (is_connected && has_link) measure(*known, *all[i], *all[j]);
      if (is_connected) continue;
      known->reason =
          printable("no peer path between " + all[i]->name() + " and " + all[j]->name() + ": " + reason, 500);
      if (!has_link) continue;
      known->link_class = SG_LINK_HOST;
      known->links = 0;
      known->bytes_per_second = 0;
      if (logs(log_level::warn, log_area::fallback))
        log_message(log_level::warn, log_area::fallback, "%s", known->reason.c_str());
    }
}

// Of one device as its model says; of several, at least as many.
std::int32_t staging_workers_of(const machine_model &machine) noexcept {
  std::int32_t most = 1;
  for (const device_model &each : machine.devices) most = std::max(most, each.staging_workers);
  return machine.devices.size() == 1 ? most : std::max(most, workers_of(machine));
}

}  // namespace

opened_machine open_machine(const machine_settings &settings) {
  opened_machine made;
  made.devices = open_devices(settings.device.empty() ? nullptr : settings.device.c_str());
  for (const auto &each : made.devices) {
    if (each->unified() && made.devices.size() > 1)
      throw error(SG_STATUS_UNSUPPORTED, "%s uses the host's memory: such a device is a context's only one",
                  each->name().c_str());
    if (settings.tune && each->ops().tune) each->check(each->ops().tune(each->handle()), "preparing to time kernels");
  }
  made.model = model_of(made.devices, settings);
  connect_all(made.devices, made.model);
  assume_rates(made.model.links);
  made.model.staging_workers = settings.staging_threads > 0 ? settings.staging_threads : staging_workers_of(made.model);
  return made;
}

}  // namespace sg
