// SPDX-License-Identifier: Apache-2.0
#include "records.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "../outcome.hpp"

namespace sg::cli {

namespace {

[[noreturn]] void refuse_record(const std::string &path, const std::string &why) {
  throw failure(exit_code::usage, path + ": " + why);
}

// The values of one row or record, which must outlive it; each error names the file and the place in it.
class reader {
 public:
  reader(const json &from, std::string path, std::string place)
      : from_(from), path_(std::move(path)), place_(std::move(place)) {
    if (!from_.is_object()) refuse_record(path_, place_ + "is not an object");
  }

  std::string text(const char *key) const {
    const auto it = from_.find(key);
    if (it == from_.end() || !it->is_string()) refuse_record(path_, place_ + "'" + key + "' is missing or no text");
    return it->get<std::string>();
  }
  std::string text_or(const char *key, const std::string &otherwise) const {
    return from_.contains(key) && !from_.at(key).is_null() ? text(key) : otherwise;
  }
  double number(const char *key) const {
    const auto it = from_.find(key);
    if (it == from_.end() || !it->is_number()) refuse_record(path_, place_ + "'" + key + "' is missing or no number");
    return it->get<double>();
  }
  double number_or(const char *key, double otherwise) const {
    return from_.contains(key) && !from_.at(key).is_null() ? number(key) : otherwise;
  }
  double seconds(const char *key) const {
    const double value = number(key);
    if (!(value > 0)) refuse_record(path_, place_ + "'" + key + "' is " + from_.at(key).dump() + ", which is no time");
    return value;
  }
  int count_or(const char *key, int otherwise) const {
    const double value = number_or(key, otherwise);
    if (!(value >= 0 && value <= 1e9)) refuse_record(path_, place_ + "'" + key + "' is " + from_.at(key).dump());
    return int(value);
  }
  std::vector<double> all_seconds(const char *key) const {
    std::vector<double> all;
    if (!from_.contains(key)) return all;
    if (!from_.at(key).is_array()) refuse_record(path_, place_ + "'" + key + "' is no array");
    for (const json &each : from_.at(key)) {
      if (!each.is_number() || !(each.get<double>() > 0))
        refuse_record(path_, place_ + "'" + key + "' has " + each.dump() + ", which is no time");
      all.push_back(each.get<double>());
    }
    return all;
  }

