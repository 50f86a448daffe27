// SPDX-License-Identifier: Apache-2.0
// Schedules of a linear layer's gradients: free of hazards, right in any allowed order, near the bound of the link.
#include "plan/layers/linear.hpp"

#include <cstring>
#include <random>

#include "../support/sweep.hpp"
#include "base/error.hpp"
#include "execute.hpp"
#include "plan/layers/column_sums.hpp"
#include "plan/layers/linear_stream.hpp"
#include "plan/planner.hpp"

namespace sg::test {
namespace {

struct linear_form {
  std::int64_t rows = 70, in = 35, out = 20, pad = 0;
  bool dy_by_rows = true, x_by_rows = true, w_by_rows = true;
  bool dy_is_a[2] = {false, true};  // dX and dW row major, as W
  bool dx = true, dw = true, dbias = true, accumulate = false;
  sg_dtype type = SG_DTYPE_F32, result = SG_DTYPE_F32;
  sg_memory_kind at_dy = SG_MEMORY_PINNED, at_x = SG_MEMORY_PINNED, at_w = SG_MEMORY_PINNED, at_dx = SG_MEMORY_PINNED,
                 at_dw = SG_MEMORY_PINNED, at_dbias = SG_MEMORY_PINNED;
};

std::string text(const linear_form &f) {
  std::ostringstream out;
  out << f.rows << "x" << f.in << "x" << f.out << " pad " << f.pad << " by rows " << f.dy_by_rows << f.x_by_rows
      << f.w_by_rows << " dY is A " << f.dy_is_a[0] << f.dy_is_a[1] << " results " << f.dx << f.dw << f.dbias << " + "
      << f.accumulate << " " << name_of(f.type) << "->" << name_of(f.result) << " at";
  for (const sg_memory_kind at : {f.at_dy, f.at_x, f.at_w, f.at_dx, f.at_dw, f.at_dbias}) out << " " << name_of(at);
  return out.str();
}

std::vector<problem> problems_of(const linear_form &f) {
  // `by_rows`: the matrix's rows are columns as stored.
  const auto matrix = [&](std::int64_t rows, std::int64_t cols, bool by_rows, sg_dtype type, sg_memory_kind at) {
    operand x;
    x.rows = by_rows ? cols : rows, x.cols = by_rows ? rows : cols;
    x.ld = x.rows + f.pad;
    x.type = type, x.space = at;
    return x;
  };
  const auto op = [](bool transposed) { return transposed ? SG_TRANSPOSE_T : SG_TRANSPOSE_N; };
  const operand dy = matrix(f.rows, f.out, f.dy_by_rows, f.type, f.at_dy);
  std::vector<problem> all(linear_parts);
  for (problem &each : all) {
    each.beta_zero = true;
    each.c.type = f.result, each.a.type = each.b.type = f.type;
  }
  if (f.dx) {
    problem &p = all[input_gradient];
    const operand w = matrix(f.in, f.out, f.w_by_rows, f.type, f.at_w);
    const bool dy_is_a = f.dy_is_a[0];
    p.m = dy_is_a ? f.rows : f.in, p.n = dy_is_a ? f.in : f.rows, p.k = f.out;
    p.a = dy_is_a ? dy : w, p.b = dy_is_a ? w : dy;
    p.op_a = op(dy_is_a ? f.dy_by_rows : f.w_by_rows), p.op_b = op(!(dy_is_a ? f.w_by_rows : f.dy_by_rows));
    p.c = matrix(p.m, p.n, false, f.result, f.at_dx);
  }
  if (f.dw) {
    problem &p = all[weight_gradient];
    const operand x = matrix(f.rows, f.in, f.x_by_rows, f.type, f.at_x);
    const bool dy_is_a = f.dy_is_a[1];
    p.m = dy_is_a ? f.out : f.in, p.n = dy_is_a ? f.in : f.out, p.k = f.rows;
    p.a = dy_is_a ? dy : x, p.b = dy_is_a ? x : dy;
    p.op_a = op(!(dy_is_a ? f.dy_by_rows : f.x_by_rows)), p.op_b = op(dy_is_a ? f.x_by_rows : f.dy_by_rows);
    p.c = matrix(p.m, p.n, false, f.result, f.at_dw);
    p.beta_zero = !f.accumulate;
  }
  problem &p = all[bias_gradient_part];
  p.no_multiply = true;
  p.m = f.out, p.n = 1, p.k = f.rows;
  p.a = dy;
  p.op_a = op(!f.dy_by_rows);
  p.a.item_stride = stride_of_groups(p.op_a == SG_TRANSPOSE_N, p.k, dy.ld);
  p.beta_zero = !f.accumulate;
  if (f.dbias) {
    p.c = matrix(f.out, 1, false, f.result, f.at_dbias);
    p.c.ld = f.out;
  }
  return all;
}

linear_problems layer_of(const linear_form &f) { return {problems_of(f), {f.dy_is_a[0], f.dy_is_a[1]}}; }

std::vector<bound_problem> bind_layer(const linear_form &f, std::uint32_t seed) {
  std::vector<bound_problem> bound;
  for (const problem &p : problems_of(f)) bound.push_back(bind(p, seed++));
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> digit(-1, 1);
  for (std::int64_t i = 0; i < f.rows; ++i)
    for (std::int64_t j = 0; j < f.out; ++j) {
      const value v = digit(random);
      const auto set = [&](matrix_memory &dy) { dy.set(0, f.dy_by_rows ? j : i, f.dy_by_rows ? i : j, v); };
      if (f.dx) set(f.dy_is_a[0] ? bound[0].a : bound[0].b);
      if (f.dw) set(f.dy_is_a[1] ? bound[1].a : bound[1].b);
      set(bound[2].a);
    }
  return bound;
}

::testing::AssertionResult is_right_layer(const schedule &s, const linear_form &f, std::uint32_t seed = 1) {
  const auto hazards = check_hazards(s);
  if (!hazards.empty()) return ::testing::AssertionFailure() << s.strategy << ": " << hazards.front().text;
  const std::vector<bound_problem> before = bind_layer(f, seed);
  std::vector<bound_problem> after = before;
  try {
    run(s, after, seed);
  } catch (const std::exception &e) {
    return ::testing::AssertionFailure() << s.strategy << ": " << e.what();
  }
  for (const std::size_t part : {input_gradient, weight_gradient}) {
    const std::string wrong = difference(before[part], after[part]);
    if (!wrong.empty()) return ::testing::AssertionFailure() << s.strategy << ": problem " << part << ": " << wrong;
  }
  const bound_problem &was = before[2], &is = after[2];
  if (!(was.a == is.a) || !is.c.gaps_untouched())
    return ::testing::AssertionFailure() << s.strategy << ": the sums changed something else";
  for (std::int64_t j = 0; f.dbias && j < f.out; ++j) {
    value sum = f.accumulate ? was.beta * was.c.at(0, j, 0) : 0;
    for (std::int64_t i = 0; i < f.rows; ++i) sum += was.a.at(0, f.dy_by_rows ? j : i, f.dy_by_rows ? i : j);
    if (is.c.at(0, j, 0) != sum)
      return ::testing::AssertionFailure()
             << s.strategy << ": sum " << j << " is " << is.c.at(0, j, 0).real() << " and not " << sum.real();
  }
  return ::testing::AssertionSuccess();
}

// Calls test(form) for many random forms.
template <class Test>
void for_forms(int count, Test &&test) {
  std::mt19937 random(11);
  const auto flip = [&] { return random() % 2 == 0; };
  const auto size = [&] { return std::int64_t(random() % 4 == 0 ? 1 + random() % 3 : 1 + random() % 150); };
  const auto place = [&] {
    constexpr sg_memory_kind all[] = {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE, SG_MEMORY_DEVICE};
    return all[random() % 3];
  };
  for (int i = 0; i < count; ++i) {
    linear_form f;
    f.rows = size(), f.in = size(), f.out = size(), f.pad = flip() ? 0 : std::int64_t(random() % 9);
    f.dy_by_rows = flip(), f.x_by_rows = flip(), f.w_by_rows = flip();
    f.dy_is_a[0] = flip(), f.dy_is_a[1] = flip();
    const auto results = 1 + random() % 7;
    f.dx = results & 1, f.dw = results & 2, f.dbias = results & 4, f.accumulate = flip();
    constexpr sg_dtype types[][2] = {{SG_DTYPE_F32, SG_DTYPE_F32},
                                     {SG_DTYPE_F64, SG_DTYPE_F64},
                                     {SG_DTYPE_F16, SG_DTYPE_F16},
                                     {SG_DTYPE_BF16, SG_DTYPE_F32},
                                     {SG_DTYPE_BF16, SG_DTYPE_BF16}};
    const auto &pair = types[random() % std::size(types)];
    f.type = pair[0], f.result = pair[1];
    f.at_dy = place(), f.at_x = place(), f.at_w = place(), f.at_dx = place(), f.at_dw = place(), f.at_dbias = place();
    test(f, std::uint32_t(i));
  }
}

TEST(linear, plans_of_every_form_are_right) {
  for_forms(300, [](const linear_form &f, std::uint32_t seed) {
    const auto plan = make_plan(form_of<linear_problems>(layer_of(f)), h200_with_three_staging_workers(), {});
    EXPECT_TRUE(is_right_layer(*plan, f, seed)) << text(f);
    EXPECT_GE(plan->predicted_seconds, 0);
    EXPECT_GE(plan->predicted_seconds * 1.0001, plan->bound_seconds) << text(f);
  });
}

TEST(linear, streams_of_every_form_are_right) {
  sweep cases(5);
  for_forms(400, [&](const linear_form &f, std::uint32_t seed) {
    if (!cases.tries_next()) return;
    const linear_problems layer = layer_of(f);
    if (!f.dx && !f.dw) return;
    const linear_blocks blocks{1 + seed % std::max<std::int64_t>(1, f.rows / rows_of_group(f.rows)), 1 + seed % 5,
                               seed % 2 == 0};
    for (const int lanes : {1, 4}) {
      const schedule s = build_linear_stream(layer, blocks, h200_with_three_staging_workers(), lanes);
      EXPECT_TRUE(is_right_layer(s, f, seed)) << text(f) << " " << lanes << " lanes";
    }
  });
}

TEST(linear, plans_on_cores_are_right) {
  for_forms(200, [](linear_form f, std::uint32_t seed) {
    f.at_dy = f.at_x = f.at_w = f.at_dx = f.at_dw = f.at_dbias = SG_MEMORY_DEVICE;
    const auto plan = make_plan(form_of<linear_problems>(layer_of(f)), cores(3), {});
    EXPECT_TRUE(is_right_layer(*plan, f, seed)) << text(f);
  });
}

// Where memory is short, the results are computed one after the other, in tiles; then there is no plan.
TEST(linear, memory_limits_are_kept) {
  linear_form f;
  f.rows = 512, f.in = 200, f.out = 160;
  plan_request request;
  const std::int64_t most = make_plan(form_of<linear_problems>(layer_of(f)), h200(), request)->device_bytes;
  for (const std::int64_t limit : {most, most / 2, most / 4, most / 8}) {
    request.memory_limit = limit;
    const auto plan = make_plan(form_of<linear_problems>(layer_of(f)), h200(), request);
    EXPECT_LE(plan->device_bytes, limit);
    EXPECT_TRUE(is_right_layer(*plan, f)) << limit;
  }
  request.memory_limit = 256;
  try {
    make_plan(form_of<linear_problems>(layer_of(f)), h200(), request);
    FAIL();
  } catch (const error &e) {
    EXPECT_EQ(SG_STATUS_OUT_OF_MEMORY, e.status());
    EXPECT_NE(nullptr, std::strstr(e.what(), "bytes")) << e.what();
  }
}

double ratio_to_bound(const linear_form &f) {
  plan_request request;
  const auto plan = make_plan(form_of<linear_problems>(layer_of(f)), h200(), request);
  EXPECT_TRUE(check_hazards(*plan).empty());
  return plan->predicted_seconds / plan->bound_seconds;
}

// dY crosses the link once: three matrices in and two out, both ways at once. With dW out x in its blocks are not
// contiguous in host memory.
TEST(linear, large_layers_reach_the_bound_of_the_link) {
  linear_form f;
  f.rows = f.in = f.out = 8192;
  f.type = f.result = SG_DTYPE_BF16;
  EXPECT_LE(ratio_to_bound(f), 1.1);
  f.accumulate = true;
  EXPECT_LE(ratio_to_bound(f), 1.1);
  f.accumulate = false;
  f.x_by_rows = false;
  EXPECT_LE(ratio_to_bound(f), 1.1);
  f.x_by_rows = true, f.w_by_rows = false, f.dy_is_a[1] = false;  // W and dW out x in
  EXPECT_LE(ratio_to_bound(f), 1.35);
  f.at_dy = f.at_x = f.at_w = f.at_dx = f.at_dw = f.at_dbias = SG_MEMORY_DEVICE;
  EXPECT_LE(ratio_to_bound(f), 1.2);
}

// Gradients that each fill less than half of the device run side by side.
TEST(linear, small_gradients_share_the_device) {
  linear_form f;
  f.rows = 1024, f.in = 1024, f.out = 4096;
  f.at_dy = f.at_x = f.at_w = f.at_dx = f.at_dw = f.at_dbias = SG_MEMORY_DEVICE;
  plan_request request;
  f.type = f.result = SG_DTYPE_BF16;
  const auto small = make_plan(form_of<linear_problems>(layer_of(f)), h200(), request);
  EXPECT_LT(1, small->lanes[int(lane_kind::compute)]);
  f.rows = f.in = f.out = 8192;
  EXPECT_EQ(1, make_plan(form_of<linear_problems>(layer_of(f)), h200(), request)->lanes[int(lane_kind::compute)]);
}

}  // namespace
}  // namespace sg::test
