// SPDX-License-Identifier: Apache-2.0
// Bias and activation through the public API: every type, shape, memory space, plan and kind of submission.
#include <array>
#include <cstring>

#include "support/gemm_case.hpp"
#include "support/gemm_plan.h"
#include "support/harness.hpp"

namespace sg_test {
namespace {

bool has(sg_dtype out, sg_activation activation) {
  if (out == SG_DTYPE_C64 || out == SG_DTYPE_C128) return activation == SG_ACTIVATION_NONE;
  return out != SG_DTYPE_I32 || activation != SG_ACTIVATION_GELU;
}

class epilogues : public on_each_device {
 protected:
  // The case with every activation that its type has, and with each shape of a bias and none.
  void check(gemm_case g) {
    for (const sg_activation activation : {SG_ACTIVATION_NONE, SG_ACTIVATION_RELU, SG_ACTIVATION_GELU})
      for (const int bias : {0, 1, 2}) {
        if (!has(g.out, activation)) continue;
        g.activation = activation;
        g.has_bias = bias > 0;
        g.bias_shape = bias == 2 ? SG_BIAS_PER_ROW : SG_BIAS_PER_COLUMN;
        ASSERT_EQ("", run_gemm_case(context_, g)) << g.text();
      }
  }
};

TEST_P(epilogues, every_type_and_layout) {
  constexpr sg_dtype types[][2] = {
      {SG_DTYPE_F64, SG_DTYPE_F64},      {SG_DTYPE_F32, SG_DTYPE_F32},    {SG_DTYPE_C64, SG_DTYPE_C64},
      {SG_DTYPE_C128, SG_DTYPE_C128},    {SG_DTYPE_F16, SG_DTYPE_F16},    {SG_DTYPE_F16, SG_DTYPE_F32},
      {SG_DTYPE_BF16, SG_DTYPE_BF16},    {SG_DTYPE_BF16, SG_DTYPE_F32},   {SG_DTYPE_I8, SG_DTYPE_I32},
      {SG_DTYPE_F8_E4M3, SG_DTYPE_BF16}, {SG_DTYPE_F8_E5M2, SG_DTYPE_F32}};
  for (const auto &type : types)
    for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR})
      for (const double beta : {0.0, 2.0})
        for (const std::int64_t k : {0, 19}) {
          gemm_case g;
          g.in = type[0], g.out = type[1];
          g.m = 21, g.n = 34, g.k = k, g.pad = 1;
          g.layout_c = layout;
          g.beta = {beta, 0};
          check(g);
          if (HasFatalFailure()) return;
        }
}

TEST_P(epilogues, every_memory_space) {
  for (const sg_memory_kind operands : memory_kinds)
    for (const sg_memory_kind bias : memory_kinds)
      for (const std::int64_t k : {0, 17})
        for (const double beta : {0.0, 1.0}) {
          gemm_case g;
          g.m = 33, g.n = 20, g.k = k;
          g.beta = {beta, 0};
          g.place_a = g.place_b = g.place_c = operands;
          g.place_bias = bias;
          check(g);
          if (HasFatalFailure()) return;
        }
}

// Whichever command adds which terms, the epilogue is applied last and once.
TEST_P(epilogues, every_split_and_tile) {
  for (const sg_split split : {SG_SPLIT_NONE, SG_SPLIT_M, SG_SPLIT_N, SG_SPLIT_K, SG_SPLIT_AUTO})
    for (const sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_C64, SG_DTYPE_I8})
      for (const sg_memory_kind place : {SG_MEMORY_DEVICE, SG_MEMORY_PAGEABLE}) {
        gemm_case g;
        g.in = type, g.out = type == SG_DTYPE_I8 ? SG_DTYPE_I32 : type;
        g.m = 35, g.n = 42, g.k = 41;
        g.beta = {-1, 0};
        g.place_a = g.place_b = g.place_c = place;
        g.options.split = split;
        g.options.parts = split == SG_SPLIT_NONE || split == SG_SPLIT_AUTO ? 0 : 3;
        if (split == SG_SPLIT_AUTO) g.options.tile_m = 13, g.options.tile_n = 11, g.options.tile_k = 9;
        if (split == SG_SPLIT_AUTO && place == SG_MEMORY_DEVICE) continue;
        check(g);
        if (HasFatalFailure()) return;
      }
}

