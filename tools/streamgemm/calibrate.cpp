// SPDX-License-Identifier: Apache-2.0
// streamgemm calibrate: measures a device once, and writes the results as a device model.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>

#include "choices.hpp"
#include "format.hpp"
#include "library.hpp"
#include "probe.hpp"
#include "progress.hpp"
#include "verbs.hpp"

namespace sg::cli {

namespace {

struct calibrate_arguments {
  std::string device, output;
  bool json = false;
};

std::string without_options(const std::string &device) { return device.substr(0, device.find('?')); }

// The file that the library reads when SG_CALIBRATION is 1 (docs/environment.md).
std::string usual_file(const std::string &device) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::string folder = cache && cache[0] == '/' ? cache : home && home[0] == '/' ? std::string(home) + "/.cache" : "";
  if (folder.empty())
    throw failure(exit_code::usage, "neither XDG_CACHE_HOME nor HOME names a folder: say where by --output");
  std::string name = without_options(device).substr(0, 100);
  for (char &c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-')) c = '-';
  return folder + "/streamgemm/" + name + ".json";
}

[[noreturn]] void cannot_write(const std::string &path) {
  throw failure(exit_code::failed, path + ": " + std::strerror(errno));
}

void make_folders(const std::string &path) {
  for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1))
    if (mkdir(path.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) cannot_write(path);
}

// For its owner only, and atomically: a concurrent reader finds the old file or the new one.
void write_private(const std::string &path, const std::string &text) {
  std::string fresh = path + ".XXXXXX";
  const int file = mkostemp(fresh.data(), O_CLOEXEC);  // of mode 0600
  if (file < 0) cannot_write(path);
  const bool written = ::write(file, text.data(), text.size()) == ssize_t(text.size()) && fsync(file) == 0;
  if (close(file) == 0 && written && rename(fresh.c_str(), path.c_str()) == 0) return;
  const int reason = errno;
  unlink(fresh.c_str());
  errno = reason;
  cannot_write(path);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

double positive(double figure, const char *what) {
  if (std::isfinite(figure) && figure > 0) return figure;
  throw failure(exit_code::failed, std::string("no sound figure came of measuring ") + what);
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
  }
  if (virtual_time) return;
  const copy_figures pageable = measure.pageable();
  link["pageable_in_bytes_per_second"] = positive(pageable.in, "pageable copies");
  link["pageable_out_bytes_per_second"] = positive(pageable.out, "pageable copies");
  for (json &row : model["staging"])
    if (row["workers"] <= std::max(1u, std::thread::hardware_concurrency()))
      row["bytes_per_second"] = positive(measure.staging(row["workers"]), "staging");
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

void print_calibration_text(const json &model, const json &copies, const json &gemms, const std::string &path) {
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
      std::printf("rows       %8lld bytes: %s, both ways %s\n", static_cast<long long>(row["run_bytes"].get<double>()),
                  rate(row["one_way_bytes_per_second"]).c_str(), rate(row["both_ways_bytes_per_second"]).c_str());
    for (const json &row : model["staging"])
      std::printf("staging    %d threads: %s\n", row["workers"].get<int>(), rate(row["bytes_per_second"]).c_str());
  }
  for (const json &row : copies)
    std::printf("copy       %-3s %9s: %s, %s, the model says %s\n", row["direction"].get<std::string>().c_str(),
                format_bytes(row["bytes"]).c_str(), format_seconds(row["measured_seconds"]).c_str(),
                format_rate(row["bytes_per_second"].get<double>(), "B/s").c_str(),
                format_seconds(row["predicted_seconds"]).c_str());
  const json &kernels = model["kernels"];
  std::printf("memory     %s\nlaunches   %s apart\n",
              format_rate(kernels["memory_bytes_per_second"].get<double>(), "B/s").c_str(),
              format_seconds(kernels["launch_gap_seconds"]).c_str());
  for (const json &row : gemms)
    std::printf("GEMM       %-4s %-6s %5lld^3: %s, %s, the model says %s\n", row["dtype"].get<std::string>().c_str(),
                row["compute"].get<std::string>().c_str(), row["size"].get<long long>(),
                format_seconds(row["measured_seconds"]).c_str(),
                format_rate(row["flops_per_second"].get<double>(), "flop/s").c_str(),
                format_seconds(row["predicted_seconds"]).c_str());
  std::printf("written to %s; contexts use it where SG_CALIBRATION is 1%s\n", path.c_str(), " or names this file");
}

void run(const calibrate_arguments &given) {
  std::string device;
  json model;
  {
    const context_handle context = open_context({.device = given.device});
    device = device_of(context.get()).name;
    model = json::parse(model_of(context.get()));
  }
  const std::string path = given.output.empty() ? usual_file(device) : given.output;
  // A simulated device's arithmetic would be this machine's, and is not needed.
  const bool virtual_time = device.starts_with("sim:");
  std::string measured = given.device;
  if (virtual_time && device.find("timing-only") == device.npos)
    measured = device + (device.find('?') == device.npos ? "?" : "&") + "timing-only";
  const context_handle context =
      open_context({.device = measured, .compute_lanes = model["compute_lanes"], .flags = SG_CONTEXT_NO_COALESCING});
  progress line("measuring");
  json copies = json::array(), gemms;
  {
    probe measure(context.get(), [&](const std::string &what) { line.doing(what); });
    if (!model["unified_memory"]) {
      measure_link(model, measure, virtual_time);
      copies = measure_copies(model["link"], measure);
    }
    gemms = measure_gemms(model, measure);
  }
  model["sources"].erase("calibration");
  model["sources"]["calibrated"] =
      std::string("measured by streamgemm calibrate ") + sg_version_string() +
      ": rates and gaps; latencies, sizes and tiles as they were" +
      (virtual_time ? "; staging and pageable copies too, which have no virtual time" : "");
  model["calibrated"] = {{"device", without_options(device)}, {"date", today()}};
  if (given.output.empty()) make_folders(path);
  write_private(path, model.dump(2) + "\n");
  line.clear();
  if (given.json)
    print_json({{"device", device}, {"file", path}, {"model", model}, {"copies", copies}, {"products", gemms}});
  else
    print_calibration_text(model, copies, gemms, path);
}

}  // namespace

void add_calibrate(CLI::App &app) {
  auto given = std::make_shared<calibrate_arguments>();
  CLI::App *verb = app.add_subcommand("calibrate", "Measure a device once, for plans that fit it");
  verb->add_option("--device", given->device, "What to measure (default auto)");
  verb->add_option("-o,--output", given->output, "Write the model here (default: the user's cache)");
  verb->add_flag("--json", given->json, "Print JSON");
  verb->footer("Example: streamgemm calibrate --device cuda:0 && SG_CALIBRATION=1 streamgemm plan 4096x4096x4096");
  verb->callback([given] {
    if (given->device.empty()) given->device = "auto";
    run(*given);
  });
}

}  // namespace sg::cli
