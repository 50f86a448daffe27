// SPDX-License-Identifier: Apache-2.0
#include "device_figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <thread>

#include "choices.hpp"
#include "format.hpp"
#include "probe.hpp"

namespace sg::cli {

namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

// Simulated devices have their link and their chip in virtual time, and the threads and the pageable memory of this
// machine.
void measure_link(json &model, probe &measure, bool virtual_time) {
  json &link = model["link"];
  const copy_figures alone = measure.one_way();
  link["in_bytes_per_second"] = positive(alone.in, "copies to the device");
  link["out_bytes_per_second"] = positive(alone.out, "copies from the device");
  link["copy_gap_seconds"] = alone.gap;
  const bool both_ways = model["copy_engines"] == 2;
  if (both_ways) {
    const copy_figures both = measure.both_ways(0, alone.gap);
    link["both_ways_in_bytes_per_second"] = positive(both.in, "copies both ways");
    link["both_ways_out_bytes_per_second"] = positive(both.out, "copies both ways");
  }
  for (json &row : link["runs"]) {
    const double run = row["run_bytes"];
    const copy_figures one = measure.rows(run, alone.gap);
    row["one_way_bytes_per_second"] = positive((one.in + one.out) / 2, "2-D copies");
    const copy_figures both = both_ways ? measure.both_ways(run, alone.gap) : one;
    row["both_ways_bytes_per_second"] = positive((both.in + both.out) / 2, "2-D copies both ways");
    const auto factor = [](const copy_figures &far, const copy_figures &near) {
      return std::clamp((far.in + far.out) / (near.in + near.out), 0.01, 1.0);
    };
    row["far_factor"] = factor(measure.rows(run, alone.gap, true), one);
    row["far_both_ways_factor"] = row["far_factor"];
    if (both_ways) row["far_both_ways_factor"] = factor(measure.both_ways(run, alone.gap, true), both);
  }
  if (virtual_time) return;
  const copy_figures pageable = measure.pageable();
  link["pageable_in_bytes_per_second"] = positive(pageable.in, "pageable copies");
  link["pageable_out_bytes_per_second"] = positive(pageable.out, "pageable copies");
  for (json &row : model["staging"])
    if (row["workers"] <= std::max(1u, std::thread::hardware_concurrency())) measure_staging_row(row, measure);
}

// Measured times of copies by size, with the prediction of the measured rates.
json measure_copies(const json &link, probe &measure) {
  json table = json::array();
  for (const bool in : {true, false})
    for (const int kib : {64, 1024, 16384, 65536}) {
      const double bytes = kib * 1024.0, took = measure.copy_of(in, std::uint64_t(kib) << 10);
      const double rate = link[in ? "in_bytes_per_second" : "out_bytes_per_second"];
      table.push_back({{"direction", in ? "in" : "out"},
                       {"bytes", bytes},
                       {"measured_seconds", took},
                       {"bytes_per_second", bytes / took},
                       {"predicted_seconds", link["copy_gap_seconds"].get<double>() + bytes / rate}});
    }
  return table;
}

// The largest cube that fits a part of the memory and takes an acceptable time by the model's rate, which may be far
// off.
std::int64_t size_for(const json &model, const json &row, sg_dtype dtype) {
  const bool cores = model["lanes_are_cores"];
  const double flops = dtype == SG_DTYPE_C64 || dtype == SG_DTYPE_C128 ? 8 : 2;
  const double memory = model["memory_bytes"].get<double>() / 16 / (cores ? model["compute_lanes"].get<int>() : 1);
  std::int64_t size = cores ? 2048 : 8192;
  const auto too_large = [&] {
    const double n = double(size);
    return n * n * double(sg_dtype_size(dtype)) * 4 > memory ||
           flops * n * n * n / row["flops_per_second"].get<double>() > (cores ? 0.15 : 0.5);
  };
  while (size > 128 && too_large()) size /= 2;
  return size;
}

template <class Enum>
Enum named(const choices<Enum> &names, const std::string &name) {
  for (const auto &[known, value] : names)
    if (known == name) return value;
  throw failure(exit_code::failed, "the device model names '" + name + "', which this program does not know");
}

// Scales each rate by the ratio of the GEMM's predicted and measured time, which includes the model's own account of
// tiles and units. Returns the measurements by size, with the predictions of the new rates.
json measure_gemms(json &model, probe &measure) {
  json &kernels = model["kernels"];
  const double gap_before = kernels["launch_gap_seconds"];
  const double idle = std::max(kernels["launch_latency_seconds"].get<double>(), gap_before);
  const double gap = measure.launch_gap();
  kernels["launch_gap_seconds"] = gap;
  const int lanes = model["lanes_are_cores"] ? model["compute_lanes"].get<int>() : 1;
  kernels["memory_bytes_per_second"] = positive(measure.memory_rate(lanes, gap), "the device's memory");
  json table = json::array();
  for (json &row : kernels["gemm"]) {
    const sg_dtype dtype = named(input_types, row["dtype"]);
    const sg_compute compute = named(computes, row["compute"]);
    const std::int64_t largest = size_for(model, row, dtype);
    double scale = 0;
    for (std::int64_t size = largest; size >= std::max<std::int64_t>(128, largest / 4); size /= 2) {
      const probe::gemm_times times = measure.gemm(dtype, compute, size, lanes);
      if (times.measured <= 0) break;
      const double expected = std::max(1e-9, times.predicted - idle), took = std::max(1e-9, times.measured - gap);
      if (scale == 0) scale = expected / took;
      const double flops = (dtype == SG_DTYPE_C64 || dtype == SG_DTYPE_C128 ? 8.0 : 2.0) * std::pow(double(size), 3);
      table.push_back({{"dtype", row["dtype"]},
                       {"compute", row["compute"]},
                       {"size", size},
                       {"measured_seconds", times.measured},
                       {"flops_per_second", flops / times.measured},
                       {"predicted_seconds", expected / scale + gap}});
    }
    if (scale > 0) row["flops_per_second"] = positive(row["flops_per_second"].get<double>() * scale, "GEMMs");
  }
  return table;
}

}  // namespace

