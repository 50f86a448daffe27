// SPDX-License-Identifier: Apache-2.0
#include "model/calibration.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace sg {
namespace {

// Plausible ratio to the device's own figures, which were measured on one of its kind or derived from data sheets; and
// the longest plausible gap between two commands, in seconds.
constexpr double max_ratio = 100, longest_gap = 0.01;

[[noreturn]] void refuse(const char *what) {
  throw error(SG_STATUS_INVALID_ARGUMENT, "it was measured on a device with other %s", what);
}

void require_same(const device_model &own, const device_model &measured, const std::string &device) {
  if (measured.calibrated_device.empty())
    throw error(SG_STATUS_INVALID_ARGUMENT, "'calibrated' is missing: it is no measured model");
  if (measured.calibrated_device != calibrated_name(device))
    throw error(SG_STATUS_INVALID_ARGUMENT, "it was measured on another device, '%.100s'",
                measured.calibrated_device.c_str());
  if (measured.unified_memory != own.unified_memory || measured.lanes_are_cores != own.lanes_are_cores)
    refuse("memory");
  if (measured.units != own.units) refuse("multiprocessors");
  if (measured.copy_engines != own.copy_engines) refuse("copy engines");
  // Drivers and kernels reserve varying amounts.
  if (std::abs(double(measured.memory_bytes) - double(own.memory_bytes)) > double(own.memory_bytes) / 8)
    refuse("memory");
}

void take_rate(double &own, double measured, const char *what) {
  if (!(measured >= own / max_ratio && measured <= own * max_ratio))
    throw error(SG_STATUS_INVALID_ARGUMENT, "its %s of %g is beyond belief where %g was expected", what, measured, own);
  own = measured;
}

void take_gap(double &own, double measured, const char *what) {
  if (!(measured >= 0 && measured <= longest_gap))
    throw error(SG_STATUS_INVALID_ARGUMENT, "its %s of %g s is beyond belief", what, measured);
  own = measured;
}

// Rates of runs: as many as were measured, each scaled to the link's.
void take_runs(device_model &m, const device_model &measured) {
  for (const run_rate &row : measured.runs)
    for (double rate :
         {row.one_way, row.both_ways, row.one_way * row.far_factor, row.both_ways * row.far_both_ways_factor})
      if (!(rate >= m.link_in / (100 * max_ratio) && rate <= m.link_in * max_ratio))
        throw error(SG_STATUS_INVALID_ARGUMENT, "its rate of %g for runs of %g bytes is beyond belief", rate,
                    row.run_bytes);
  if (!measured.runs.empty()) m.runs = measured.runs;
}

// Beside the model's own rate of packing; 0: it was not measured.
void take_staging_rates(staging_rate &own, const staging_rate &measured) {
  staging_rate taken = measured;
  for (double *const rate : {&taken.bytes_per_second, &taken.unpacking, &taken.both_ways}) {
    const double wanted = *rate;
    if (wanted == 0) continue;
    *rate = own.bytes_per_second;
    take_rate(*rate, wanted, "staging rate");
  }
  own = taken;
}

void take_staging(device_model &m, const device_model &measured) {
  for (staging_rate &row : m.staging) {
    const auto same = std::find_if(measured.staging.begin(), measured.staging.end(),
                                   [&](const staging_rate &x) { return x.workers == row.workers; });
    if (same != measured.staging.end()) take_staging_rates(row, *same);
  }
}

void take_gemm_rates(device_model &m, const device_model &measured) {
  for (const gemm_rate &row : measured.rates) {
    const auto same = std::find_if(m.rates.begin(), m.rates.end(),
                                   [&](const gemm_rate &x) { return x.type == row.type && x.compute == row.compute; });
    if (same == m.rates.end())
      throw error(SG_STATUS_INVALID_ARGUMENT, "it has a rate of %s GEMMs (%s), which the device does not have",
                  name_of(row.type), name_of(row.compute));
    take_rate(same->flops_per_second, row.flops_per_second, "GEMM rate");
  }
}

// A rate that the machine's own model does not tell, beside that of the first device's link.
void take_new_rate(const machine_model &m, double &own, double measured, const char *what) {
  own = m.devices.front().link_in;
  take_rate(own, measured, what);
}

// A link of a class that the driver does not name was measured in other circumstances. One through the host's memory
// needs no name.
void take_link(machine_model &m, const device_link &measured) {
  if (measured.bytes_per_second == 0) return;
  const auto known = std::find_if(m.links.begin(), m.links.end(), [&](const device_link &x) {
    return x.first == measured.first && x.second == measured.second;
  });
  if (known == m.links.end() && measured.link_class == SG_LINK_HOST) {
    m.links.push_back(measured);
    take_new_rate(m, m.links.back().bytes_per_second, measured.bytes_per_second, "rate between devices");
  } else if (known != m.links.end() && known->link_class == measured.link_class) {
    take_new_rate(m, known->bytes_per_second, measured.bytes_per_second, "rate between devices");
  }
}

void take_shared(machine_model &m, const shared_limit &measured) {
  shared_limit limit = measured;
  for (double *const rate : {&limit.in, &limit.out, &limit.sum})
    if (*rate > 0) take_new_rate(m, *rate, *rate, "rate of links together");
  m.shared.push_back(std::move(limit));
}

// As many workers of one device are as fast as those of all: measured alone, they may have waited for its link.
void take_workers(machine_model &m, const staging_rate &measured) {
  staging_rate taken{measured.workers, m.devices.front().link_in};
  take_staging_rates(taken, measured);
  m.staging.push_back(taken);
  for (device_model &each : m.devices)
    for (staging_rate &own : each.staging) {
      if (own.workers != measured.workers) continue;
      own.bytes_per_second = std::max(own.bytes_per_second, measured.bytes_per_second);
      own.unpacking = std::max(own.unpacking, measured.unpacking);
      own.both_ways = std::max(own.both_ways, measured.both_ways);
    }
}

}  // namespace

