// SPDX-License-Identifier: Apache-2.0
// streamgemm report: a benchmark record as ratios to this library.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>

#include "bench/record.hpp"
#include "format.hpp"
#include "outcome.hpp"
#include "verbs.hpp"

namespace sg::cli {

namespace {

json load_record(const std::string &path) {
  std::ifstream in(path);
  if (!in) throw failure(exit_code::usage, path + ": cannot be opened");
  json record = json::parse(in, nullptr, false);
  if (!record.is_object() || record.value("schema", json()) != bench_schema || !record.contains("rows"))
    throw failure(exit_code::usage, path + ": not a record of the schema " + bench_schema);
  return record;
}

// The rows by case, in the order in which cases come first (a script may have added rows at the end); ratio = a
// variant's seconds by this library's: above 1, this library is faster.
json summary_of(const json &record) {
  json cases = json::array();
  for (const json &row : record.at("rows")) {
    const std::string name = row.at("case");
    auto its = std::find_if(cases.begin(), cases.end(), [&](const json &one) { return one.at("case") == name; });
    if (its == cases.end()) {
      cases.push_back({{"case", name}, {"variants", json::array()}});
      its = cases.end() - 1;
    }
    (*its)["variants"].push_back({{"variant", row.at("variant").get<std::string>()},
                                  {"seconds", row.at("seconds").get<double>()},
                                  {"flops", row.at("flops").get<double>()},
                                  {"bound_seconds", row.at("bound_seconds")}});
  }
  for (json &one : cases) {
    double own = 0;
    for (const json &variant : one["variants"])
      if (variant["variant"] == own_variant) own = variant["seconds"];
    for (json &variant : one["variants"]) {
      const double seconds = variant["seconds"];
      variant["ratio"] = own > 0 ? json(seconds / own) : json();
      variant["ratio_to_bound"] =
          variant["bound_seconds"].is_number() ? json(seconds / variant["bound_seconds"].get<double>()) : json();
    }
  }
  return {{"suite", record.value("suite", "")},
          {"commit", record.value("commit", "")},
          {"date", record.value("date", "")},
          {"device", record.value("device", json())},
          {"cases", cases}};
}

void print_text(const json &all) {
  std::printf("suite %s, commit %s, %s\n%s\n", all["suite"].get<std::string>().c_str(),
              all["commit"].get<std::string>().c_str(), all["date"].get<std::string>().c_str(),
              all["device"].dump().c_str());
  std::printf("ratio: a variant's time by StreamGEMM's; above 1, StreamGEMM is faster\n");
  for (const json &one : all["cases"]) {
    std::printf("\n%s\n", one["case"].get<std::string>().c_str());
    for (const json &variant : one["variants"]) {
      const double seconds = variant["seconds"];
      std::printf("  %-36s %10s %14s", variant["variant"].get<std::string>().c_str(), format_seconds(seconds).c_str(),
                  format_rate(variant["flops"].get<double>() / seconds, "flop/s").c_str());
      if (variant["ratio"].is_number()) std::printf("  ratio %s", format_fixed(variant["ratio"], 3).c_str());
      if (variant["ratio_to_bound"].is_number())
        std::printf("  to bound %s", format_fixed(variant["ratio_to_bound"], 3).c_str());
      std::printf("\n");
    }
  }
}

}  // namespace

void add_report(CLI::App &app) {
  struct options {
    std::string file;
    bool json = false;
  };
  auto given = std::make_shared<options>();
  CLI::App *verb = app.add_subcommand("report", "Print the ratios of a benchmark record");
  verb->add_option("FILE", given->file, "A record that `streamgemm bench --json FILE` wrote")->required();
  verb->add_flag("--json", given->json, "Print JSON");
  verb->callback([given] {
    const json record = load_record(given->file);
    try {
      const json all = summary_of(record);
      if (given->json)
        print_json(all);
      else
        print_text(all);
    } catch (const json::exception &stop) {
      throw failure(exit_code::usage, given->file + ": a row is malformed: " + stop.what());
    }
  });
}

}  // namespace sg::cli
