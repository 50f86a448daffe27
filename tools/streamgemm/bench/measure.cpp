// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

namespace sg::cli {

double timed(const std::function<void()> &work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void let_threads_go_idle() {
  using namespace std::chrono_literals;
  const auto used = [] { return double(std::clock()) / CLOCKS_PER_SEC; };  // of all threads of the process
  const auto give_up = std::chrono::steady_clock::now() + 2s;
  for (double before = used(), after; std::chrono::steady_clock::now() < give_up; before = after) {
    std::this_thread::sleep_for(10ms);
    after = used();
    if (after - before < 0.0005) return;
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double percentile(std::vector<double> values, double share) {
  const auto rank = std::size_t(std::ceil(share * double(values.size())));
  const auto at = values.begin() + std::ptrdiff_t(std::clamp(rank, std::size_t{1}, values.size()) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double median_of_burst(const std::function<double()> &work) {
  constexpr double burst = 0.005;
  const double first = std::max(work(), 1e-9);
  const auto rounds = static_cast<std::size_t>(std::clamp(burst / first, 1.0, 1000.0));
  std::vector<double> seconds(rounds);
  for (double &each : seconds) each = work();
  return median(std::move(seconds));
}

namespace {

using stopwatch = std::chrono::steady_clock;

std::vector<double> between_stamps(int count, const std::function<void(int)> &call) {
  std::vector<stopwatch::time_point> stamps(static_cast<std::size_t>(count) + 1);
  stamps[0] = stopwatch::now();
  for (int i = 0; i < count; ++i) {
    call(i);
    stamps[std::size_t(i) + 1] = stopwatch::now();
  }
  std::vector<double> seconds(stamps.size() - 1);
  for (std::size_t i = 0; i < seconds.size(); ++i)
    seconds[i] = std::chrono::duration<double>(stamps[i + 1] - stamps[i]).count();
  return seconds;
}

// Shorter work runs untimed just before each timed run: idle or otherwise used cores, threads and caches are slow at
// first.
constexpr double most_seconds_of_brief = 0.05;

void warm_up(const bench_variant &variant, double seconds) {
  const auto end = stopwatch::now() + std::chrono::duration<double>(seconds);
  do {
    variant.run();
  } while (stopwatch::now() < end);
}

// If parts of the work were measured alone, the bound of a case is the slowest of them; its baseline runs them one
// after another.
void bound_by_parts(const bench_case &what, std::vector<bench_row> &rows) {
  double slowest = 0, sum = 0;
  for (std::size_t v = 0; v < rows.size(); ++v)
    if (what.variants[v].part) slowest = std::max(slowest, rows[v].seconds), sum += rows[v].seconds;
  if (slowest == 0) return;
  for (bench_row &row : rows) {
    row.bound_seconds = slowest;
    if (row.variant == what.baseline) row.more.emplace_back("sum_of_parts", sum);
  }
}

}  // namespace

std::vector<double> timed_calls(int count, const std::function<void(int)> &call) {
  static const double nothing = median(between_stamps(10000, [](int) {}));
  std::vector<double> seconds = between_stamps(count, call);
  for (double &each : seconds) each = std::max(each - nothing, 1e-10);
  return seconds;
}

std::vector<bench_row> measure(const bench_case &what, const measure_limits &limits,
                               const std::function<void()> &tell) {
  double round = 0;            // seconds of one round, from the warm-up's second runs
  std::vector<bool> warms_up;  // by variant
  for (const bench_variant &variant : what.variants) {
    const double measured = variant.run();
    warms_up.push_back(measured < most_seconds_of_brief);
    round += timed([&] {  // including the overhead around the measured work
      if (warms_up.back()) warm_up(variant, limits.warming_up);
      variant.run();
    });
    let_threads_go_idle();
  }
  const int samples = std::clamp(int(limits.seconds / round), limits.min_samples, limits.max_samples);

  std::vector<std::vector<double>> seconds(what.variants.size());
  for (int i = 0; i < samples; ++i)
    for (std::size_t v = 0; v < what.variants.size(); ++v) {
      if (warms_up[v]) warm_up(what.variants[v], limits.warming_up);
      seconds[v].push_back(what.variants[v].run());
      tell();
      let_threads_go_idle();
    }

  std::vector<bench_row> rows;
  for (std::size_t v = 0; v < what.variants.size(); ++v) {
    const auto [least, most] = std::minmax_element(seconds[v].begin(), seconds[v].end());
    rows.push_back({.name = what.name,
                    .variant = what.variants[v].name,
                    .seconds = median(seconds[v]),
                    .samples = samples,
                    .min = *least,
                    .max = *most,
                    .all = seconds[v],
                    .flops = what.variants[v].has_flops ? what.flops : 0,
                    .bytes_in = what.bytes_in,
                    .bytes_out = what.bytes_out,
                    .bound_seconds = what.bound_seconds,
                    .products = what.products,
                    .baseline = what.baseline,
                    .part = what.variants[v].part,
                    .more = {}});
    if (what.variants[v].more) rows.back().more = what.variants[v].more();
  }
  bound_by_parts(what, rows);
  if (what.own) {
    auto &more = rows.front().more;
    more.emplace_back("predicted_seconds", what.own->predicted_seconds);
    more.emplace_back("device_seconds", what.own->device_seconds);
    if (what.own->devices > 0) more.emplace_back("devices", what.own->devices);
  }
  return rows;
}

}  // namespace sg::cli