double positive(double figure, const std::string &what) {
  if (std::isfinite(figure) && figure > 0) return figure;
  throw failure(exit_code::failed, "no sound figure came of measuring " + what);
}

std::string without_options(const std::string &device) { return device.substr(0, device.find('?')); }

std::string timing_only(const std::string &device) {
  if (!device.starts_with("sim:") || device.find("timing-only") != device.npos) return device;
  return device + (device.find('?') == device.npos ? "?" : "&") + "timing-only";
}

device_figures figures_of(const std::string &device, bool quick, const telling &tell) {
  device_figures found{device, json::parse(model_of(open_context({.device = device}).get())), json::array(),
                       json::array()};
  const bool virtual_time = device.starts_with("sim:");
  const context_handle context = open_context({.device = timing_only(device),
                                               .compute_lanes = found.model["compute_lanes"],
                                               .flags = SG_CONTEXT_NO_COALESCING});
  probe measure(context.get(), tell);
  if (!found.model["unified_memory"]) {
    measure_link(found.model, measure, virtual_time);
    found.copies = measure_copies(found.model["link"], measure);
  }
  if (!quick) found.gemms = measure_gemms(found.model, measure);
  json &sources = found.model["sources"];
  sources.erase("calibration");
  sources["calibrated"] = std::string("measured by streamgemm calibrate ") + sg_version_string() + ": " +
                          (quick ? "copies" : "rates and gaps") + "; the other figures as they were" +
                          (virtual_time ? ", and staging and pageable copies, which have no virtual time" : "");
  found.model["calibrated"] = {{"device", without_options(device)}, {"date", today()}};
  return found;
}

std::string staging_text(const json &row) {
  const auto rate = [&](const char *key) { return format_rate(row[key].get<double>(), "B/s"); };
  std::string text = "in " + rate("bytes_per_second");
  if (row.contains("unpack_bytes_per_second")) text += ", out " + rate("unpack_bytes_per_second");
  if (row.contains("both_ways_bytes_per_second")) text += ", both " + rate("both_ways_bytes_per_second");
  return text;
}

void print_figures(const device_figures &figures) {
  const json &model = figures.model;
  if (model.contains("link")) {
    const json &link = model["link"];
    const auto rate = [](const json &x) { return format_rate(x.get<double>(), "B/s"); };
    std::printf("link       in %s, out %s; both ways %s, %s; %s between copies\n",
                rate(link["in_bytes_per_second"]).c_str(), rate(link["out_bytes_per_second"]).c_str(),
                rate(link["both_ways_in_bytes_per_second"]).c_str(),
                rate(link["both_ways_out_bytes_per_second"]).c_str(), format_seconds(link["copy_gap_seconds"]).c_str());
    std::printf("pageable   in %s, out %s\n", rate(link["pageable_in_bytes_per_second"]).c_str(),
                rate(link["pageable_out_bytes_per_second"]).c_str());
    for (const json &row : link["runs"])
      std::printf("rows       %8lld bytes: %s, both ways %s; 64 KiB apart %.2f and %.2f of that\n",
                  static_cast<long long>(row["run_bytes"].get<double>()), rate(row["one_way_bytes_per_second"]).c_str(),
                  rate(row["both_ways_bytes_per_second"]).c_str(), row["far_factor"].get<double>(),
                  row["far_both_ways_factor"].get<double>());
    for (const json &row : model["staging"])
      std::printf("staging    %d threads: %s\n", row["workers"].get<int>(), staging_text(row).c_str());
  }
  for (const json &row : figures.copies)
    std::printf("copy       %-3s %9s: %s, %s, the model says %s\n", row["direction"].get<std::string>().c_str(),
                format_bytes(row["bytes"]).c_str(), format_seconds(row["measured_seconds"]).c_str(),
                format_rate(row["bytes_per_second"].get<double>(), "B/s").c_str(),
                format_seconds(row["predicted_seconds"]).c_str());
  if (figures.gemms.empty()) return;
  const json &kernels = model["kernels"];
  std::printf("memory     %s\nlaunches   %s apart\n",
              format_rate(kernels["memory_bytes_per_second"].get<double>(), "B/s").c_str(),
              format_seconds(kernels["launch_gap_seconds"]).c_str());
  for (const json &row : figures.gemms)
    std::printf("GEMM       %-4s %-6s %5lld^3: %s, %s, the model says %s\n", row["dtype"].get<std::string>().c_str(),
                row["compute"].get<std::string>().c_str(), row["size"].get<long long>(),
                format_seconds(row["measured_seconds"]).c_str(),
                format_rate(row["flops_per_second"].get<double>(), "flop/s").c_str(),
                format_seconds(row["predicted_seconds"]).c_str());
}

}  // namespace sg::cli