TEST_P(epilogues, integers_are_exact) {
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16})
    for (const sg_split split : {SG_SPLIT_AUTO, SG_SPLIT_K})
      for (const sg_activation activation : {SG_ACTIVATION_NONE, SG_ACTIVATION_RELU}) {
        gemm_case g;
        g.integers = g.has_bias = true;
        g.in = g.out = type;
        g.m = 40, g.n = 30, g.k = 10;
        g.beta = {1, 0};
        g.activation = activation;
        g.options.split = split;
        g.options.parts = split == SG_SPLIT_K ? 3 : 0;
        ASSERT_EQ("", run_gemm_case(context_, g)) << g.text();
      }
}

TEST_P(epilogues, batches) {
  for (const batch_form form : {batch_form::strided, batch_form::shared_a, batch_form::pointers})
    for (const bool own : {false, true})
      for (const sg_memory_kind place : memory_kinds)
        for (const std::int64_t k : {0, 11})
          for (const sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_F16}) {
            gemm_case g;
            g.in = g.out = type;
            g.m = 9, g.n = 8, g.k = k;
            g.form = form, g.batch = 5, g.own_bias = own;
            g.beta = {1, 0};
            g.layout_c = SG_LAYOUT_COLUMN_MAJOR;
            g.place_a = g.place_b = g.place_c = g.place_bias = place;
            check(g);
            if (HasFatalFailure()) return;
          }
}

// An f64 GEMM and its expected result.
struct layer {
  std::array<double, 4> x{1, -2, 3, -4}, w{1, 2, 3, 4}, y{};
  std::array<double, 2> b{1, -100};

  sg_gemm_desc desc(sg_activation activation) {
    sg_gemm_desc d = make_gemm(x.data(), w.data(), y.data(), 2, 2, 2);
    d.bias = b.data();
    d.activation = activation;
    return d;
  }
  // x * w is -5, -6; -9, -10.
  std::array<double, 4> expected(bool relu) const {
    std::array<double, 4> r{-5 + b[0], -6 + b[1], -9 + b[0], -10 + b[1]};
    for (double &each : r) each = relu && each < 0 ? 0 : each;
    return r;
  }
};

// A job that writes a bias runs before its readers, and one that overwrites it after them.
TEST_P(epilogues, a_bias_orders_jobs) {
  layer l;
  double one = 1, values[2] = {50, 60};
  for (int round = 0; round < 20; ++round) {
    l.b = {0, 0};
    const sg_gemm_desc first = make_gemm(&one, values, l.b.data(), 1, 2, 1);  // b = values
    sg_gemm_desc last = first;
    last.beta.re = 1;  // b = 2 * values
    job jobs[3];
    const sg_gemm_desc middle = l.desc(SG_ACTIVATION_NONE);
    ASSERT_OK(sg_gemm_async(context_, &first, nullptr, jobs[0].out()));
    ASSERT_OK(sg_gemm_async(context_, &middle, nullptr, jobs[1].out()));
    ASSERT_OK(sg_gemm_async(context_, &last, nullptr, jobs[2].out()));
    for (const job &each : jobs) ASSERT_OK(sg_job_wait(each, SG_FOREVER, nullptr));
    EXPECT_EQ((std::array<double, 4>{45, 54, 41, 50}), l.y);
    EXPECT_EQ((std::array<double, 2>{100, 120}), l.b);
  }
}

// GEMMs queued at the same time may form one batch; each keeps its own epilogue.
TEST_P(epilogues, many_small_gemms) {
  std::vector<layer> layers(300);
  std::vector<job> jobs(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].b = {double(i) - 100, double(i % 20)};
    sg_gemm_desc desc = layers[i].desc(static_cast<sg_activation>(i % 2));
    if (i % 5 == 0) desc.bias = nullptr, layers[i].b = {0, 0};
    ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, jobs[i].out()));
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    ASSERT_OK(sg_job_wait(jobs[i], SG_FOREVER, nullptr));
    EXPECT_EQ(layers[i].expected(i % 2), layers[i].y) << i;
  }
}

