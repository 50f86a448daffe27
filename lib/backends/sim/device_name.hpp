// SPDX-License-Identifier: Apache-2.0
// Syntax and options of a simulated device's name.
#pragma once

#include <cstdint>
#include <string>

namespace sg::sim {

// Makes the n-th attempt of an operation fail: n counts from 1; 0 means never.
class planned_fault {
 public:
  explicit planned_fault(std::int64_t nth = 0) noexcept : nth_(nth) {}
  std::int64_t nth() const noexcept { return nth_; }
  bool hit() noexcept { return ++seen_ == nth_; }  // call it once for each attempt

 private:
  std::int64_t nth_;
  std::int64_t seen_ = 0;
};

// The part of a device's name after "sim:":
//
//   MODEL[?OPTION[&OPTION...]]
//
// MODEL is a built-in model ("h200"), or the path of a model file: any name with a '/' in it or that ends in ".json".
// Of a machine it is the first device, or with "/INDEX" behind the name ("h200x2/1") that one. "dI.OPTION" is an option
// of the machine's device I only, any other one of each device.
struct device_name {
  std::string model;
  std::int64_t index = -1;             // in its machine; -1: not given
  bool timing_only = false;            // timing-only: no data is stored or computed; only virtual time passes
  std::uint64_t memory = 0;            // memory=SIZE: bytes of device memory; 0: the model's own
  std::uint64_t taken = 0;             // taken=SIZE: bytes of it in use by other processes, unknown to the model
  std::uint64_t largest_piece = 0;     // largest-piece=SIZE: larger device allocations run out of memory; 0: no limit
  planned_fault fail_alloc;            // fail-alloc=N: the N-th device or pinned allocation runs out of memory
  planned_fault fail_copy;             // fail-copy=N: the N-th copy fails when it runs
  planned_fault fail_launch;           // fail-launch=N: the N-th GEMM or reduction fails when it runs
  planned_fault refuse_copy;           // refuse-copy=N: the N-th copy is refused
  planned_fault refuse_launch;         // refuse-launch=N: the N-th GEMM or reduction is refused
  planned_fault lost_at;               // lost-at=N: from the N-th command on everything fails
  std::int64_t drops_from = -1;        // peer-drop=I:J, of device J: copies from device I succeed and write nothing
  planned_fault late_copy;             // late-copy=N:MICROSECONDS: the N-th copy takes that much longer,
  std::int64_t late_microseconds = 0;  // in virtual and in real time

  bool is_file() const;
  void split_index();

  // Throws failure with SG_STATUS_INVALID_ARGUMENT.
  static device_name parse(const std::string &text);
};

}  // namespace sg::sim
