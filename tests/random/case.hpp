// SPDX-License-Identifier: Apache-2.0
// A random test as plain values: operations, memory of their operands, form of submission. Other files draw it, run it,
// shrink it and print it as a program.
#pragma once

#include <streamgemm/streamgemm.h>

#include <algorithm>
#include <cstdint>
#include <vector>

inline bool operator==(const sg_scalar &x, const sg_scalar &y) { return x.re == y.re && x.im == y.im; }
inline bool operator==(const sg_plan_options &x, const sg_plan_options &y) {
  return x.split == y.split && x.parts == y.parts && x.streams == y.streams && x.memory_limit == y.memory_limit &&
         x.tile_m == y.tile_m && x.tile_n == y.tile_n && x.tile_k == y.tile_k && x.place_a == y.place_a &&
         x.place_b == y.place_b && x.place_c == y.place_c && x.devices == y.devices && x.device_count == y.device_count;
}

namespace sg_test::random_tests {

enum class memory { ordinary, pinned, registered, device };

// The placement of a batch's items.
enum class item_form {
  strided,      // one after another
  shared,       // all items are the first
  pointers,     // an array of pointers, in random order
  interleaved,  // adjacent blocks of one larger matrix: every run of an item is within the larger one's run
  overlapping   // any stride, also less than an item; only for operands that are read
};

struct operand_case {
  sg_layout layout = SG_LAYOUT_ROW_MAJOR;
  std::int64_t pad = 0;  // of the leading dimension, in elements
  bool says_ld = false;  // sets the leading dimension where 0 would do
  memory where = memory::ordinary;
  int device = 0;  // of device memory
  item_form items = item_form::strided;
  std::int64_t gap = 0;             // elements between items; of overlapping ones the stride itself
  std::int64_t offset = 0;          // elements before the first item, aligned for one element only
  bool half_an_element_on = false;  // complex elements are aligned to their parts only
  bool at_start = false;            // ordinary memory: starts right after an unreadable page

  bool operator==(const operand_case &) const = default;
};

enum class values { integers, reals };
// Streams of no device; of several devices each has one more.
constexpr int streams_of_any = 5;

enum class call_form { async, plan, blas };

struct gemm_case {
  sg_dtype in = SG_DTYPE_F32, out = SG_DTYPE_F32;
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
  sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
  sg_compute compute = SG_COMPUTE_EXACT;
  sg_scalar alpha{1, 0}, beta{0, 0};
  sg_activation activation = SG_ACTIVATION_NONE;
  bool has_bias = false;
  sg_bias bias_shape = SG_BIAS_PER_COLUMN;
  operand_case a, b, c, bias;
  bool b_is_a = false;  // B is A's memory, with the same view
  int a_from = -1;      // A is the C of that earlier step
  values data = values::integers;
  int nan_in = 0;  // one element is NaN, of 1: A, 2: B, 3: C, 4: the bias
  int foreign =
      0;  // a call with one operand in memory of another context is refused first: 1: A, 2: B, 3: C, 4: the bias
  bool bias_cancels = false;  // the bias is that of one row or column of products, rounded, with the other sign
  std::uint32_t seed = 0;

  bool operator==(const gemm_case &) const = default;
  std::int64_t rows_a() const { return op_a == SG_TRANSPOSE_N ? m : k; }
  std::int64_t cols_a() const { return op_a == SG_TRANSPOSE_N ? k : m; }
  std::int64_t rows_b() const { return op_b == SG_TRANSPOSE_N ? k : n; }
  std::int64_t cols_b() const { return op_b == SG_TRANSPOSE_N ? n : k; }
  bool complex() const { return in == SG_DTYPE_C64 || in == SG_DTYPE_C128; }
  // A scalar as the accumulator has it.
  sg_scalar used(sg_scalar s) const {
    if (!complex()) s.im = 0;
    if (out == SG_DTYPE_F64 || out == SG_DTYPE_C128 || out == SG_DTYPE_I32) return s;
    return {static_cast<float>(s.re), static_cast<float>(s.im)};
  }
  bool is_scalar(const sg_scalar &s, double re) const { return used(s) == sg_scalar{re, 0}; }
  bool beta_zero() const { return is_scalar(beta, 0); }
  bool alpha_zero() const { return is_scalar(alpha, 0); }
  bool plain() const { return !has_bias && activation == SG_ACTIVATION_NONE; }
  // Whether the call looks at the operand `foreign`.
  bool reads_foreign() const {
    if (nothing_to_do() || foreign == 0) return false;
    if (foreign > 2) return foreign == 3 ? batch == 1 || c.items != item_form::pointers : has_bias;
    return k > 0 && !alpha_zero() && (batch == 1 || (foreign == 1 ? a : b).items != item_form::pointers);
  }
  bool nothing_to_do() const { return m == 0 || n == 0 || ((k == 0 || alpha_zero()) && is_scalar(beta, 1) && plain()); }
};

struct copy_case {
  std::int64_t width = 1, height = 1, src_gap = 0, dst_gap = 0;  // bytes
  operand_case src, dst;                                         // only where, offset and at_start are used
  bool flat = false;                                             // sg_copy_async of one run
  std::uint32_t seed = 0;

