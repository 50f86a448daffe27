// SPDX-License-Identifier: Apache-2.0
// One line on stderr that shows the progress of long work. Silent when stderr is no terminal, and for the first half
// second.
#pragma once

#include <chrono>
#include <string>

namespace sg::cli {

class progress {
 public:
  explicit progress(std::string label);
  ~progress();  // removes the line
  progress(const progress &) = delete;
  progress &operator=(const progress &) = delete;

  void fraction(double done);  // 0 to 1
  void elapsed();              // for work of unknown length
  void doing(const std::string &what);
  void clear();  // before other output

 private:
  void show(const std::string &text);
  double seconds() const;

  std::string label_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace sg::cli
