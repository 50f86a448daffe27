// SPDX-License-Identifier: Apache-2.0
// streamgemm explain: the figures and the advice of a trace in JSON.
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "outcome.hpp"
#include "verbs.hpp"

namespace sg::cli {

namespace {

struct explain_arguments {
  std::string trace;
  bool json = false;
};

json content_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw failure(exit_code::usage, path + ": no such file or not readable");
  json all = json::parse(file, nullptr, false);
  if (all.is_discarded() || !all.is_object() || !all.contains("otherData") ||
      all["otherData"].value("producer", "") != "StreamGEMM")
    throw failure(exit_code::usage, path + ": no trace in JSON of this library (--trace FILE.json)");
  return std::move(all["otherData"]);
}

void print_context(const json &of) {
  const double span = of.value("span_seconds", 0.0), compute = of.value("compute_seconds", 0.0);
  std::printf("%s: %lld jobs, %lld commands in %.3f ms\n", of.value("device", "").c_str(), of.value("jobs", 0LL),
              of.value("commands", 0LL), span * 1e3);
  if (span <= 0) return;
  std::printf(
      "  arithmetic in %.1f%% of the time, transfers in %.1f%%, %.1f%% of them hidden; %.2f commands at a time\n",
      100 * compute / span, 100 * of.value("transfer_seconds", 0.0) / span, 100 * of.value("overlap_efficiency", 0.0),
      of.value("parallelism", 0.0));
  std::printf("  without arithmetic:");
  for (const auto &[cause, seconds] : of.at("idle_seconds").items())
    if (seconds.get<double>() > 0) std::printf(" %s %.1f%%", cause.c_str(), 100 * seconds.get<double>() / span);
  std::printf("\n");
}

void run(const explain_arguments &given) {
  const json found = content_of(given.trace);
  if (given.json) return print_json(found);
  for (const json &each : found.at("contexts")) print_context(each);
  if (found.value("dropped_events", 0LL) > 0)
    std::printf("%lld events were dropped\n", found.value("dropped_events", 0LL));
  for (const json &each : found.at("advice"))
    std::printf("\n%s\n  gain %.3f ms by the model; %s\n", each.value("title", "").c_str(),
                each.value("gain_seconds", 0.0) * 1e3, each.value("evidence", "").c_str());
  if (found.at("advice").empty()) std::printf("\nno advice: nothing that was tried on the model gains 3%%\n");
}

}  // namespace

void add_explain(CLI::App &app) {
  auto given = std::make_shared<explain_arguments>();
  CLI::App *verb = app.add_subcommand("explain", "Say what a trace shows and what to change");
  verb->add_option("TRACE", given->trace, "A trace in JSON, by --trace or SG_TRACE")->required();
  verb->add_flag("--json", given->json, "Print JSON");
  verb->footer("Example: streamgemm gemm a.npy b.npy --trace run.json && streamgemm explain run.json");
  verb->callback([given] { run(*given); });
}

}  // namespace sg::cli