std::string calibrated_name(const std::string &device) { return device.substr(0, device.find('?')); }

device_model with_measured(const device_model &own, const device_model &measured, const std::string &device) {
  require_same(own, measured, device);
  device_model m = own;
  if (!m.unified_memory) {
    take_rate(m.link_in, measured.link_in, "link rate");
    take_rate(m.link_out, measured.link_out, "link rate");
    take_rate(m.link_in_both, measured.link_in_both, "link rate");
    take_rate(m.link_out_both, measured.link_out_both, "link rate");
    take_rate(m.pageable_in, measured.pageable_in, "rate of pageable copies");
    take_rate(m.pageable_out, measured.pageable_out, "rate of pageable copies");
    take_gap(m.copy_latency, measured.copy_latency, "copy latency");
    take_gap(m.copy_gap, measured.copy_gap, "copy gap");
    take_runs(m, measured);
    take_staging(m, measured);
  }
  take_gap(m.launch_latency, measured.launch_latency, "launch latency");
  take_gap(m.launch_gap, measured.launch_gap, "launch gap");
  take_rate(m.memory_rate, measured.memory_rate, "memory rate");
  take_gemm_rates(m, measured);
  m.calibrated_device = measured.calibrated_device;
  m.calibrated_date = measured.calibrated_date;
  return m;
}

machine_model with_measured(const machine_model &own, const machine_model &measured,
                            std::span<const std::string> devices) {
  if (measured.devices.size() != devices.size())
    throw error(SG_STATUS_INVALID_ARGUMENT, "it was measured on %zu devices, not on these %zu", measured.devices.size(),
                devices.size());
  machine_model m = own;
  for (std::size_t i = 0; i < devices.size(); ++i) try {
      m.devices[i] = with_measured(own.devices[i], measured.devices[i], devices[i]);
    } catch (const error &e) {
      throw error(SG_STATUS_INVALID_ARGUMENT, "%.100s: %s", devices[i].c_str(), e.what());
    }
  for (const device_link &link : measured.links) take_link(m, link);
  m.shared.clear();
  for (const shared_limit &limit : measured.shared) take_shared(m, limit);
  if (!measured.staging.empty()) m.staging.clear();
  for (const staging_rate &row : measured.staging) take_workers(m, row);
  return m;
}

}  // namespace sg
