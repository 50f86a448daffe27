// SPDX-License-Identifier: Apache-2.0
#include "summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "../format.hpp"

namespace sg::cli {

bench_summary summary_of(bench_record record) {
  bench_summary summary;
  for (bench_row &row : record.rows) {
    auto its = std::find_if(summary.cases.begin(), summary.cases.end(),
                            [&](const summary_case &one) { return one.name == row.name; });
    if (its == summary.cases.end()) its = summary.cases.insert(its, {row.name, {}});
    its->rows.push_back({std::move(row), {}, {}, {}});
  }
  record.rows.clear();
  summary.record = std::move(record);
  for (summary_case &one : summary.cases) {
    const auto seconds_of = [&](const std::string &variant) {
      for (const summary_row &x : one.rows)
        if (x.row.variant == variant) return x.row.seconds;
      return 0.0;
    };
    const double own = seconds_of(own_variant);
    for (summary_row &x : one.rows) {
      const double baseline = x.row.baseline.empty() ? 0 : seconds_of(x.row.baseline);
      if (own > 0) x.ratio = x.row.seconds / own;
      if (baseline > 0) x.ratio_to_baseline = x.row.seconds / baseline;
      if (x.row.bound_seconds > 0 && !x.row.part) x.ratio_to_bound = x.row.seconds / x.row.bound_seconds;
    }
  }
  return summary;
}

report_part load_report_part(const std::string &path) {
  const json content = read_json(path);
  const json schema = content.is_object() ? content.value("schema", json()) : json();
  if (schema == comparison_schema || schema == before_after_schema) return comparison_record_of(path, content);
  return summary_of(bench_record_of(path, content));
}

static json number_or_null(const std::optional<double> &value) { return value ? json(*value) : json(); }

json to_json(const bench_summary &summary) {
  json cases = json::array();
  for (const summary_case &one : summary.cases) {
    json variants = json::array();
    for (const summary_row &x : one.rows) {
      const double bound = x.row.bound_seconds;
      variants.push_back({{"variant", x.row.variant},
                          {"seconds", x.row.seconds},
                          {"flops", x.row.flops},
                          {"bound_seconds", bound > 0 ? json(bound) : json()},
                          {"ratio", number_or_null(x.ratio)},
                          {"ratio_to_baseline", number_or_null(x.ratio_to_baseline)},
                          {"ratio_to_bound", number_or_null(x.ratio_to_bound)}});
    }
    cases.push_back({{"case", one.name}, {"baseline", one.baseline()}, {"variants", variants}});
  }
  const bench_record &record = summary.record;
  return {{"suite", record.suite},    {"commit", record.commit},   {"date", record.date},
          {"device", *record.device}, {"command", record.command}, {"cases", cases}};
}

json to_json(const comparison_record &comparison) {
  json means = json::object();
  for (const ratio_group &group : ratios_by_suite(comparison)) means[group.name] = group.mean();
  json rows = json::array();
  for (const compared_row &x : comparison.rows)
    rows.push_back({{"suite", x.suite},
                    {"case", x.name},
                    {"variant", x.variant},
                    {"ratio", x.ratio},
                    {"low", x.low > 0 ? json(x.low) : json()},
                    {"high", x.low > 0 ? json(x.high) : json()},
                    {"verdict", x.verdict}});
  return {{"a_commit", comparison.a_commit},
          {"b_commit", comparison.b_commit},
          {"date", comparison.date},
          {"device", comparison.device},
          {"command", comparison.command},
          {"mean_ratios", means},
          {"rows", rows}};
}

// "13000" is 13.0.
static std::string cuda_version(const std::string &number) {
  const int value = std::atoi(number.c_str());
  return std::to_string(value / 1000) + "." + std::to_string(value % 1000 / 10);
}

static std::string known(const std::string &value) { return value.empty() ? "not recorded" : value; }

facts facts_of(const bench_summary &summary) {
  const bench_record &record = summary.record;
  const auto text_of = [](const json &value) { return value.is_string() ? value.get<std::string>() : value.dump(); };
  std::string driver, properties;
  for (const auto &[key, value] : record.device->items()) {
    if (key == "driver") driver = text_of(value);
    if (key == "driver_cuda" && driver.empty()) driver = "CUDA " + cuda_version(text_of(value));
    properties += (properties.empty() ? "" : "; ") + key + " " + text_of(value);
  }
  return {{"Device", known(device_line(*record.device))},
          {"Driver", known(driver)},
          {"Commit", known(record.commit) + (record.version.empty() ? "" : " (version " + record.version + ")")},
          {"Command", known(record.command)},
          {"Date", known(record.date)},
          {"File", record.path},
          {"Properties", known(properties)}};
}

facts facts_of(const comparison_record &comparison) {
  return {{"Device", known(comparison.device)},     {"Commit A", known(comparison.a_commit)},
          {"Commit B", known(comparison.b_commit)}, {"Command", known(comparison.command)},
          {"Date", known(comparison.date)},         {"File", comparison.path}};
}

std::string title_of(const bench_summary &summary) { return "Suite " + summary.record.suite; }

std::string title_of(const comparison_record &comparison) {
  std::string suites;
  for (const ratio_group &group : ratios_by_suite(comparison)) suites += (suites.empty() ? "" : ", ") + group.name;
  return "Comparison: " + suites;
}

double ratio_group::mean() const {
  double sum = 0;
  for (const double each : ratios) sum += std::log(each);
  return ratios.empty() ? 1 : std::exp(sum / double(ratios.size()));
}

static void add_ratio(std::vector<ratio_group> &groups, const std::string &name, double ratio) {
  auto its = std::find_if(groups.begin(), groups.end(), [&](const ratio_group &x) { return x.name == name; });
  if (its == groups.end()) its = groups.insert(its, {name, {}});
  its->ratios.push_back(ratio);
}

std::vector<ratio_group> ratios_by_variant(const bench_summary &summary) {
  std::vector<ratio_group> groups;
  for (const summary_case &one : summary.cases)
    for (const summary_row &x : one.rows)
      if (x.ratio && x.row.variant != own_variant && !x.row.part) add_ratio(groups, x.row.variant, *x.ratio);
  std::erase_if(groups, [](const ratio_group &x) { return x.ratios.size() < 2; });
  std::stable_sort(groups.begin(), groups.end(),
                   [](const ratio_group &x, const ratio_group &y) { return x.mean() < y.mean(); });
  return groups;
}

std::vector<ratio_group> ratios_by_suite(const comparison_record &comparison) {
  std::vector<ratio_group> groups;
  for (const compared_row &x : comparison.rows) add_ratio(groups, x.suite, x.ratio);
  return groups;
}

std::string rate_of(const bench_row &row) {
  return row.flops > 0 ? format_rate(row.flops / row.seconds, "flop/s") : "";
}

std::string each_of(const bench_row &row) { return row.products > 1 ? format_seconds(row.seconds / row.products) : ""; }

std::string text_of(const std::string &key, double value) {
  if (key.ends_with("seconds") || key.starts_with("p9") || key == "sum_of_parts") return format_seconds(value);
  if (key.ends_with("flops")) return format_rate(value, "flop/s");
  char number[32];
  std::snprintf(number, sizeof number, "%.3g", value);
  return number;
}

std::string more_of(const bench_row &row) {
  std::string all;
  for (const auto &[key, value] : row.more) {
    std::string name = key.substr(0, key.rfind("_seconds"));
    std::replace(name.begin(), name.end(), '_', ' ');
    all += all.empty() ? "" : ", ";
    all.append(name).append(" ").append(text_of(key, value));
  }
  return all;
}

std::string percent_of_bound(const summary_row &row) {
  return row.ratio_to_bound ? format_fixed(100 / *row.ratio_to_bound, 1) + "%" : "";
}

std::string ratio_text(const std::optional<double> &ratio) {
  return ratio ? format_fixed(*ratio, *ratio < 10 ? 3 : *ratio < 100 ? 2 : 1) : "";
}

std::string interval_text(const compared_row &row) {
  return row.low > 0 ? "[" + format_fixed(row.low, 3) + ", " + format_fixed(row.high, 3) + "]" : "";
}

}  // namespace sg::cli
