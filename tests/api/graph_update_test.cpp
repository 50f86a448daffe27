// SPDX-License-Identifier: Apache-2.0
// sg_graph_update: new operands for each kind of recorded operation, and the updates it refuses.
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "support/gemm_plan.h"
#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

class graph_updates : public on_each_device {
 protected:
  static constexpr std::size_t matrices = 12;

  void SetUp() override {
    on_each_device::SetUp();
    ASSERT_OK(sg_graph_create(context_, &graph_));
    record_.graph = graph_;
    ASSERT_OK(sg_buffer_create(context_, matrices * 4 * sizeof(double), nullptr, memory_.out()));
    void *data = nullptr;
    ASSERT_OK(sg_buffer_data(memory_, &data));
    data_ = static_cast<double *>(data);
    std::array<double, matrices * 4> values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = double(i + 1);
    ASSERT_OK(sg_copy(context_, data_, values.data(), sizeof values, nullptr));
  }
  void TearDown() override { EXPECT_OK(sg_graph_release(graph_)); }

  // One of the 2 x 2 matrices in device memory. Matrix i begins with 4i + 1, 4i + 2, 4i + 3, 4i + 4.
  double *at(std::size_t i) const { return data_ + 4 * i; }
  static std::array<double, 4> initial(std::size_t i) {
    const auto first = double(4 * i);
    return {first + 1, first + 2, first + 3, first + 4};
  }
  std::array<double, 4> fetch(std::size_t i) {
    std::array<double, 4> values{};
    EXPECT_OK(sg_copy(context_, values.data(), at(i), sizeof values, nullptr));
    return values;
  }
  static std::array<double, 4> times(const std::array<double, 4> &a, const std::array<double, 4> &b) {
    return {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
  }
  void run() {
    job all;
    ASSERT_OK(sg_graph_run_async(graph_, nullptr, all.out()));
    ASSERT_OK(sg_job_wait(all, SG_FOREVER, nullptr));
  }
  sg_gemm_desc gemm(std::size_t a, std::size_t b, std::size_t c) const {
    return make_gemm(at(a), at(b), at(c), 2, 2, 2);
  }
  static sg_operation_desc of(const sg_gemm_desc *descs, std::int32_t count = 1) {
    sg_operation_desc desc = SG_OPERATION_DESC_INIT;
    desc.operation = SG_OPERATION_GEMM;
    desc.desc = descs;
    desc.count = count;
    return desc;
  }
  static sg_operation_desc of(const sg_copy_desc &copy) {
    sg_operation_desc desc = SG_OPERATION_DESC_INIT;
    desc.operation = SG_OPERATION_COPY;
    desc.desc = &copy;
    return desc;
  }
  static sg_operation_desc of(const sg_axpby_desc &axpby) {
    sg_operation_desc desc = SG_OPERATION_DESC_INIT;
    desc.operation = SG_OPERATION_AXPBY;
    desc.desc = &axpby;
    return desc;
  }
  sg_axpby_desc axpby(std::size_t a, std::size_t c) const {
    sg_axpby_desc desc = SG_AXPBY_DESC_INIT;
    desc.a = {at(a), 2, 2, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    desc.c = {at(c), 2, 2, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    return desc;
  }
  static sg_copy_desc copy(void *dst, const void *src, std::uint64_t width, std::uint64_t height = 1,
                           std::uint64_t dst_pitch = 0, std::uint64_t src_pitch = 0) {
    return {sizeof(sg_copy_desc), dst, src, width, height, dst_pitch, src_pitch};
  }
  // The update is refused with a message that contains the text.
  void refused(std::int32_t index, const sg_operation_desc &desc, const char *text) {
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph_, index, &desc));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  }

  sg_graph *graph_ = nullptr;
  sg_submit record_ = SG_SUBMIT_INIT;
  buffer memory_;
  double *data_ = nullptr;
};

TEST_P(graph_updates, a_gemm) {
  const sg_gemm_desc first = gemm(0, 1, 2);
  ASSERT_OK(sg_gemm_async(context_, &first, &record_, nullptr));
  run();
  EXPECT_EQ(times(initial(0), initial(1)), fetch(2));
  const sg_gemm_desc second = gemm(3, 4, 5);
  const sg_operation_desc desc = of(&second);
  ASSERT_OK(sg_graph_update(graph_, 0, &desc));
  run();
  EXPECT_EQ(times(initial(3), initial(4)), fetch(5));
}

TEST_P(graph_updates, a_batch) {
  const auto batch = [&](std::size_t a, std::size_t b, std::size_t c, std::int64_t count) {
    sg_gemm_desc desc = gemm(a, b, c);
    desc.batch = count;
    desc.stride_a = desc.stride_b = desc.stride_c = 4;
    return desc;
  };
  const sg_gemm_desc first = batch(0, 2, 4, 2);
  ASSERT_OK(sg_gemm_async(context_, &first, &record_, nullptr));
  run();
  EXPECT_EQ(times(initial(1), initial(3)), fetch(5));
  const sg_gemm_desc more = batch(0, 3, 6, 3);
  const sg_operation_desc desc = of(&more);
  ASSERT_OK(sg_graph_update(graph_, 0, &desc));
  run();
  EXPECT_EQ(times(initial(2), fetch(5)), fetch(8));
}

TEST_P(graph_updates, a_group) {
  const sg_gemm_desc first[] = {gemm(0, 1, 2), make_gemm(at(3), at(4), at(5), 1, 2, 1)};
  ASSERT_OK(sg_gemm_grouped_async(context_, first, 2, &record_, nullptr));
  run();
  EXPECT_EQ(times(initial(0), initial(1)), fetch(2));
  EXPECT_EQ(13 * 17, fetch(5)[0]);
  sg_gemm_desc second[] = {gemm(1, 0, 6), make_gemm(at(4), at(3), at(7), 1, 2, 1)};
  second[1].alpha.re = 2;
  sg_operation_desc desc = of(second, 2);
  ASSERT_OK(sg_graph_update(graph_, 0, &desc));
  run();
  EXPECT_EQ(times(initial(1), initial(0)), fetch(6));
  EXPECT_EQ(2 * 17 * 14, fetch(7)[1]);
  const std::array<double, 4> before = fetch(6);
  refused(0, of(second, 1), "operation->count is 1");
  refused(0, of(second, 3), "operation->count is 3");
  refused(0, of(nullptr, 2), "operation->desc is NULL");
  const sg_gemm_desc other_shape[] = {second[0], make_gemm(at(4), at(3), at(8), 2, 2, 1)};
  refused(0, of(other_shape, 2), "operation->desc differs from submission 0 of the graph in its sizes");
  const sg_gemm_desc overlapping[] = {second[0], make_gemm(at(6), at(3), at(8), 1, 2, 1)};
  refused(0, of(overlapping, 2), "overlap");
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, update_recorded(graph_, 0, SG_OPERATION_GEMM, second))
      << "a group is not one GEMM";
  run();
  EXPECT_EQ(before, fetch(6));
}

