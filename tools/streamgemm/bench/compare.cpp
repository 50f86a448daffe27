// SPDX-License-Identifier: Apache-2.0
// streamgemm bench compare: two runs of the same suites, row by row, with confidence intervals.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "../format.hpp"
#include "../outcome.hpp"
#include "../report/records.hpp"
#include "../usage.hpp"
#include "interval.hpp"
#include "measure.hpp"
#include "subverbs.hpp"

namespace sg::cli {

namespace {

struct compare_arguments {
  std::string a, b, file, command;
  double tolerance = 0.03, confidence = 0.95;
  std::vector<std::string> skipped;
};

struct row_key {
  std::string suite, name, variant;
  bool operator<(const row_key &other) const {
    return std::tie(suite, name, variant) < std::tie(other.suite, other.name, other.variant);
  }
};

// What one side knows of a row. With several records, each is a run of its own.
struct row_samples {
  std::vector<double> medians;  // of each record
  std::vector<double> all;      // of all records that kept them
  int samples = 0;              // of a single record, and their extremes
  double min = 0, max = 0;

  double seconds() const { return median(medians); }
};

class side {
 public:
  side(const std::string &path, const std::vector<std::string> &skipped) : records_(load_bench_records(path)) {
    for (const bench_record &record : records_)
      for (const bench_row &row : record.rows) {
        const bool leave = std::any_of(skipped.begin(), skipped.end(),
                                       [&](const std::string &text) { return row.variant.starts_with(text); });
        if (leave) continue;
        add({record.suite, row.name, row.variant}, row.seconds).take(row);
        for (const auto &[key, value] : row.more)
          if (key == "p99" && value > 0) add({record.suite, row.name, row.variant + ", p99"}, value);
      }
  }

  const std::vector<row_key> &order() const { return order_; }
  const row_samples *find(const row_key &key) const {
    const auto it = rows_.find(key);
    return it == rows_.end() ? nullptr : &it->second;
  }
  const bench_record &first() const { return records_.front(); }
  std::size_t count() const { return records_.size(); }
  std::string suites() const {
    std::string all;
    for (const bench_record &record : records_)
      if ((", " + all + ",").find(", " + record.suite + ",") == std::string::npos)
        all += (all.empty() ? "" : ", ") + record.suite;
    return all;
  }

 private:
  struct entry : row_samples {
    void take(const bench_row &row) {
      all.insert(all.end(), row.all.begin(), row.all.end());
      samples = row.samples, min = row.min, max = row.max;
    }
  };
  entry &add(const row_key &key, double seconds) {
    const auto [it, is_new] = rows_.try_emplace(key);
    if (is_new) order_.push_back(key);
    it->second.medians.push_back(seconds);
    return it->second;
  }

  std::vector<bench_record> records_;
  std::map<row_key, entry> rows_;
  std::vector<row_key> order_;
};

// Runs of separate processes differ by more than the samples of one run, so with enough runs each counts once.
constexpr std::size_t enough_runs = 4;

compared_row compare_row(const row_key &key, const row_samples &a, const row_samples &b,
                         const compare_arguments &given) {
  compared_row row{.suite = key.suite, .name = key.name, .variant = key.variant, .verdict = {}};
  row.a_seconds = a.seconds(), row.b_seconds = b.seconds();
  row.ratio = row.b_seconds / row.a_seconds;
  const auto use = [&](const std::vector<double> &x, const std::vector<double> &y) {
    row.a_samples = int(x.size()), row.b_samples = int(y.size());
    row.ratio = median_ratio(x, y);
    if (const auto found = interval_of_ratio(x, y, given.confidence)) row.low = found->low, row.high = found->high;
  };
  const bool single = a.medians.size() == 1 && b.medians.size() == 1;
  const bool enough = std::min(a.medians.size(), b.medians.size()) >= enough_runs;
  if (!enough && !a.all.empty() && !b.all.empty()) {
    use(a.all, b.all);
  } else if (single) {
    row.a_samples = std::max(a.samples, 1), row.b_samples = std::max(b.samples, 1);
    if (a.min > 0 && b.min > 0 && extremes_are_interval(a.samples, b.samples, given.confidence))
      row.low = b.min / a.max, row.high = b.max / a.min;
  } else {
    use(a.medians, b.medians);
  }
  const double most = 1 + given.tolerance;
  row.verdict = row.low <= 0                              ? "not enough samples"
                : row.low > most                          ? "slower"
                : row.high < 1 / most                     ? "faster"
                : row.low >= 1 / most && row.high <= most ? "same"
                                                          : "not enough samples";
  return row;
}

class comparison {
 public:
  explicit comparison(const compare_arguments &given)
      : given_(given), a_(given.a, given.skipped), b_(given.b, given.skipped) {
    for (const row_key &key : a_.order()) {
      const row_samples *other = b_.find(key);
      if (!other)
        ++only_a_;
      else
        rows_.push_back(compare_row(key, *a_.find(key), *other, given_));
    }
    for (const row_key &key : b_.order()) only_b_ += a_.find(key) == nullptr;
    if (rows_.empty())
      throw failure(exit_code::usage, given_.a + " (suite " + a_.suites() + ") and " + given_.b + " (suite " +
                                          b_.suites() + ") have no case and variant in common");
  }

  int count(const std::string &verdict) const {
    return int(std::count_if(rows_.begin(), rows_.end(), [&](const compared_row &x) { return x.verdict == verdict; }));
  }
  std::size_t size() const { return rows_.size(); }

