// SPDX-License-Identifier: Apache-2.0
// Measures the variants of a case side by side: warm-up first, then rounds in which each variant runs once (after
// untimed runs, if it is brief), so that a slow spell of the machine falls on all of them; medians.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "record.hpp"

namespace sg::cli {

// Runs `work` and returns its seconds.
double timed(const std::function<void()> &work);

// The library's prediction of a run, and the run's time on the device's clock (virtual on simulated ones).
struct prediction {
  double predicted_seconds = 0, device_seconds = 0;
  int devices = 0;  // on which it ran; 0: of no interest
};

struct bench_variant {
  std::string name;
  std::function<double()> run;  // does the work once and returns the measured seconds
  std::function<std::vector<std::pair<std::string, double>>()> more = nullptr;  // further keys, requested last
  bool part = false;      // a part of the work alone, all of which must run: none is faster than the slowest part
  bool has_flops = true;  // false: copies only
};

struct bench_case {
  std::string name;
  double flops = 0;
  std::vector<bench_variant> variants;
  double bytes_in = 0, bytes_out = 0;  // over the link, of one run
  double bound_seconds = 0;            // 0: no bound is known
  int products = 1;                    // of one run; its seconds are those of all of them
  std::string baseline;                // a variant that the others are also compared with; "": none
  const prediction *own = nullptr;     // of the first variant, this library's, from its latest run; nullptr: none
};

struct measure_limits {
  int min_samples = 5, max_samples = 25;
  double seconds = 20;        // of a case, roughly
  double warming_up = 0.025;  // seconds that a brief variant runs untimed before each timed run; once at least
};

// Waits until this process uses no processor time: library threads that spin after a call would slow down the next
// measurement.
void let_threads_go_idle();

// `tell` is called from time to time, between the runs.
std::vector<bench_row> measure(const bench_case &what, const measure_limits &limits, const std::function<void()> &tell);

double median(std::vector<double> values);

// The value that the given share (0 to 1) of all values does not exceed.
double percentile(std::vector<double> values, double share);

// For work of microseconds: runs it for some milliseconds, and returns the median of its results, without the first.
double median_of_burst(const std::function<double()> &work);

// Seconds of each of `count` calls, timed one by one; the timer's own cost is subtracted.
std::vector<double> timed_calls(int count, const std::function<void(int)> &call);

}  // namespace sg::cli
