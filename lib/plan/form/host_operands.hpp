// SPDX-License-Identifier: Apache-2.0
// Operands of a form that lie outside the device's memory: the program copies them into its arena before the commands
// that read them, and results back behind the commands that write them. The form itself is planned as if all of its
// operands were in device memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "ops/view.hpp"
#include "plan/form/plan_request.hpp"
#include "plan/schedule/operand.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

// An operand as stored: runs of `run` elements, repeated in up to three dimensions.
struct stored_array {
  struct dimension {
    std::int64_t count = 1;
    std::int64_t stride = 0;          // elements; 0: all repetitions are the same elements
    std::int64_t *of_form = nullptr;  // this stride in the form; nullptr: it must stay
  };
  std::int32_t parameter = 0;
  sg_dtype type = SG_DTYPE_F32;
  access_mode mode = access_mode::read;
  std::int64_t run = 0;
  std::array<dimension, 3> dimensions{};
  stored_part accessed = stored_part::all;  // a triangle: of one dimension, with as many runs as elements in a run
};

// Is called with each operand of a form and its memory space, which may be set.
using operand_visitor = std::function<void(const stored_array &, memory_space &)>;

class host_operands {
 public:
  // An operand that lies elsewhere moves into the arena: its space in the form becomes the device's, and its strides
  // those of an array without gaps, unless one must stay.
  void move(const stored_array &x, memory_space &space);

  bool empty() const noexcept { return moved_.empty(); }
  // The terms for the form with its operands in device memory. Throws SG_STATUS_OUT_OF_MEMORY if they do not fit.
  plan_terms beside(const plan_terms &terms) const;
  // The schedule of the form with its operands in device memory, between the copies.
  schedule around(const schedule &resident, const plan_terms &terms) const;

 private:
  struct stride_pair {
    std::int64_t count = 1, here = 0, there = 0;  // elements: in the operand's memory, on the device
  };
  struct moved_operand {
    std::int32_t parameter = 0;
    sg_dtype type = SG_DTYPE_F32;
    access_mode mode = access_mode::read;
    memory_space space;
    std::int64_t run = 0;
    std::vector<stride_pair> dimensions;           // by stride; evenly spaced ones are one
    std::int64_t reach_here = 0, reach_there = 0;  // elements from the first to the last
    stored_part accessed = stored_part::all;
    // Runs along the innermost dimension do not overlap: they are one rectangle.
    bool has_rectangles() const noexcept { return !dimensions.empty() && dimensions[0].here >= run; }
  };
  class copies;

  std::vector<moved_operand> moved_;
};

}  // namespace sg
