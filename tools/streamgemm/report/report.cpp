// SPDX-License-Identifier: Apache-2.0
// streamgemm report: records of benchmarks as text, JSON, Markdown and a page with plots.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "../outcome.hpp"
#include "summary.hpp"

namespace sg::cli {

namespace {

struct report_arguments {
  std::vector<std::string> records;
  std::string output, html, markdown;
  bool json = false;
};

void write_report(const std::string &path, const std::string &text) {
  std::ofstream out(path);
  out << text;
  if (!out.flush()) throw failure(exit_code::failed, path + ": cannot be written");
}

std::string extension_of(const std::string &path) { return std::filesystem::path(path).extension(); }
bool is_html(const std::string &path) { return extension_of(path) == ".html" || extension_of(path) == ".htm"; }

void report(report_arguments given) {
  if (!given.output.empty()) (is_html(given.output) ? given.html : given.markdown) = given.output;
  std::vector<report_part> parts;
  for (const std::string &path : given.records) parts.push_back(load_report_part(path));
  if (!given.html.empty()) write_report(given.html, report_html(parts));
  if (!given.markdown.empty()) write_report(given.markdown, report_markdown(parts));
  if (given.json) {
    json all = json::array();
    for (const report_part &part : parts) all.push_back(std::visit([](const auto &x) { return to_json(x); }, part));
    print_json(all.size() == 1 ? all[0] : all);
  } else if (given.html.empty() && given.markdown.empty()) {
    const std::string text = report_text(parts);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}

}  // namespace

void add_report(CLI::App &app) {
  auto given = std::make_shared<report_arguments>();
  CLI::App *verb = app.add_subcommand("report", "Show benchmark records: ratios, tables, a page with plots");
  verb->add_option("RECORDS", given->records,
                   "Records that `streamgemm bench --json FILE` or `bench compare --json FILE` wrote")
      ->required();
  CLI::Option *html = verb->add_option("--html", given->html, "Write a page with plots, which needs no other file");
  CLI::Option *markdown = verb->add_option("--markdown", given->markdown, "Write tables in Markdown");
  verb->add_option("-o,--output", given->output, "Write the one or the other, by the name: .html, .md")
      ->excludes(html)
      ->excludes(markdown)
      ->check([](const std::string &name) {
        const bool known = is_html(name) || extension_of(name) == ".md" || extension_of(name) == ".markdown";
        return known ? std::string() : name + ": its format is unknown: .html or .md";
      });
  verb->add_flag("--json", given->json, "Print JSON: an object for one record, an array of them for several");
  verb->footer("Example: streamgemm report bench/results/*.json -o report.html");
  verb->callback([given] { report(*given); });
}

}  // namespace sg::cli
