// SPDX-License-Identifier: Apache-2.0
// The record of a benchmark run: the schema streamgemm-bench/1.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sg::cli {

inline constexpr const char *bench_schema = "streamgemm-bench/1";
inline constexpr const char *own_variant = "streamgemm";

// One variant (this library, a peer, a baseline) of one case.
struct bench_row {
  std::string name, variant;  // JSON key of name: "case"
  double seconds = 0;         // the median
  int samples = 0;
  double min = 0, max = 0;
  std::vector<double> all;                           // the samples in the order of their measurement; empty: not kept
  double flops = 0, bytes_in = 0, bytes_out = 0;     // of one run; no flops: copies only
  double bound_seconds = 0;                          // 0: no bound is known
  int products = 1;                                  // of one run
  std::string baseline;                              // the variant that this one is compared with; "": none of its own
  bool part = false;                                 // a part of the work alone
  std::vector<std::pair<std::string, double>> more;  // further keys
};

}  // namespace sg::cli
