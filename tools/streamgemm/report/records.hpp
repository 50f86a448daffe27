// SPDX-License-Identifier: Apache-2.0
// Records of benchmark runs, read and checked. Every error names the file, and the row by its index.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../bench/record.hpp"
#include "../verbs.hpp"

namespace sg::cli {

inline constexpr const char *comparison_schema = "streamgemm-comparison/1";
inline constexpr const char *before_after_schema = "streamgemm-before-after/1";  // an older form of the same

struct bench_record {
  std::string path, suite, version, commit, date, command;
  std::shared_ptr<const json> device;  // an object
  std::vector<bench_row> rows;
};

// The verdict of a row that two runs, A and B, have in common. Ratios are B's seconds by A's.
struct compared_row {
  std::string suite, name, variant;
  double a_seconds = 0, b_seconds = 0;
  int a_samples = 0, b_samples = 0;
  double ratio = 0;
  double low = 0, high = 0;  // the confidence interval of the ratio; 0: there are not enough samples for one
  std::string verdict;
};

struct comparison_record {
  std::string path, a_commit, b_commit, date, device, command;
  std::vector<compared_row> rows;
};

json read_json(const std::string &path);
bench_record bench_record_of(const std::string &path, const json &content);
comparison_record comparison_record_of(const std::string &path, const json &content);

// The records of a file, or of all *.json files of a folder, by name.
std::vector<bench_record> load_bench_records(const std::string &path);

// The device in one line: its name, the GPU or processor, the driver.
std::string device_line(const json &device);

}  // namespace sg::cli
