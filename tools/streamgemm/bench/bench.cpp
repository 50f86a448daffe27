// SPDX-License-Identifier: Apache-2.0
// streamgemm bench: runs a suite and writes its record.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>

#include "../format.hpp"
#include "../library.hpp"
#include "../progress.hpp"
#include "../report/summary.hpp"
#include "../style.hpp"
#include "../usage.hpp"
#include "../verbs.hpp"
#include "commit.hpp"
#include "drawn_cases.hpp"
#include "subverbs.hpp"
#include "suite.hpp"

namespace sg::cli {

namespace {

using suite_fn = void (*)(const suite_request &, suite_run &);

constexpr struct {
  const char *name;
  suite_fn run;
  const char *about;
} suites[] = {{"accuracy", run_accuracy_suite, "f32 GEMMs in each arithmetic: times and errors"},
              {"calls", run_calls_suite, "blocking GEMMs on the cpu, small ones first, beside CBLAS"},
              {"cpu", run_cpu_suite, "the cpu device beside OpenBLAS and oneDNN"},
              {"gpus", run_gpus_suite, "one GEMM from host memory on several GPUs, beside one"},
              {"graph", run_graph_suite, "recorded submissions replayed, beside separate ones"},
              {"heads", run_heads_suite, "the scores of attention, a submission each and in one call"},
              {"host", run_host_suite, "one GEMM from host memory to host memory"},
              {"outofcore", run_outofcore_suite, "a GEMM larger than the device memory that it may use"},
              {"overlap", run_overlap_suite, "copies in, GEMMs and copies out, in several orders and streams"},
              {"priority", run_priority_suite, "an urgent small GEMM beside a flood of large ones"},
              {"resident", run_resident_suite, "GEMMs with operands in device memory"},
              {"small", run_small_suite, "many small GEMMs, submitted in every way"},
              {"split", run_split_suite, "one GEMM, split over 1 to 16 streams"},
              {"streams", run_streams_suite, "one GEMM cut into panels, one for each stream"},
              {"submit", run_submit_suite, "processor time of one submission of each operation"}};

// Counts the cases of a suite, none of which it wants.
class counter : public suite_run {
 public:
  explicit counter(const suite_request &request) : request_(request) {}

  int count() const noexcept { return count_; }
  bool wants(const std::string &name) const override {
    count_ += name.find(request_.only) != std::string::npos;
    return false;
  }
  void run(const bench_case &) override {}
  void add(const std::vector<bench_row> &) override {}
  void note(const std::string &, json) override {}
  void leave_out(const std::string &, const std::string &) override {}