TEST_P(graph_updates, a_copy) {
  const std::uint64_t bytes = 4 * sizeof(double);
  ASSERT_OK(sg_copy_async(context_, at(0), at(1), bytes, &record_, nullptr));
  ASSERT_OK(sg_copy_2d_async(context_, at(2), 16, at(3), 32, 8, 2, &record_, nullptr));
  run();
  EXPECT_EQ(initial(1), fetch(0));
  EXPECT_EQ((std::array<double, 4>{13, 10, 17, 12}), fetch(2));
  const sg_copy_desc flat = copy(at(5), at(6), bytes), rows = copy(at(7), at(8), 8, 2, 16, 32);
  sg_operation_desc desc = of(flat);
  ASSERT_OK(sg_graph_update(graph_, 0, &desc));
  desc = of(rows);
  ASSERT_OK(sg_graph_update(graph_, 1, &desc));
  run();
  EXPECT_EQ(initial(6), fetch(5));
  EXPECT_EQ((std::array<double, 4>{33, 30, 37, 32}), fetch(7));
  refused(0, of(copy(at(5), at(6), bytes - 8)), "operation->desc->width is 24; submission 0 of the graph has 32");
  refused(0, of(copy(at(5), at(6), bytes, 2)), "operation->desc->height is 2");
  refused(1, of(copy(at(7), at(8), 8, 2, 8, 32)), "operation->desc->dst_pitch is 8");
  refused(1, of(copy(at(7), at(8), 8, 2, 16, 16)), "operation->desc->src_pitch is 16");
  refused(0, of(copy(nullptr, at(6), bytes)), "dst is NULL");
  refused(0, of(copy(at(5), at(5) + 1, bytes)), "overlap");
  desc.desc = nullptr;
  refused(0, desc, "operation->desc is NULL");
}

TEST_P(graph_updates, an_empty_copy) {
  ASSERT_OK(sg_copy_async(context_, nullptr, nullptr, 0, &record_, nullptr));
  const sg_copy_desc empty = copy(at(0), at(1), 0);
  const sg_operation_desc desc = of(empty);
  EXPECT_OK(sg_graph_update(graph_, 0, &desc));
  refused(0, of(copy(at(0), at(1), 8)), "operation->desc->width is 8; submission 0 of the graph has 0");
  run();
  EXPECT_EQ(initial(0), fetch(0));
}

