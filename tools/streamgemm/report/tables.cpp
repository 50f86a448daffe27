// SPDX-License-Identifier: Apache-2.0
// Reports as text for a terminal and as Markdown.
#include <cstdio>

#include "../format.hpp"
#include "summary.hpp"

namespace sg::cli {

namespace {

// In columns of these widths; the last one is as wide as its text.
std::string columns_of(const std::vector<std::pair<std::string, int>> &cells) {
  std::string line;
  for (const auto &[text, width] : cells) {
    char cell[512];
    std::snprintf(cell, sizeof cell, "%*s", width, text.c_str());
    line += "  " + std::string(cell);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string prefixed(const char *word, const std::string &text) { return text.empty() ? "" : word + (" " + text); }

std::string terminal_text(const bench_summary &summary) {
  const bench_record &record = summary.record;
  std::string all = "suite " + record.suite + ", commit " + record.commit + ", " + record.date + "\n" +
                    record.device->dump() + "\n" + (record.command.empty() ? "" : record.command + "\n") +
                    "ratio: a variant's time by StreamGEMM's; above 1, StreamGEMM is faster\n";
  for (const summary_case &one : summary.cases) {
    all += "\n" + one.name + "\n";
    for (const summary_row &x : one.rows)
      all += columns_of({{x.row.variant, -42},
                         {format_seconds(x.row.seconds), 10},
                         {rate_of(x.row), 14},
                         {prefixed("ratio", ratio_text(x.ratio)), -12},
                         {prefixed("to baseline", ratio_text(x.ratio_to_baseline)), x.ratio_to_baseline ? -18 : 0},
                         {prefixed("to bound", ratio_text(x.ratio_to_bound)), 0}});
  }
  return all;
}

std::string terminal_text(const comparison_record &comparison) {
  std::string all = "commit " + comparison.b_commit + " beside " + comparison.a_commit + ", " + comparison.date + "\n" +
                    comparison.device + "\n" + comparison.command + "\n" +
                    "ratio: the time of the second by that of the first\n";
  std::string before;
  for (const compared_row &x : comparison.rows) {
    const std::string heading = "\n" + x.suite + ": " + x.name + "\n";
    if (heading != before) all += heading;
    before = heading;
    all += columns_of({{x.variant, -42},
                       {format_seconds(x.a_seconds), 10},
                       {format_seconds(x.b_seconds), 10},
                       {format_fixed(x.ratio, 3), 7},
                       {interval_text(x), -16},
                       {x.verdict, 0}});
  }
  all += "\n";
  for (const ratio_group &group : ratios_by_suite(comparison))
    all += group.name + ": geometric mean of " + std::to_string(group.ratios.size()) + " ratios " +
           format_fixed(group.mean(), 3) + "\n";
  return all;
}

std::string cell_text(const std::string &text) {
  std::string all;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '*' || c == '_' || c == '`' || c == '<' || c == '[') all += '\\';
    all += c == '\n' ? ' ' : c;
  }
  return all;
}

class markdown_table {
 public:
  explicit markdown_table(const std::vector<std::string> &heads) {
    row(heads);
    for (std::size_t i = 0; i < heads.size(); ++i) text_ += "|---";
    text_ += "|\n";
  }
  void row(const std::vector<std::string> &cells) {
    text_ += "|";
    for (const std::string &cell : cells) text_ += (cell.empty() ? " " : " " + cell_text(cell) + " ") + "|";
    text_ += "\n";
  }
  std::string text() const { return "\n" + text_; }

 private:
  std::string text_;
};

std::string markdown_heading(const std::string &title, const facts &known) {
  std::string all = "\n## " + title + "\n\n";
  for (const auto &[name, value] : known)
    if (name != "Properties")
      all += "- " + name + ": " + (name == "Command" ? "`" + value + "`" : cell_text(value)) + "\n";
  return all;
}

std::string markdown_of(const bench_summary &summary) {
  bool baseline = false, bound = false, each = false;
  for (const summary_case &one : summary.cases)
    for (const summary_row &x : one.rows) {
      baseline |= x.ratio_to_baseline.has_value();
      bound |= x.ratio_to_bound.has_value();
      each |= x.row.products > 1;
    }
  std::vector<std::string> heads = {"case", "variant", "time", "least to largest", "rate", "ratio to streamgemm"};
  if (each) heads.push_back("each");
  if (baseline) heads.push_back("ratio to baseline");
  if (bound) heads.push_back("of the bound");
  markdown_table table(heads);
  for (const summary_case &one : summary.cases)
    for (const summary_row &x : one.rows) {
      std::vector<std::string> cells = {one.name,
                                        x.row.variant + (x.row.variant == one.baseline() ? " (baseline)" : ""),
                                        format_seconds(x.row.seconds),
                                        format_seconds(x.row.min) + " to " + format_seconds(x.row.max),
                                        rate_of(x.row),
                                        ratio_text(x.ratio)};
      if (each) cells.push_back(each_of(x.row));
      if (baseline) cells.push_back(ratio_text(x.ratio_to_baseline));
      if (bound) cells.push_back(percent_of_bound(x));
      table.row(cells);
    }
  return markdown_heading(title_of(summary), facts_of(summary)) + table.text();
}

std::string markdown_of(const comparison_record &comparison) {
  markdown_table means({"suite", "rows", "geometric mean of the ratios"});
  for (const ratio_group &group : ratios_by_suite(comparison))
    means.row({group.name, std::to_string(group.ratios.size()), format_fixed(group.mean(), 3)});
  markdown_table table({"suite", "case", "variant", "A", "B", "ratio B / A", "interval", "verdict"});
  for (const compared_row &x : comparison.rows)
    table.row({x.suite, x.name, x.variant, format_seconds(x.a_seconds), format_seconds(x.b_seconds),
               format_fixed(x.ratio, 3), interval_text(x), x.verdict});
  return markdown_heading(title_of(comparison), facts_of(comparison)) + means.text() + table.text();
}

}  // namespace

std::string report_text(const std::vector<report_part> &parts) {
  std::string all;
  for (const report_part &part : parts)
    all += (all.empty() ? "" : "\n\n") + std::visit([](const auto &x) { return terminal_text(x); }, part);
  return all;
}

std::string report_markdown(const std::vector<report_part> &parts) {
  std::string all =
      "# StreamGEMM benchmarks\n\nRatios are of times: a variant's by StreamGEMM's, or by its baseline's.\n";
  for (const report_part &part : parts) all += std::visit([](const auto &x) { return markdown_of(x); }, part);
  return all;
}

}  // namespace sg::cli
