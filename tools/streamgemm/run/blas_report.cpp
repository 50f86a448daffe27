// SPDX-License-Identifier: Apache-2.0
#include "blas_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "../format.hpp"
#include "../outcome.hpp"

namespace sg::cli {

namespace {

using json = nlohmann::ordered_json;

// Rows of the text, those of the most time.
constexpr std::size_t rows_shown = 24;

constexpr std::array summed{
    "gflop",    "device_seconds", "cpu_seconds", "predicted_device_seconds", "predicted_cpu_seconds",
    "bytes_in", "bytes_out"};

std::string shape_of(const json &row) {
  return std::to_string(row["m"].get<long long>()) + "x" + std::to_string(row["n"].get<long long>()) + "x" +
         std::to_string(row["k"].get<long long>());
}

long long calls_of(const json &row) {
  long long sum = 0;
  for (const auto &[reason, count] : row["calls"].items()) sum += count.get<long long>();
  return sum;
}

json merged_rows(const std::vector<json> &reports) {
  std::map<std::string, json> rows;
  for (const json &report : reports)
    for (const json &row : report["rows"]) {
      json &to = rows[row["routine"].get<std::string>() + shape_of(row)];
      if (to.is_null()) {
        to = {{"routine", row["routine"]}, {"m", row["m"]}, {"n", row["n"]}, {"k", row["k"]}};
        for (const char *name : summed) to[name] = 0.0;
        to["calls"] = json::object();
      }
      for (const char *name : summed) to[name] = to[name].get<double>() + row[name].get<double>();
      for (const auto &[reason, count] : row["calls"].items())
        to["calls"][reason] = to["calls"].value(reason, 0LL) + count.get<long long>();
    }
  json list = json::array();
  for (auto &[key, row] : rows) list.push_back(row);
  std::sort(list.begin(), list.end(), [](const json &a, const json &b) {
    return a["device_seconds"].get<double>() + a["cpu_seconds"].get<double>() >
           b["device_seconds"].get<double>() + b["cpu_seconds"].get<double>();
  });
  return list;
}

// What stayed on the device between calls, summed.
json merged_residency(const std::vector<json> &reports) {
  json sum = json::object();
  for (const char *name : {"hits", "changes", "copies", "evictions", "guards", "unwritten", "bytes_avoided",
                           "bytes_hashed", "bytes_verified", "host_reads", "hash_seconds"}) {
    sum[name] = 0.0;
    for (const json &report : reports) sum[name] = sum[name].get<double>() + report["residency"][name].get<double>();
  }
  return sum;
}

std::string text_of_residency(const json &of) {
  if (of["copies"].get<double>() == 0) return "";
  std::string text = "operands kept on the device: " + format_fixed(of["copies"], 0) + " copies, used " +
                     format_fixed(of["hits"], 0) + " times; " + format_bytes(of["bytes_avoided"]) +
                     " not copied again; comparisons took " + format_fixed(of["hash_seconds"], 3) + " s\n";
  if (of["host_reads"].get<double>() > 0)
    text += format_fixed(of["host_reads"], 0) + " calls copied operands again, which was faster than to compare them\n";
  return text;
}

json spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"min", values.front()}, {"median", values[values.size() / 2]}, {"max", values.back()}};
}

// Of the processes of an MPI program: the seconds of each in level 3.
json ranks_of(const std::vector<json> &reports) {
  std::vector<double> device, cpu;
  for (const json &report : reports)
    if (report["rank"].get<int>() >= 0) {
      double on_device = 0, on_cpu = 0;
      for (const json &row : report["rows"])
        on_device += row["device_seconds"].get<double>(), on_cpu += row["cpu_seconds"].get<double>();
      device.push_back(on_device);
      cpu.push_back(on_cpu);
    }
  if (device.size() < 2) return nullptr;
  return {{"count", device.size()}, {"device_seconds", spread_of(device)}, {"cpu_seconds", spread_of(cpu)}};
}

json advice_of(const std::string &command, const json &rows) {
  json advice = json::array();
  if (rows.empty())
    advice.push_back(command +
                     " called no level 3 of a shared BLAS. A BLAS that is linked statically, or whose functions are "
                     "looked up in one library (dlsym on a "
                     "handle: ctypes, cffi, Java), is not reached");
  for (const json &row : rows) {
    const std::string routine = row["routine"];
    const long long slower = row["calls"].value("the model says CPU", 0LL), k = row["k"].get<long long>();
    if (slower > 0 && k > 0 && 4 * k <= std::min(row["m"].get<long long>(), row["n"].get<long long>()))
      advice.push_back(std::to_string(slower) + " calls of " + routine + " up to " + shape_of(row) +
                       " stayed on the CPU, since C would cross the link for a small k: raise the program's block size "
                       "(NB), if it has one");
  }
  return advice;
}

std::string padded(const std::string &text, std::size_t width, bool left = false) {
  const std::string space(text.size() < width ? width - text.size() : 0, ' ');
  return left ? text + space : space + text;
}

