// SPDX-License-Identifier: Apache-2.0
// A record as a report shows it: its rows by case, each beside this library, its baseline and its bound.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "records.hpp"

namespace sg::cli {

struct summary_row {
  bench_row row;
  std::optional<double> ratio;              // its seconds by this library's: above 1, this library is faster
  std::optional<double> ratio_to_baseline;  // its seconds by the baseline's: below 1, it is faster
  std::optional<double> ratio_to_bound;     // not of a part of the work alone
};

struct summary_case {
  std::string name;
  std::vector<summary_row> rows;
  double bound_seconds() const { return rows.front().row.bound_seconds; }
  const std::string &baseline() const { return rows.front().row.baseline; }
};

struct bench_summary {
  bench_record record;  // without its rows
  std::vector<summary_case> cases;
};

using report_part = std::variant<bench_summary, comparison_record>;

// Cases in the order in which they come first: a script may have added rows at the end.
bench_summary summary_of(bench_record record);
report_part load_report_part(const std::string &path);

json to_json(const bench_summary &summary);
json to_json(const comparison_record &comparison);

// Name and value of what identifies a part: device, driver, commit, command, date, file.
using facts = std::vector<std::pair<std::string, std::string>>;
facts facts_of(const bench_summary &summary);
facts facts_of(const comparison_record &comparison);
std::string title_of(const bench_summary &summary);
std::string title_of(const comparison_record &comparison);

// The ratios of a comparison, or of a summary's variants, under one name, with their geometric mean.
struct ratio_group {
  std::string name;
  std::vector<double> ratios;
  double mean() const;
};
// By variant, of those in several cases; the fastest first.
std::vector<ratio_group> ratios_by_variant(const bench_summary &summary);
std::vector<ratio_group> ratios_by_suite(const comparison_record &comparison);

// The columns that text, Markdown and HTML share.
std::string rate_of(const bench_row &row);                  // "" without operations
std::string each_of(const bench_row &row);                  // seconds for each of several GEMMs; "" for one
std::string text_of(const std::string &key, double value);  // of a further key: a time, a rate or a number
std::string more_of(const bench_row &row);                  // further keys
std::string percent_of_bound(const summary_row &row);
std::string ratio_text(const std::optional<double> &ratio);
std::string interval_text(const compared_row &row);

std::string report_text(const std::vector<report_part> &parts);
std::string report_markdown(const std::vector<report_part> &parts);
std::string report_html(const std::vector<report_part> &parts);

}  // namespace sg::cli