TEST_P(epilogues, groups) {
  std::vector<layer> layers(9);
  std::vector<sg_gemm_desc> descs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].b[0] += double(i);
    descs.push_back(layers[i].desc(static_cast<sg_activation>(i % 2)));
  }
  job all;
  ASSERT_OK(sg_gemm_grouped_async(context_, descs.data(), static_cast<std::int32_t>(descs.size()), nullptr, all.out()));
  ASSERT_OK(sg_job_wait(all, SG_FOREVER, nullptr));
  for (std::size_t i = 0; i < layers.size(); ++i) EXPECT_EQ(layers[i].expected(i % 2), layers[i].y) << i;
  // The bias of one may not be the C of another.
  descs[3].bias = descs[5].c.data;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_grouped_async(context_, descs.data(), 9, nullptr, nullptr));
}

TEST_P(epilogues, graphs) {
  layer l, other;
  other.b = {7, 1000};
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  const sg_gemm_desc recorded = l.desc(SG_ACTIVATION_RELU);
  ASSERT_OK(sg_gemm_async(context_, &recorded, &record, nullptr));
  const auto run = [&] {
    job all;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, all.out()));
    ASSERT_OK(sg_job_wait(all, SG_FOREVER, nullptr));
  };
  run();
  EXPECT_EQ(l.expected(true), l.y);
  l.b = {20, 30};
  run();
  EXPECT_EQ(l.expected(true), l.y) << "the bias is read by each run";
  sg_gemm_desc changed = other.desc(SG_ACTIVATION_RELU);
  ASSERT_OK(update_recorded(graph, 0, SG_OPERATION_GEMM, &changed));
  run();
  EXPECT_EQ(other.expected(true), other.y);
  changed.activation = SG_ACTIVATION_NONE;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, update_recorded(graph, 0, SG_OPERATION_GEMM, &changed));
  changed = other.desc(SG_ACTIVATION_RELU);
  changed.bias_shape = SG_BIAS_PER_ROW;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, update_recorded(graph, 0, SG_OPERATION_GEMM, &changed));
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(epilogues, plans) {
  layer l, other;
  other.b = {-3, 4};
  sg_gemm_desc desc = l.desc(SG_ACTIVATION_RELU);
  plan made;
  ASSERT_OK(create_gemm_plan(context_, &desc, nullptr, made.out()));
  desc = other.desc(SG_ACTIVATION_RELU);
  job done;
  ASSERT_OK(run_gemm_plan(made, &desc, nullptr, done.out()));
  ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(other.expected(true), other.y);
  desc.activation = SG_ACTIVATION_GELU;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, run_gemm_plan(made, &desc, nullptr, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "bias or activation")) << sg_last_error_message();
  desc = other.desc(SG_ACTIVATION_RELU);
  desc.bias = nullptr;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, run_gemm_plan(made, &desc, nullptr, nullptr));
}

// A plan made before there are matrices learns from the bias address whether there is a bias, and in which memory
// space.
TEST_P(epilogues, a_plan_without_matrices) {
  layer l;
  sg_gemm_desc desc = l.desc(SG_ACTIVATION_NONE);
  desc.a.data = desc.b.data = desc.c.data = nullptr;
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.place_a = options.place_b = options.place_c = SG_MEMORY_PAGEABLE;
  plan made;
  ASSERT_OK(create_gemm_plan(context_, &desc, &options, made.out()));
  desc = l.desc(SG_ACTIVATION_NONE);
  job done;
  ASSERT_OK(run_gemm_plan(made, &desc, nullptr, done.out()));
  ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(l.expected(false), l.y);
}

ON_EACH_DEVICE(epilogues);

}  // namespace
}  // namespace sg_test
