// SPDX-License-Identifier: Apache-2.0
// A suite of benchmarks, run by `streamgemm bench NAME`. A new suite is a function here and a line in bench.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "measure.hpp"

namespace sg::cli {

struct suite_request {
  bool quick = false;   // small sizes, few samples: a functional test
  std::string device;   // "" is the suite's own choice
  std::string only;     // cases whose name contains this text
  std::string peers;    // path of the module with the GPU's peers; "" for none
  double seconds = 20;  // of a case, roughly
  double limit = 0;     // seconds after which no case begins; 0: none
  // Drawn cases instead of the suite's own, of the suites gpus, host and resident.
  int draw = 0;
  std::uint64_t seed = 0;
  double most_flops = 0;  // of a drawn case
};

// Receives a suite's cases, which are measured at once, or rows that the suite has measured itself.
class suite_run {
 public:
  virtual void run(const bench_case &what) = 0;
  virtual void add(const std::vector<bench_row> &rows) = 0;
  virtual bool wants(const std::string &name) const = 0;
  virtual void note(const std::string &key, nlohmann::ordered_json value) = 0;  // into the record's "device"
  // A peer that cannot compute a case here, for the record and the table.
  virtual void leave_out(const std::string &name, const std::string &peer) = 0;
  virtual ~suite_run() = default;
};

void run_accuracy_suite(const suite_request &request, suite_run &run);
void run_calls_suite(const suite_request &request, suite_run &run);
void run_cpu_suite(const suite_request &request, suite_run &run);
void run_gpus_suite(const suite_request &request, suite_run &run);
void run_graph_suite(const suite_request &request, suite_run &run);
void run_heads_suite(const suite_request &request, suite_run &run);
void run_host_suite(const suite_request &request, suite_run &run);
void run_outofcore_suite(const suite_request &request, suite_run &run);
void run_overlap_suite(const suite_request &request, suite_run &run);
void run_priority_suite(const suite_request &request, suite_run &run);
void run_resident_suite(const suite_request &request, suite_run &run);
void run_small_suite(const suite_request &request, suite_run &run);
void run_split_suite(const suite_request &request, suite_run &run);
void run_streams_suite(const suite_request &request, suite_run &run);
void run_submit_suite(const suite_request &request, suite_run &run);

}  // namespace sg::cli
