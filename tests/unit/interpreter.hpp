// SPDX-License-Identifier: Apache-2.0
// Executes schedules on plain host memory, in any order that their lanes and waits allow.
#pragma once

#include <complex>
#include <cstdint>
#include <random>
#include <vector>

#include "plan/gemm/resident/problem.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg::test {

using value = std::complex<double>;

value load(sg_dtype type, const std::byte *at);
void store(sg_dtype type, std::byte *at, value v);

// An operand's memory: guard bytes around it and in every gap, items as the problem describes them.
class matrix_memory {
 public:
  matrix_memory() = default;
  // Small integers that every type holds exactly; `poison`: NaN (all bits set) instead.
  matrix_memory(const operand &shape, std::int64_t batch, std::mt19937 &random, bool poison);

  std::byte *item(std::int64_t i) { return bytes_.data() + starts_[std::size_t(shared_ ? 0 : i)]; }
  const std::byte *item(std::int64_t i) const { return bytes_.data() + starts_[std::size_t(shared_ ? 0 : i)]; }
  value at(std::int64_t i, std::int64_t row, std::int64_t col) const;
  void set(std::int64_t i, std::int64_t row, std::int64_t col, value v);
  // Whether all bytes outside the elements are unchanged.
  bool gaps_untouched() const;
  bool operator==(const matrix_memory &other) const { return bytes_ == other.bytes_; }

 private:
  operand shape_;
  bool shared_ = false;
  std::vector<std::int64_t> starts_;
  std::vector<std::byte> bytes_;
  std::vector<bool> element_;  // of each byte
};

struct bound_problem {
  problem p;
  value alpha = 2, beta = 3;
  matrix_memory a, b, c, bias;
};

bound_problem bind(const problem &p, std::uint32_t seed);

// Runs the schedule in a random order; problem g's memory is problems[g].
void run(const schedule &s, std::vector<bound_problem> &problems, std::uint32_t seed);

// Empty when C is the plain formula's result on `before`, bit for bit, and nothing else changed.
std::string difference(const bound_problem &before, const bound_problem &after);

}  // namespace sg::test
