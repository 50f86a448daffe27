// SPDX-License-Identifier: Apache-2.0
// One GEMM under test: its operands on the host, its expected result, and the allowed error of a device.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "../reference/functions.hpp"
#include "harness.hpp"
#include "numbers.hpp"

namespace sg::test {

struct pair_of_types {
  sg_dtype in, out;
};
inline constexpr pair_of_types all_pairs[] = {
    {SG_DTYPE_F64, SG_DTYPE_F64},     {SG_DTYPE_F32, SG_DTYPE_F32},     {SG_DTYPE_C64, SG_DTYPE_C64},
    {SG_DTYPE_C128, SG_DTYPE_C128},   {SG_DTYPE_F16, SG_DTYPE_F16},     {SG_DTYPE_F16, SG_DTYPE_F32},
    {SG_DTYPE_BF16, SG_DTYPE_BF16},   {SG_DTYPE_BF16, SG_DTYPE_F32},    {SG_DTYPE_I8, SG_DTYPE_I32},
    {SG_DTYPE_F8_E4M3, SG_DTYPE_F32}, {SG_DTYPE_F8_E4M3, SG_DTYPE_F16}, {SG_DTYPE_F8_E4M3, SG_DTYPE_BF16},
    {SG_DTYPE_F8_E5M2, SG_DTYPE_F32}, {SG_DTYPE_F8_E5M2, SG_DTYPE_F16}, {SG_DTYPE_F8_E5M2, SG_DTYPE_BF16}};

// How the items of a batch are given: evenly spaced, by strides, by pointers or by pointers for B alone, or scattered,
// which only pointers can describe.
enum class batching { strided, shared_a, pointers, pointers_b, scattered };
inline constexpr batching all_batchings[] = {batching::strided, batching::shared_a, batching::pointers,
                                             batching::pointers_b, batching::scattered};
enum class bias_form { none, per_row, per_column, own_per_row, own_per_column };  // own: of each item

// Everything about a GEMM except its data.
struct gemm_spec {
  pair_of_types types = {SG_DTYPE_F32, SG_DTYPE_F32};
  std::int64_t m = 1, n = 1, k = 1;
  sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
  sg_scalar alpha = {1, 0}, beta = {0, 0};
  std::int64_t gap = 0;  // between the end of a column and the start of the next one, in elements
  std::int64_t batch = 1;
  batching form = batching::strided;
  bias_form bias = bias_form::none;
  sg_activation activation = SG_ACTIVATION_NONE;
  sg_compute compute = SG_COMPUTE_EXACT;

  bool bias_per_row() const { return bias == bias_form::per_row || bias == bias_form::own_per_row; }
  // The matrix of item `item` of the batch. The inverse maps back the same way.
  std::int64_t matrix_of(std::int64_t item) const { return form == batching::scattered ? batch - 1 - item : item; }
  bool own_bias() const { return bias == bias_form::own_per_row || bias == bias_form::own_per_column; }
  std::string text() const;
};

// A column-major operand: `items` matrices one after another, gaps included.
struct host_operand {
  sg_dtype type;
  std::int64_t rows, cols, ld, items;
  std::vector<char> bytes;

  host_operand(sg_dtype type, std::int64_t rows, std::int64_t cols, std::int64_t gap, std::int64_t items);
  std::int64_t item_elements() const { return ld * cols; }
  char *at(std::int64_t item, std::int64_t row, std::int64_t col) {
    return bytes.data() + (item * item_elements() + col * ld + row) * size_of(type);
  }
  number get(std::int64_t item, std::int64_t row, std::int64_t col);
  void set(std::int64_t item, std::int64_t row, std::int64_t col, number value);
  // Every element, gaps included: NaN, or a recognisable integer.
  void poison();
  // Random elements in [-1, 1] (i8: all of its values); the gaps keep their bytes.
  void randomise(std::mt19937_64 &from);
};

using sg_reference::activated;
// The allowed error of an activation: the error of x is given, and the unit roundoff of the arithmetic.
real activation_error(sg_activation activation, real x, real error_of_x, real unit);

class gemm_case {
 public:
  explicit gemm_case(const gemm_spec &shape, std::uint64_t seed = 1);

  gemm_spec shape;
  host_operand a, b, c, bias;

  // Runs it on the device, in device memory, and copies C back. The status of the completion.
  sg_status run(const std::shared_ptr<device> &on, stream &in);
  // Runs it on the given device addresses. The shape's batch must be 1 or strided.
  sg_backend_gemm command(const void *at_a, const void *at_b, void *at_c, const void *at_bias = nullptr) const;

  // To be called before C reaches a device by another path than run(): saves the state that check() needs.
  void remember_c() { before_ = c.bytes; }
  // Compares C with the reference, element by element of every so many rows, and the gaps with their earlier bytes.
  // Reports the first deviation.
  void check(std::int64_t every = 1);

 private:
  void check_element(std::int64_t item, std::int64_t i, std::int64_t j);

  // op(A) op(B) of an item's rows, and the same of the elements' magnitudes, row-major; summed in T.
  template <class T>
  void add_up(std::int64_t item, std::int64_t every);

  std::vector<char> before_;  // C
  std::vector<number> sums_;
  std::vector<real> magnitudes_;
};

}  // namespace sg::test