 private:
  const json &from_;
  std::string path_, place_;
};

std::string place_of(std::size_t row) { return "row " + std::to_string(row) + ": "; }

const json &row_array(const std::string &path, const json &content) {
  if (!content.contains("rows") || !content.at("rows").is_array()) refuse_record(path, "has no array 'rows'");
  return content.at("rows");
}

bench_row bench_row_of(const json &from, const reader &in) {
  bench_row row;
  row.name = in.text("case");
  row.variant = in.text("variant");
  row.seconds = in.seconds("seconds");
  row.samples = in.count_or("samples", 1);
  row.min = in.number_or("min", row.seconds);
  row.max = in.number_or("max", row.seconds);
  row.all = in.all_seconds("all_seconds");
  row.flops = in.number_or("flops", 0);
  row.bytes_in = in.number_or("bytes_in", 0);
  row.bytes_out = in.number_or("bytes_out", 0);
  row.bound_seconds = in.number_or("bound_seconds", 0);
  row.products = in.count_or("products", 1);
  row.baseline = in.text_or("baseline", "");
  row.part = from.contains("part") && from.at("part") == true;
  for (const auto &[key, value] : from.items()) {
    static const char *const known[] = {"seconds",  "samples",   "min",           "max",     "flops",
                                        "bytes_in", "bytes_out", "bound_seconds", "products"};
    if (value.is_number() && std::find(std::begin(known), std::end(known), key) == std::end(known))
      row.more.emplace_back(key, value.get<double>());
  }
  return row;
}

}  // namespace

json read_json(const std::string &path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse_record(path, "is a folder");
  std::ifstream in(path);
  if (!in) refuse_record(path, "cannot be opened");
  try {
    // Texts of values are made by recursion.
    constexpr int most_levels = 100;
    return json::parse(in, [&](int depth, json::parse_event_t, json &) {
      if (depth > most_levels) refuse_record(path, "is nested in more than " + std::to_string(most_levels) + " levels");
      return true;
    });
  } catch (const json::exception &stop) {
    refuse_record(path, std::string("is not JSON: ") + stop.what());
  }
}

bench_record bench_record_of(const std::string &path, const json &content) {
  if (!content.is_object() || content.value("schema", json()) != bench_schema)
    refuse_record(path, std::string("is not a record of the schema ") + bench_schema);
  const reader in(content, path, "");
  bench_record record{.path = path,
                      .suite = in.text_or("suite", ""),
                      .version = in.text_or("version", ""),
                      .commit = in.text_or("commit", ""),
                      .date = in.text_or("date", ""),
                      .command = in.text_or("command", ""),
                      .device = std::make_shared<const json>(content.value("device", json::object())),
                      .rows = {}};
  if (!record.device->is_object()) refuse_record(path, "'device' is no object");
  std::size_t index = 0;
  for (const json &row : row_array(path, content))
    record.rows.push_back(bench_row_of(row, {row, path, place_of(index++)}));
  return record;
}

comparison_record comparison_record_of(const std::string &path, const json &content) {
  const reader in(content, path, "");
  const bool older = content.value("schema", json()) == before_after_schema;
  comparison_record record{.path = path,
                           .a_commit = in.text_or(older ? "before" : "a_commit", ""),
                           .b_commit = in.text_or(older ? "after" : "b_commit", ""),
                           .date = in.text_or("date", ""),
                           .device = in.text_or("device", ""),
                           .command = in.text_or("command", ""),
                           .rows = {}};
  std::size_t index = 0;
  for (const json &each : row_array(path, content)) {
    const std::string place = place_of(index++);
    const reader row(each, path, place);
    compared_row one{
        .suite = row.text("suite"), .name = row.text("case"), .variant = row.text("variant"), .verdict = {}};
    one.ratio = row.seconds("ratio");
    if (older) {
      static const json nothing;
      const auto side_of = [&](const char *name) -> const json & {
        return each.contains(name) ? each.at(name) : nothing;
      };
      const reader before(side_of("before"), path, place), after(side_of("after"), path, place);
      one.a_seconds = before.seconds("seconds"), one.a_samples = before.count_or("turns", 1);
      one.b_seconds = after.seconds("seconds"), one.b_samples = after.count_or("turns", 1);
      one.verdict = each.value("slower", false) ? "slower" : "";
    } else {
      one.a_seconds = row.seconds("a_seconds"), one.a_samples = row.count_or("a_samples", 1);
      one.b_seconds = row.seconds("b_seconds"), one.b_samples = row.count_or("b_samples", 1);
      one.low = row.number_or("low", 0), one.high = row.number_or("high", 0);
      one.verdict = row.text("verdict");
    }
    record.rows.push_back(std::move(one));
  }
  return record;
}

std::vector<bench_record> load_bench_records(const std::string &path) {
  std::vector<std::string> files = {path};
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) {
    files.clear();
    for (const auto &entry : std::filesystem::directory_iterator(path, failed))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    if (failed) refuse_record(path, failed.message());
    if (files.empty()) refuse_record(path, "has no file *.json");
    std::sort(files.begin(), files.end());
  }
  std::vector<bench_record> all;
  for (const std::string &file : files) all.push_back(bench_record_of(file, read_json(file)));
  return all;
}

std::string device_line(const json &device) {
  std::string line;
  const auto append = [&](const char *key, const char *prefix, const char *suffix) {
    const auto it = device.find(key);
    if (it == device.end()) return;
    const std::string value = it->is_string() ? it->get<std::string>() : it->dump();
    if (!value.empty() && line.find(value) == std::string::npos)
      line += (line.empty() ? "" : ", ") + (prefix + value) + suffix;
  };
  append("device", "", "");
  append("name", "", "");
  append("gpu", "", "");
  append("description", "", "");
  append("processor", "", "");
  append("cores", "", " cores");
  append("driver", "driver ", "");
  append("machine", "", "");
  return line;
}

}  // namespace sg::cli