// Seconds that the other side would have taken, by the model: of rows whose calls were all on one side.
std::string other_side_of(const json &row) {
  const long long on_device = row["calls"].value("device", 0LL);
  const double seconds =
      on_device == 0 ? row["predicted_device_seconds"].get<double>() : row["predicted_cpu_seconds"].get<double>();
  return (on_device == 0 || on_device == calls_of(row)) && seconds > 0 ? format_fixed(seconds, 4) : "-";
}

std::string reasons_text(const json &calls) {
  std::string text;
  for (const auto &[reason, count] : calls.items())
    if (reason != "device")
      text += (text.empty() ? "  " : ", ") + reason + " " + std::to_string(count.get<long long>());
  return text;
}

}  // namespace

std::vector<json> blas_reports_in(const std::filesystem::path &folder) {
  std::vector<json> reports;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    json report = json::parse(file, nullptr, false);
    if (report.is_discarded() || !report.is_object() || !report.contains("rows"))
      throw failure(
          exit_code::failed,
          entry.path().string() + ": no report of the drop-in BLAS: was the process killed while it wrote it?");
    reports.push_back(std::move(report));
  }
  std::sort(reports.begin(), reports.end(), [](const json &a, const json &b) { return a["pid"] < b["pid"]; });
  return reports;
}

json merged_blas_reports(const std::string &command, const std::vector<json> &reports) {
  json all = {{"command", command}, {"processes", reports.size()}};
  std::map<std::string, std::string> cpu_blas;
  std::set<std::string> devices;
  unsigned long long limit = 0;
  int threads = 0;
  for (const json &report : reports) {
    for (const auto &[name, path] : report["cpu_blas"].items())
      if (std::string &known = cpu_blas[name]; known.empty()) known = path;
    if (!report["device"].get<std::string>().empty()) devices.insert(report["device"].get<std::string>());
    limit = std::max(limit, report["memory_limit"].get<unsigned long long>());
    threads = std::max(threads, report["blas_threads"].get<int>());
  }
  all["devices"] = devices;
  all["memory_limit"] = limit;
  all["blas_threads"] = threads;
  all["cpu_blas"] = cpu_blas;
  all["residency"] = merged_residency(reports);
  all["rows"] = merged_rows(reports);
  all["ranks"] = ranks_of(reports);
  all["advice"] = advice_of(command, all["rows"]);
  return all;
}

std::string text_of_blas_report(const json &merged) {
  std::string text = "streamgemm run: " + merged["command"].get<std::string>() +
                     "; processes with calls of level 3: " + std::to_string(merged["processes"].get<int>()) +
                     "; device: ";
  std::string devices;
  for (const json &device : merged["devices"]) devices += (devices.empty() ? "" : ", ") + device.get<std::string>();
  text += devices.empty() ? "none opened" : devices;
  if (const int threads = merged["blas_threads"]; threads > 0)
    text += "; threads of the CPU BLAS: " + std::to_string(threads);
  if (const double limit = merged["memory_limit"]; limit > 0)
    text += "; device memory of a process: at most " + format_bytes(limit);
  text += "\n";
  for (const auto &[name, path] : merged["cpu_blas"].items())
    if (!path.get<std::string>().empty()) text += "CPU BLAS of " + name + ": " + path.get<std::string>() + "\n";
  if (!merged["rows"].empty())
    text += padded("routine", 9, true) + padded("up to", 20, true) + padded("calls", 9) + padded("device", 9) +
            padded("Gflop", 11) + padded("device s", 11) + padded("CPU s", 11) + padded("other s", 11) +
            padded("up", 10) + padded("down", 10) + "  on the CPU because\n";
  std::size_t shown = 0;
  for (const json &row : merged["rows"]) {
    if (shown++ == rows_shown) break;
    text += padded(row["routine"], 9, true) + padded(shape_of(row), 20, true) +
            padded(std::to_string(calls_of(row)), 9) + padded(std::to_string(row["calls"].value("device", 0LL)), 9) +
            padded(format_fixed(row["gflop"], 3), 11) + padded(format_fixed(row["device_seconds"], 4), 11) +
            padded(format_fixed(row["cpu_seconds"], 4), 11) + padded(other_side_of(row), 11) +
            padded(format_bytes(row["bytes_in"]), 10) + padded(format_bytes(row["bytes_out"]), 10) +
            reasons_text(row["calls"]) + "\n";
  }
  if (merged["rows"].size() > rows_shown)
    text += "and " + std::to_string(merged["rows"].size() - rows_shown) + " rows of less time: --json shows all\n";
  if (const json &ranks = merged["ranks"]; !ranks.is_null())
    for (const char *side : {"device_seconds", "cpu_seconds"})
      text += std::to_string(ranks["count"].get<int>()) + " ranks, " + side + ": least " +
              format_fixed(ranks[side]["min"], 3) + ", median " + format_fixed(ranks[side]["median"], 3) + ", most " +
              format_fixed(ranks[side]["max"], 3) + "\n";
  text += text_of_residency(merged["residency"]);
  for (const json &advice : merged["advice"]) text += advice.get<std::string>() + "\n";
  return text;
}

}  // namespace sg::cli