  json record() const {
    json rows = json::array(), means = json::object();
    for (const compared_row &x : rows_) {
      rows.push_back({{"suite", x.suite},
                      {"case", x.name},
                      {"variant", x.variant},
                      {"a_seconds", x.a_seconds},
                      {"b_seconds", x.b_seconds},
                      {"a_samples", x.a_samples},
                      {"b_samples", x.b_samples},
                      {"ratio", x.ratio},
                      {"low", x.low > 0 ? json(x.low) : json()},
                      {"high", x.low > 0 ? json(x.high) : json()},
                      {"verdict", x.verdict}});
      means[x.suite] = mean_ratio(x.suite);
    }
    return {{"schema", comparison_schema},
            {"a_commit", a_.first().commit},
            {"b_commit", b_.first().commit},
            {"a_records", a_.count()},
            {"b_records", b_.count()},
            {"date", b_.first().date},
            {"device", device_line(*b_.first().device)},
            {"a_device", device_line(*a_.first().device)},
            {"command", given_.command},
            {"confidence", given_.confidence},
            {"tolerance", given_.tolerance},
            {"mean_ratio", mean_ratio("")},
            {"mean_ratios", means},
            {"rows", rows}};
  }

  void print() const {
    print_side("A", given_.a, a_);
    print_side("B", given_.b, b_);
    std::printf("ratio: B's time by A's, with its interval of %s%% confidence; tolerance %s%%\n",
                format_fixed(given_.confidence * 100, 0).c_str(), format_fixed(given_.tolerance * 100, 1).c_str());
    const compared_row *before = nullptr;
    for (const compared_row &x : rows_) {
      if (!before || before->suite != x.suite || before->name != x.name)
        std::printf("\n%s: %s\n", x.suite.c_str(), x.name.c_str());
      const std::string interval =
          x.low > 0 ? "[" + format_fixed(x.low, 3) + ", " + format_fixed(x.high, 3) + "]" : "no interval";
      std::printf("  %-42s %10s %10s  %6s %-16s  %s\n", x.variant.c_str(), format_seconds(x.a_seconds).c_str(),
                  format_seconds(x.b_seconds).c_str(), format_fixed(x.ratio, 3).c_str(), interval.c_str(),
                  x.verdict.c_str());
      before = &x;
    }
    std::printf("\n");
    for (const auto &[path, count] : {std::pair{&given_.a, only_a_}, {&given_.b, only_b_}})
      if (count > 0) std::printf("only in %s: %d rows\n", path->c_str(), count);
    std::printf(
        "%zu rows: %d faster, %d slower, %d same, %d with not enough samples; geometric mean of the ratios %s\n",
        rows_.size(), count("faster"), count("slower"), count("same"), count("not enough samples"),
        format_fixed(mean_ratio(""), 3).c_str());
  }

 private:
  static void print_side(const char *name, const std::string &path, const side &x) {
    std::printf("%s: %s, commit %s, %s; %s", name, path.c_str(), x.first().commit.c_str(), x.first().date.c_str(),
                device_line(*x.first().device).c_str());
    if (x.count() > 1) std::printf("; %zu records", x.count());
    std::printf("\n");
  }
  // Of a suite; "": of all.
  double mean_ratio(const std::string &suite) const {
    double sum = 0;
    int count = 0;
    for (const compared_row &x : rows_)
      if (suite.empty() || x.suite == suite) sum += std::log(x.ratio), ++count;
    return std::exp(sum / std::max(count, 1));
  }

  const compare_arguments &given_;
  side a_, b_;
  std::vector<compared_row> rows_;
  int only_a_ = 0, only_b_ = 0;
};

void compare(const compare_arguments &given, bool as_json) {
  const comparison result(given);
  if (!as_json || !given.file.empty()) result.print();
  if (as_json && given.file.empty()) print_json(result.record());
  if (as_json && !given.file.empty()) write_json(given.file, result.record());
  std::fflush(stdout);  // before the message
  if (const int slower = result.count("slower"))
    throw failure(exit_code::failed, given.b + ": " + std::to_string(slower) + " of " + std::to_string(result.size()) +
                                         (slower == 1 ? " rows is slower than in " : " rows are slower than in ") +
                                         given.a);
}

}  // namespace

void add_compare(CLI::App &bench, const std::string &command) {
  auto given = std::make_shared<compare_arguments>();
  given->command = command;
  CLI::App *verb = bench.add_subcommand("compare", "Judge two runs of the same suites, row by row");
  verb->add_option("A", given->a, "A record of `streamgemm bench --json FILE`, or a folder of records")->required();
  verb->add_option("B", given->b, "Another, whose times are divided by A's")->required();
  verb->add_option("--tolerance", given->tolerance,
                   "Ratios up to 1 + this, or 1 / (1 + this), are no difference (default 0.03)")
      ->check(number_between(0, 10));
  verb->add_option("--confidence", given->confidence, "Of the intervals (default 0.95)")
      ->check(number_between(0.5, 0.9999));
  verb->add_option("--skip", given->skipped, "Leave out variants whose name begins with this text; may be repeated")
      ->allow_extra_args(false);
  CLI::Option *as_json =
      verb->add_option("--json", given->file, "Write the comparison as JSON to this file; to stdout without one")
          ->expected(0, 1)
          ->type_name("[FILE]");
  verb->footer(
      "Example: streamgemm bench compare before.json after.json\nExits with 1 if a row is slower: if all of its "
      "interval is above 1 + the tolerance.");
  verb->callback([given, as_json] { compare(*given, as_json->count() > 0); });
}

}  // namespace sg::cli
