// SPDX-License-Identifier: Apache-2.0
// Recorded submissions that become the children of one run, or of several: as they were recorded, or with addresses of
// that run.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "run/objects/submission.hpp"

namespace sg {

class submission_list {
 public:
  virtual std::size_t size() const noexcept = 0;
  virtual const submission &at(std::size_t index) const noexcept = 0;
  // Of that submission in this run. `room`: where accesses are stored that the list does not have.
  virtual binding operands(std::size_t index) const = 0;
  virtual std::span<const access> accesses(std::size_t index, std::vector<access> &room) const = 0;
  // Which of several runs the submission is of.
  virtual std::size_t run_of(std::size_t) const noexcept { return 0; }

 protected:
  ~submission_list() = default;
};

}  // namespace sg