TEST_P(graph_updates, a_scale_and_add) {
  const sg_axpby_desc first = axpby(0, 1);
  ASSERT_OK(sg_axpby_async(context_, &first, &record_, nullptr));
  run();
  EXPECT_EQ((std::array<double, 4>{6, 8, 10, 12}), fetch(1));
  sg_axpby_desc second = axpby(2, 3);
  second.alpha.re = 2;
  second.beta.re = 0;
  const sg_operation_desc desc = of(second);
  ASSERT_OK(sg_graph_update(graph_, 0, &desc));
  run();
  EXPECT_EQ((std::array<double, 4>{6, 8, 10, 12}), fetch(1));
  EXPECT_EQ((std::array<double, 4>{18, 20, 22, 24}), fetch(3));
  sg_axpby_desc wrong = second;
  wrong.a.rows = wrong.c.rows = 1;
  refused(0, of(wrong), "operation->desc differs from submission 0 of the graph in its sizes");
  wrong = second;
  wrong.activation = SG_ACTIVATION_RELU;
  refused(0, of(wrong), "in its sizes, types, strides, memory or options");
  wrong = second;
  wrong.a.data = wrong.c.data;
  refused(0, of(wrong), "operation->desc->a");
  wrong = second;
  wrong.c.data = nullptr;
  refused(0, of(wrong), "operation->desc->c");
  sg_operation_desc none = of(second);
  none.desc = nullptr;
  refused(0, none, "operation->desc is NULL");
  run();
  EXPECT_EQ((std::array<double, 4>{18, 20, 22, 24}), fetch(3));
}