  bool operator==(const copy_case &) const = default;
};

struct step_case {
  bool is_copy = false;
  gemm_case gemm;
  copy_case copy;
  call_form call = call_form::async;
  bool plan_without_pointers = false;
  int stream = -1;  // index of a stream of the context, of a device from `streams_of_any` on; -1: none
  int priority = 0;
  bool after_all = false;  // untracked, and after all jobs before it
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;

  bool operator==(const step_case &) const = default;
};

enum class way { jobs, graph, grouped };

struct test_case {
  std::vector<step_case> steps;
  way how = way::jobs;
  int runs = 1;
  bool blocking = false;  // waits for each step before the next
  bool check_hazards = true;
  bool untracked_run = false;  // of a graph: nothing else is in flight

  bool operator==(const test_case &) const = default;

  // Nothing tracks an untracked writer, so readers of its result must name it.
  bool is_untracked(std::size_t step) const {
    const int from = steps[step].gemm.a_from;
    return how == way::jobs && (steps[step].after_all || (from >= 0 && is_untracked(static_cast<std::size_t>(from))));
  }
  // Whether the GEMM's stream orders it after the jobs whose results the GEMM reads.
  bool is_ordered_by_stream(std::size_t step) const {
    const step_case &s = steps[step];
    return s.gemm.a_from >= 0 && s.stream >= 0 && steps[static_cast<std::size_t>(s.gemm.a_from)].stream == s.stream;
  }
};

// Where the elements of an operand are, in elements from the start of its memory.
struct extent_of_operand {
  std::int64_t rows = 0, cols = 0;  // of the view
  std::int64_t runs = 0, width = 0, ld = 0, stride = 0, items = 1, elements = 0;
  bool by_rows = true;
  item_form form = item_form::strided;
  std::int64_t offset = 0;

  // The items of a batch by pointers are in another order.
  std::int64_t start(std::int64_t item) const {
    if (form == item_form::shared) return offset;
    return offset + (form == item_form::pointers ? items - 1 - item : item) * stride;
  }
  std::int64_t at(std::int64_t item, std::int64_t i, std::int64_t j) const {
    return start(item) + (by_rows ? i * ld + j : i + j * ld);
  }
  std::int64_t given_stride() const { return form == item_form::shared || form == item_form::pointers ? 0 : stride; }
};

inline extent_of_operand extent_of(const operand_case &x, std::int64_t rows, std::int64_t cols, std::int64_t batch) {
  extent_of_operand e;
  e.rows = rows;
  e.cols = cols;
  e.by_rows = x.layout == SG_LAYOUT_ROW_MAJOR;
  e.runs = e.by_rows ? rows : cols;
  e.width = e.by_rows ? cols : rows;
  e.ld = std::max<std::int64_t>(e.width + x.pad, 1);
  e.items = batch;
  e.form = batch == 1 ? item_form::strided : x.items;
  e.offset = x.offset;
  const auto span = [&] { return e.runs && e.width ? (e.runs - 1) * e.ld + e.width : 0; };
  switch (e.form) {
    case item_form::interleaved:
      e.stride = e.width + x.gap;
      e.ld = std::max<std::int64_t>((batch - 1) * e.stride + e.width + x.pad, 1);
      break;
    case item_form::overlapping: e.stride = x.gap; break;
    case item_form::strided:
    case item_form::shared:
    case item_form::pointers: e.stride = span() + x.gap; break;
  }
  const std::int64_t last = e.form == item_form::shared ? 0 : (batch - 1) * e.stride;
  e.elements = e.offset + last + span();
  return e;
}

inline extent_of_operand extent_of_bias(const gemm_case &p) {
  const bool per_row = p.bias_shape == SG_BIAS_PER_ROW;
  operand_case x = p.bias;
  x.layout = SG_LAYOUT_COLUMN_MAJOR;
  return extent_of(x, per_row ? p.m : p.n, 1, p.batch);
}

}  // namespace sg_test::random_tests
