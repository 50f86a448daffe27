// SPDX-License-Identifier: Apache-2.0
// A report as one page of HTML, well-formed XML too, with everything in it.
#include <algorithm>
#include <cmath>

#include "../format.hpp"
#include "plots.hpp"

namespace sg::cli {

namespace {

constexpr const char *style_sheet = R"(
:root { --text: #1a202c; --faint: #64748b; --line: #dbe2ea; --back: #ffffff; --own: #2563eb; --peer: #94a3b8;
  --bound: #dc2626; --slower: #dc2626; --faster: #15803d; --spread: #1e293b; --s0: #ea580c; --s1: #7c3aed; --s2: #0f766e;
  --s3: #be185d; --s4: #4d7c0f; }
@media (prefers-color-scheme: dark) { :root { --text: #e2e8f0; --faint: #94a3b8; --line: #334155; --back: #0f172a;
  --own: #60a5fa; --peer: #64748b; --bound: #f87171; --slower: #f87171; --faster: #4ade80; --spread: #f1f5f9;
  --s0: #fb923c; --s1: #a78bfa; --s2: #2dd4bf; --s3: #f472b6; --s4: #a3e635; } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 2em auto; max-width: 1240px;
  padding: 0 1.5em; }
h1 { font-size: 1.7em; } h2 { margin-top: 2.2em; padding-top: .6em; border-top: 2px solid var(--line); }
h3 { margin: 1.6em 0 .4em; font-size: 1.05em; } p { max-width: 80ch; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15em 1.2em; margin: .6em 0 1em; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th { text-align: left; color: var(--faint); font-weight: 500; font-size: .9em; }
th, td { padding: .12em .8em .12em 0; border-bottom: 1px solid var(--line); white-space: nowrap; vertical-align: middle; }
.n { text-align: right; font-variant-numeric: tabular-nums; } .faint, .more { color: var(--faint); }
tr.mine td:first-child { font-weight: 600; } td svg, p svg { display: block; }
details { margin: .7em 0; } summary { cursor: pointer; font-weight: 600; }
svg .label { font: 12px system-ui, sans-serif; fill: var(--text); } .grid { stroke: var(--line); } .one { stroke: var(--faint); }
.bar { fill: var(--peer); } .bar.own { fill: var(--own); } .spread { stroke: var(--spread); stroke-width: 1.2; }
.bound { stroke: var(--bound); stroke-width: 1.5; stroke-dasharray: 4 2; }
.level { stroke: var(--own); stroke-width: 1.8; } .level.fine { stroke-dasharray: 2 3; }
.ratio { fill: var(--own); fill-opacity: .45; } .mean { stroke: var(--bound); stroke-width: 2; }
.path { fill: none; } .series { stroke-width: 1.8; }
.s0 { stroke: var(--s0); } .s1 { stroke: var(--s1); } .s2 { stroke: var(--s2); } .s3 { stroke: var(--s3); } .s4 { stroke: var(--s4); }
circle.s0 { fill: var(--s0); } circle.s1 { fill: var(--s1); } circle.s2 { fill: var(--s2); } circle.s3 { fill: var(--s3); }
circle.s4 { fill: var(--s4); } .interval { stroke-width: 2.5; stroke: var(--peer); }
.interval.slower { stroke: var(--slower); } .interval.faster { stroke: var(--faster); }
circle.slower { fill: var(--slower); } circle.faster { fill: var(--faster); } circle.other { fill: var(--faint); }
td.slower { color: var(--slower); font-weight: 600; } td.faster { color: var(--faster); font-weight: 600; }
@media print { body { max-width: none; } }
)";

std::string cell_of(const std::string &content, const char *style = "n") {
  return std::string("<td class=\"") + style + "\">" + content + "</td>";
}

std::string heads_of(const std::vector<std::string> &heads) {
  std::string all = "<thead><tr>";
  for (const std::string &head : heads) all += "<th>" + head + "</th>";
  return all + "</tr></thead>";
}

std::string html_heading(const std::string &title, const facts &known, std::size_t index) {
  std::string all = "<h2 id=\"part-" + std::to_string(index) + "\">" + escaped(title) + "</h2>\n<dl>";
  for (const auto &[name, value] : known) {
    const char *tag = name == "Command" ? "code" : "span";
    all += std::string("<dt>") + name + "</dt><dd><" + tag + (name == "Properties" ? " class=\"faint\">" : ">") +
           escaped(value) + "</" + tag + "></dd>";
  }
  return all + "</dl>\n";
}

// What the tables of a summary need columns for.
struct table_columns {
  bool rate = false, each = false, ratio = false, baseline = false, bound = false, more = false;

  explicit table_columns(const summary_case &one) {
    for (const summary_row &x : one.rows) {
      rate |= x.row.flops > 0;
      each |= x.row.products > 1;
      ratio |= x.ratio.has_value();
      baseline |= x.ratio_to_baseline.has_value();
      bound |= x.ratio_to_bound.has_value();
      more |= !x.row.more.empty();
    }
  }
};

std::string case_table(const summary_case &one) {
  const table_columns has(one);
  std::vector<std::string> heads = {"variant", "", "time"};
  if (has.rate) heads.push_back("rate");
  if (has.each) heads.push_back("each");
  if (has.ratio) heads.push_back("/ streamgemm");
  if (has.baseline) heads.push_back("/ baseline");
  if (has.bound) heads.push_back("of the bound");
  if (has.more) heads.push_back("further");
  double longest = one.bound_seconds();
  for (const summary_row &x : one.rows) longest = std::max(longest, x.row.seconds * 1.06);
  std::string all = "<div class=\"wide\"><table>" + heads_of(heads) + "<tbody>\n";
  for (const summary_row &x : one.rows) {
    const bool mine = x.row.variant == own_variant;
    const bool ours = x.row.variant.starts_with(own_variant);
    all += std::string("<tr") + (mine ? " class=\"mine\">" : ">") + "<td>" + escaped(x.row.variant) +
           (x.row.variant == one.baseline() ? " <span class=\"faint\">(baseline)</span>" : "") + "</td><td>" +
           bar_plot(x, longest, ours ? "bar own" : "bar") + "</td>" + cell_of(format_seconds(x.row.seconds));
    if (has.rate) all += cell_of(rate_of(x.row));
    if (has.each) all += cell_of(each_of(x.row));
    if (has.ratio) all += cell_of(ratio_text(x.ratio));
    if (has.baseline) all += cell_of(ratio_text(x.ratio_to_baseline));
    if (has.bound) all += cell_of(percent_of_bound(x));
    if (has.more) all += cell_of(escaped(more_of(x.row)), "more");
    all += "</tr>\n";
  }
  return all + "</tbody></table></div>\n";
}

constexpr std::size_t most_open_cases = 30;  // of more, each can be opened

std::string body_of(const bench_summary &summary, std::size_t index) {
  std::string all = html_heading(title_of(summary), facts_of(summary), index);
  if (const auto groups = ratios_by_variant(summary); !groups.empty())
    all +=
        "<h3>All cases: a variant's time / StreamGEMM's</h3>\n<p class=\"faint\">Right of 1, StreamGEMM is faster. "
        "A dot is a case, the red mark the geometric mean.</p>\n<div class=\"wide\">" +
        ratios_plot(groups) + "</div>\n";
  const bool open = summary.cases.size() <= most_open_cases;
  for (const summary_case &one : summary.cases) {
    const double bound = one.bound_seconds();
    const std::string title =
        escaped(one.name) + (bound > 0 ? " <span class=\"faint\">bound " + format_seconds(bound) + "</span>" : "");
    const std::string plot = streams_plot(one);
    const std::string content = (plot.empty() ? "" : "<div class=\"wide\">" + plot + "</div>\n") + case_table(one);
    all.append(open ? "<h3>" : "<details><summary>").append(title).append(open ? "</h3>\n" : "</summary>\n");
    all.append(content).append(open ? "" : "</details>\n");
  }
  return all;
}

std::string body_of(const comparison_record &comparison, std::size_t index) {
  std::string all =
      html_heading(title_of(comparison), facts_of(comparison), index) +
      "<h3>All rows: B's time / A's</h3>\n<p class=\"faint\">Right of 1, B is slower. A dot is a row, the red mark "
      "the geometric mean.</p>\n<div class=\"wide\">" +
      ratios_plot(ratios_by_suite(comparison)) + "</div>\n";
  const bool several = ratios_by_suite(comparison).size() > 1;
  double most = 1.05;
  for (const compared_row &x : comparison.rows) most = std::max({most, x.ratio, 1 / x.ratio});
  most = std::min(most * 1.1, 4.0);
  all += "<h3>Each row</h3>\n<div class=\"wide\"><table>" +
         heads_of({"case", "variant", "A", "B", "B / A",
                   "1 / " + format_fixed(most, 2) + " to " + format_fixed(most, 2), "interval", "verdict"}) +
         "<tbody>\n";
  for (const compared_row &x : comparison.rows) {
    const char *style = x.verdict == "slower" ? "slower" : x.verdict == "faster" ? "faster" : "faint";
    all += std::string("<tr><td>") + (several ? "<span class=\"faint\">" + escaped(x.suite) + "</span> " : "") +
           escaped(x.name) + "</td>" + cell_of(escaped(x.variant), "variant") + cell_of(format_seconds(x.a_seconds)) +
           cell_of(format_seconds(x.b_seconds)) + cell_of(format_fixed(x.ratio, 3)) + "<td>" + interval_plot(x, most) +
           "</td>" + cell_of(interval_text(x)) + cell_of(escaped(x.verdict), style) + "</tr>\n";
  }
  return all + "</tbody></table></div>\n";
}

}  // namespace

std::string report_html(const std::vector<report_part> &parts) {
  std::string contents, body;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [title, known] = std::visit([](const auto &x) { return std::pair{title_of(x), facts_of(x)}; }, parts[i]);
    contents += "<li><a href=\"#part-" + std::to_string(i) + "\">" + escaped(title) + "</a> <span class=\"faint\">" +
                escaped(known.front().second) + "</span></li>";
    body += std::visit([&](const auto &x) { return body_of(x, i); }, parts[i]);
  }
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"/><title>StreamGEMM benchmarks</title>"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/><style>" +
         std::string(style_sheet) +
         "</style></head>\n<body>\n<h1>StreamGEMM benchmarks</h1>\n<p>Times are medians. A bar's line reaches from the "
         "least to the "
         "largest sample; the dashed red line is the bound, the least time that the device's rates allow. Bars of this "
         "library are blue.</p>\n" +
         (parts.size() > 1 ? "<ul>" + contents + "</ul>\n" : "") + body + "</body>\n</html>\n";
}

}  // namespace sg::cli