// The limit of the stream, which the plans depend on, stays that of the recording.
TEST_P(graph_updates, layers_on_a_limited_stream) {
  owned<sg_stream, sg_stream_release> limited;
  const sg_status made = create_stream(context_, 0, 1, limited.out());
  if (made == SG_STATUS_UNSUPPORTED) GTEST_SKIP() << sg_last_error_message();
  ASSERT_OK(made);
  constexpr std::int64_t tokens = 256, width = 16;
  constexpr std::uint64_t size = tokens * width * sizeof(double);
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(context_, 4 * size, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  const auto heads = [&](int i) { return sg_heads{static_cast<char *>(data) + std::uint64_t(i) * size, 0, 0, width}; };
  sg_attention_desc attention = SG_ATTENTION_DESC_INIT;
  attention.dtype = SG_DTYPE_F64;
  attention.batch = attention.heads = attention.kv_heads = 1;
  attention.queries = attention.keys = tokens, attention.width = attention.value_width = width;
  attention.q = heads(0), attention.k = heads(1), attention.v = heads(2), attention.o = heads(3);
  sg_recurrent_desc recurrent = SG_RECURRENT_DESC_INIT;
  recurrent.dtype = SG_DTYPE_F64;
  recurrent.steps = 4, recurrent.batch = 8, recurrent.inputs = recurrent.hidden = 4;
  recurrent.x = {data, 32, 4}, recurrent.y = {static_cast<char *>(data) + size, 32, 4};
  recurrent.w_ih = static_cast<char *>(data) + 2 * size, recurrent.w_hh = static_cast<char *>(data) + 3 * size;
  record_.stream = limited;
  ASSERT_OK(sg_attention_async(context_, &attention, &record_, nullptr));
  ASSERT_OK(sg_recurrent_async(context_, &recurrent, &record_, nullptr));
  sg_operation_desc desc = SG_OPERATION_DESC_INIT;
  desc.operation = SG_OPERATION_ATTENTION, desc.desc = &attention;
  EXPECT_OK(sg_graph_update(graph_, 0, &desc));
  desc.operation = SG_OPERATION_RECURRENT, desc.desc = &recurrent;
  EXPECT_OK(sg_graph_update(graph_, 1, &desc));
  run();
}

// A sum over no rows is 0, or adds nothing.
TEST_P(graph_updates, gradients_of_no_rows) {
  sg_linear_backward_desc of = SG_LINEAR_BACKWARD_DESC_INIT;
  const auto matrix = [](void *at, std::int64_t rows, std::int64_t cols) {
    return sg_matrix{at, rows, cols, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  };
  of.dy = matrix(nullptr, 0, 2), of.x = matrix(nullptr, 0, 2);
  of.dw = matrix(at(1), 2, 2);
  of.dbias = at(2), of.dbias_dtype = SG_DTYPE_F64;
  sg_operation_desc desc = SG_OPERATION_DESC_INIT;
  desc.operation = SG_OPERATION_LINEAR_BACKWARD, desc.desc = &of;
  for (const std::int32_t recorded : {1, 0}) {
    of.accumulate = recorded;
    ASSERT_OK(sg_linear_backward_async(context_, &of, &record_, nullptr));
  }
  for (const std::int32_t index : {0, 1})
    for (const std::int32_t accumulate : {0, 1, 1, 0, 1}) {
      of.accumulate = accumulate;
      ASSERT_OK(sg_graph_update(graph_, index, &desc)) << index << accumulate;
    }
  run();
  EXPECT_EQ(initial(1), fetch(1));
  of.accumulate = 0;
  ASSERT_OK(sg_graph_update(graph_, 0, &desc));
  run();
  EXPECT_EQ((std::array<double, 4>{}), fetch(1));
  EXPECT_EQ((std::array<double, 4>{0, 0, initial(2)[2], initial(2)[3]}), fetch(2));
}

TEST_P(graph_updates, a_run_of_a_plan) {
  const sg_gemm_desc first = gemm(0, 1, 2), second = gemm(3, 4, 5);
  sg_plan *plan = nullptr;
  ASSERT_OK(create_gemm_plan(context_, &first, nullptr, &plan));
  ASSERT_OK(run_gemm_plan(plan, &first, &record_, nullptr));
  ASSERT_OK(sg_plan_release(plan));
  const sg_operation_desc desc = of(&second);
  ASSERT_OK(sg_graph_update(graph_, 0, &desc));
  run();
  EXPECT_EQ(times(initial(3), initial(4)), fetch(5));
  EXPECT_EQ(initial(2), fetch(2));
}

TEST_P(graph_updates, a_gemm_without_work_and_back) {
  sg_gemm_desc desc = gemm(0, 1, 2);
  ASSERT_OK(sg_gemm_async(context_, &desc, &record_, nullptr));
  desc.alpha.re = 0;
  desc.beta.re = 1;
  const sg_operation_desc update = of(&desc);
  ASSERT_OK(sg_graph_update(graph_, 0, &update));
  run();
  EXPECT_EQ(initial(2), fetch(2));
  desc.alpha.re = 1;
  desc.beta.re = 0;
  ASSERT_OK(sg_graph_update(graph_, 0, &update));
  run();
  EXPECT_EQ(times(initial(0), initial(1)), fetch(2));
}

// The recorded submissions are reordered by their new operands.
TEST_P(graph_updates, new_operands_reorder_the_graph) {
  const sg_gemm_desc gemm_desc = gemm(0, 1, 2);
  const sg_axpby_desc sum = axpby(3, 4);
  ASSERT_OK(sg_gemm_async(context_, &gemm_desc, &record_, nullptr));
  ASSERT_OK(sg_axpby_async(context_, &sum, &record_, nullptr));
  sg_axpby_desc after = axpby(2, 4);
  after.beta.re = 0;
  const sg_operation_desc desc = of(after);
  ASSERT_OK(sg_graph_update(graph_, 1, &desc));
  for (int i = 0; i < 20; ++i) {
    run();
    ASSERT_EQ(times(initial(0), initial(1)), fetch(4));
  }
}

TEST_P(graph_updates, a_refused_update_leaves_the_graph_unchanged) {
  const sg_gemm_desc gemm_desc = gemm(0, 1, 2);
  const sg_copy_desc copy_desc = copy(at(3), at(4), 32);
  const sg_axpby_desc sum = axpby(5, 6);
  refused(0, of(&gemm_desc), "index is 0; nothing is recorded");
  ASSERT_OK(sg_gemm_async(context_, &gemm_desc, &record_, nullptr));
  ASSERT_OK(sg_copy_async(context_, at(3), at(4), 32, &record_, nullptr));
  ASSERT_OK(sg_axpby_async(context_, &sum, &record_, nullptr));
  sg_operation_desc desc = SG_OPERATION_DESC_INIT;
  refused(0, desc, "operation->operation is 0, a marker");
  desc.operation = static_cast<sg_operation>(77);
  refused(0, desc, "operation->operation is 77");
  refused(0, of(copy_desc), "index is 0, which is a GEMM and not a copy");
  refused(1, of(sum), "index is 1, which is a copy and not a scale-and-add");
  refused(2, of(&gemm_desc), "index is 2, which is a scale-and-add and not a GEMM");
  refused(3, of(&gemm_desc), "index is 3");
  refused(-1, of(&gemm_desc), "index is -1");
  const sg_gemm_desc overlapping = gemm(0, 1, 1), smaller = make_gemm(at(0), at(1), at(2), 1, 2, 2);
  refused(0, of(&overlapping), "operation->desc->c overlaps operation->desc->b");
  refused(0, of(&smaller), "operation->desc differs from submission 0 of the graph in its sizes");
  refused(0, of(nullptr), "operation->desc is NULL");
  desc = of(&gemm_desc);
  desc.struct_size = 3;
  refused(0, desc, "operation");
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph_, 0, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_graph_update(nullptr, 0, &desc));
  run();
  EXPECT_EQ(times(initial(0), initial(1)), fetch(2));
  EXPECT_EQ(initial(4), fetch(3));
  EXPECT_EQ((std::array<double, 4>{46, 48, 50, 52}), fetch(6));
}

TEST_P(graph_updates, runs_in_flight_keep_their_operands) {
  if (std::string(GetParam()) != "cpu") GTEST_SKIP() << "a gate blocks a worker of the cpu";
  stream in;
  ASSERT_OK(sg_stream_create(context_, nullptr, in.out()));
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = in;
  const sg_gemm_desc group[] = {gemm(0, 1, 2)}, other[] = {gemm(0, 1, 3)};
  const sg_axpby_desc sum = axpby(4, 5), other_sum = axpby(4, 6);
  ASSERT_OK(sg_gemm_grouped_async(context_, group, 1, &record_, nullptr));
  ASSERT_OK(sg_axpby_async(context_, &sum, &record_, nullptr));
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  job first;
  ASSERT_OK(sg_graph_run_async(graph_, &options, first.out()));
  sg_operation_desc desc = of(other);
  ASSERT_OK(sg_graph_update(graph_, 0, &desc));
  desc = of(other_sum);
  ASSERT_OK(sg_graph_update(graph_, 1, &desc));
  gated.open();
  ASSERT_OK(sg_job_wait(first, SG_FOREVER, nullptr));
  EXPECT_EQ(times(initial(0), initial(1)), fetch(2));
  EXPECT_EQ(initial(3), fetch(3));
  EXPECT_EQ((std::array<double, 4>{38, 40, 42, 44}), fetch(5));
  EXPECT_EQ(initial(6), fetch(6));
  run();
  EXPECT_EQ(times(initial(0), initial(1)), fetch(3));
  EXPECT_EQ((std::array<double, 4>{42, 44, 46, 48}), fetch(6));
}

std::size_t count_threads() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

// References from a graph to its plans, from plans and runs to jobs, and from jobs to streams and the context form no
// cycle: once all handles are released, whatever the order, the context's threads end.
TEST_P(graph_updates, releasing_all_handles_frees_the_context) {
  constexpr std::int64_t n = 100;
  std::vector<double> a(n * n, 1), b(n * n, 1), c(n * n), d(n * n);
  const auto use = [&] {
    context own = open_context(GetParam());
    stream in;
    ASSERT_OK(sg_stream_create(own, nullptr, in.out()));
    sg_graph *graph = nullptr;
    ASSERT_OK(sg_graph_create(own, &graph));
    sg_submit record = SG_SUBMIT_INIT;
    record.graph = graph;
    record.stream = in;
    sg_gemm_desc desc = make_gemm(a.data(), b.data(), c.data(), n, n, n);
    plan made;
    ASSERT_OK(create_gemm_plan(own, &desc, nullptr, made.out()));
    ASSERT_OK(sg_gemm_async(own, &desc, &record, nullptr));
    ASSERT_OK(run_gemm_plan(made, &desc, &record, nullptr));
    const sg_gemm_desc group[] = {make_gemm(c.data(), b.data(), d.data(), n, n, n)};
    ASSERT_OK(sg_gemm_grouped_async(own, group, 1, &record, nullptr));
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = in;
    for (int i = 0; i < 3; ++i) {
      job run_of_graph;
      ASSERT_OK(sg_graph_run_async(graph, &options, run_of_graph.out()));
      const sg_operation_desc update = of(&desc);
      ASSERT_OK(sg_graph_update(graph, i % 2, &update));
    }
    ASSERT_OK(sg_graph_release(graph));
    ASSERT_OK(sg_context_synchronize(own, SG_FOREVER));
  };
  use();  // libraries keep threads of their own from the first context on
  for (int i = 0; i < 100; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::size_t threads = count_threads();
  for (int i = 0; i < 5; ++i) use();
  for (int i = 0; i < 1000 && count_threads() > threads; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(count_threads(), threads);
}

ON_EACH_DEVICE(graph_updates);

}  // namespace
}  // namespace sg_test