 private:
  const suite_request &request_;
  mutable int count_ = 0;
};

json to_json(const bench_row &row) {
  json all = {{"case", row.name},
              {"variant", row.variant},
              {"seconds", row.seconds},
              {"samples", row.samples},
              {"min", row.min},
              {"max", row.max},
              {"flops", row.flops},
              {"bytes_in", row.bytes_in},
              {"bytes_out", row.bytes_out},
              {"bound_seconds", row.bound_seconds > 0 ? json(row.bound_seconds) : json()}};
  if (!row.all.empty()) all["all_seconds"] = row.all;
  if (!row.baseline.empty()) all["baseline"] = row.baseline;
  if (row.part) all["part"] = true;
  if (row.products > 1) all["products"] = row.products;
  for (const auto &[key, value] : row.more) all[key] = value;
  return all;
}

// The version of NVIDIA's kernel module; "" without one.
std::string nvidia_driver() {
  std::ifstream in("/proc/driver/nvidia/version");
  for (std::string word; in >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return "";
}

// As Linux names it; "": it does not, as on ARM.
std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (const std::size_t colon = line.find(": "); colon != line.npos && line.starts_with("model name"))
      return line.substr(colon + 2);
  return "";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

// Measures each case as it comes, and prints its result.
class recorder : public suite_run {
 public:
  recorder(const suite_request &request, bool show) : request_(request), show_(show) {}

  bool wants(const std::string &name) const override {
    return name.find(request_.only) != std::string::npos && (done_ == 0 || !is_over_limit());
  }
  void note(const std::string &key, json value) override { device_[key] = std::move(value); }
  void leave_out(const std::string &name, const std::string &peer) override {
    left_out_.push_back({{"case", name}, {"variant", peer}});
    if (show_) std::printf("%s: left out: %s, which has no such type on this processor\n", name.c_str(), peer.c_str());
  }

  // Of this many cases in all; 0: unknown.
  void expect(int cases) { cases_ = cases; }

  void run(const bench_case &what) override {
    progress line(total() + "measuring " + what.name);
    line.elapsed();
    const measure_limits limits = request_.quick ? measure_limits{3, 3, 1, 0} : measure_limits{5, 25, request_.seconds};
    add(measure(what, limits, [&] { line.elapsed(); }));
    ++done_;
  }

  void add(const std::vector<bench_row> &rows) override {
    for (const bench_row &row : rows) rows_.push_back(to_json(row));
    if (show_) print(rows);
  }

  json record(const std::string &suite, const std::string &command) const {
    json device = device_;
    if (device.value("device", "cpu").starts_with("cpu")) device["processor"] = processor();
    if (device.value("device", "").starts_with("cuda") && !nvidia_driver().empty()) device["driver"] = nvidia_driver();
    json all = {{"schema", bench_schema}, {"suite", suite},          {"version", sg_version_string()},
                {"commit", SG_COMMIT},    {"date", utc_now()},       {"command", command},
                {"device", device},       {"quick", request_.quick}, {"left_out", left_out_},
                {"rows", rows_}};
    if (request_.draw > 0)
      all["drawn"] = {{"seed", request_.seed},
                      {"cases", request_.draw},
                      {"most_flops", request_.most_flops},
                      {"ratios", drawn_summary(rows_, device.value("clock", "") == "virtual", suite == "resident")}};
    return all;
  }

 private:
  static void print(const std::vector<bench_row> &rows) {
    std::printf("%s\n", heading(rows.front().name).c_str());
    if (rows.front().bound_seconds > 0)
      std::printf("  %-42s %10s\n", "bound", format_seconds(rows.front().bound_seconds).c_str());
    double baseline = 0;
    for (const bench_row &row : rows)
      if (row.variant == row.baseline) baseline = row.seconds;
    if (baseline > 0) std::printf("  baseline: %s\n", rows.front().baseline.c_str());
    for (const bench_row &row : rows) {
      const std::string rate = row.flops > 0 ? format_rate(row.flops / row.seconds, "flop/s") : "";
      std::printf("  %-42s %10s  %12s  (%s to %s, %d runs)", row.variant.c_str(), format_seconds(row.seconds).c_str(),
                  rate.c_str(), format_seconds(row.min).c_str(), format_seconds(row.max).c_str(), row.samples);
      if (baseline > 0) std::printf("  %s of baseline", format_fixed(row.seconds / baseline, 3).c_str());
      if (row.bound_seconds > 0 && !row.part)
        std::printf("  bound %s%%", format_fixed(100 * row.bound_seconds / row.seconds, 1).c_str());
      if (row.products > 1) std::printf("  each %s", format_seconds(row.seconds / row.products).c_str());
      for (const auto &[key, value] : row.more) std::printf("  %s %s", key.c_str(), text_of(key, value).c_str());
      std::printf("\n");
    }
    std::fflush(stdout);
  }

  double spent_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  bool is_over_limit() const { return request_.limit > 0 && spent_seconds() > request_.limit; }

  // "case 3 of 12, some 2 minutes left: "
  std::string total() const {
    if (cases_ <= 0) return "";
    std::string text = "case " + std::to_string(std::min(done_ + 1, cases_)) + " of " + std::to_string(cases_);
    const double spent = spent_seconds();
    if (done_ > 0 && done_ < cases_) text += ", some " + format_wait(spent / done_ * (cases_ - done_)) + " left";
    return text + ": ";
  }

  const suite_request &request_;
  bool show_;
  int cases_ = 0, done_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  json device_ = json::object();
  json rows_ = json::array();
  json left_out_ = json::array();  // peers without a case's type
};

void print_drawn(const json &drawn) {
  std::printf("%s\n", heading("ratios of the drawn cases, seed " + drawn["seed"].dump()).c_str());
  for (const auto &[memory, keys] : drawn["ratios"].items())
    for (const auto &[key, of] : keys.items())
      std::printf("  %-9s %-11s %4d cases  mean %s  p95 %s  worst %s (%s)\n", memory.c_str(), key.c_str(),
                  of["cases"].get<int>(), format_fixed(of["mean"], 2).c_str(), format_fixed(of["p95"], 2).c_str(),
                  format_fixed(of["worst"], 2).c_str(), of["worst_case"].get<std::string>().c_str());
}

struct bench_arguments {
  std::string suite, file, command;
  suite_request request;
};

void run(const bench_arguments &given, bool as_json) {
  const bool to_stdout = as_json && given.file.empty();
  recorder out(given.request, !to_stdout);
  for (const auto &suite : suites) {
    if (suite.name != given.suite) continue;
    if (isatty(STDERR_FILENO)) {
      counter cases(given.request);
      suite.run(given.request, cases);
      out.expect(cases.count());
    }
    suite.run(given.request, out);
  }
  const json record = out.record(given.suite, given.command);
  if (record["rows"].empty())
    throw failure(exit_code::usage, "no case of the suite has '" + given.request.only + "' in its name");
  if (given.request.draw > 0 && !to_stdout) print_drawn(record["drawn"]);
  if (to_stdout) print_json(record);
  if (as_json && !to_stdout) write_json(given.file, record);
}

}  // namespace

void write_json(const std::string &path, const json &value) {
  std::ofstream out(path);
  out << value.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
  if (!out.flush()) throw failure(exit_code::failed, path + ": cannot be written");
}

void add_bench(CLI::App &app, const std::string &command) {
  auto given = std::make_shared<bench_arguments>();
  given->command = command;
  CLI::App *verb = app.add_subcommand("bench", "Measure this library beside others and record the figures");
  std::vector<std::string> names;
  std::string about = "Suites:\n";
  for (const auto &suite : suites) {
    names.push_back(suite.name);
    about += "  " + std::string(suite.name) + std::string(11 - names.back().size(), ' ') + suite.about + "\n";
  }
  verb->add_option("SUITE", given->suite, "What to measure")->transform(one_of(names))->type_name(joined(names, "|"));
  verb->footer(about + "Example: streamgemm bench small --device cuda:0 --quick");
  CLI::Option *as_json =
      verb->add_option("--json", given->file, "Write the record as JSON to this file; to stdout without one")
          ->expected(0, 1)
          ->type_name("[FILE]");
  verb->add_option("--device", given->request.device, "Where to run it (default: the suite's own)");
  verb->add_option("--only", given->request.only, "Only cases whose name holds this text");
  verb->add_option("--peers", given->request.peers, "Module with the GPU libraries to measure against");
  verb->add_option("--seconds", given->request.seconds, "Time for a case, roughly (default 20)")
      ->check(positive_number());
  verb->add_option("--limit", given->request.limit, "Seconds in all, after which no case begins (default: none)")
      ->check(positive_number());
  CLI::Option *draw = verb->add_option("--draw", given->request.draw,
                                       "Of the suites gpus, host and resident: so many drawn GEMMs instead")
                          ->check(whole_number(1));
  CLI::Option *seed =
      verb->add_option("--seed", given->request.seed, "Of the drawn GEMMs (default: another each time)");
  CLI::Option *most =
      verb->add_option("--most-flops", given->request.most_flops, "Of a drawn GEMM (default 2e12; with --quick 2e7)");
  for (CLI::Option *each : {seed->needs(draw), most->needs(draw)}) each->type_name("N");
  most->check(number_between(2e6, 1e15));
  verb->add_flag("--quick", given->request.quick, "Small sizes and few samples: to see that it works");
  add_compare(*verb, command);
  verb->require_subcommand(0, 1);
  verb->callback([verb, given, as_json, seed, names] {
    if (!verb->get_subcommands().empty()) return;
    if (given->suite.empty()) throw CLI::RequiredError("SUITE (" + joined(names, ", ") + ")");
    suite_request &of = given->request;
    if (of.draw > 0 && given->suite != "gpus" && given->suite != "host" && given->suite != "resident")
      throw CLI::ValidationError("--draw", "only the suites gpus, host and resident draw cases");
    if (seed->count() == 0) of.seed = std::random_device{}();
    if (of.most_flops == 0) of.most_flops = of.quick ? 2e7 : 2e12;
    run(*given, as_json->count() > 0);
  });
}

}  // namespace sg::cli
