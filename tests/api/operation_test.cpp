// SPDX-License-Identifier: Apache-2.0
// Operations by sg_run_async: as by their own functions; refused calls.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t size = 8;

class operations : public on_each_device {
 protected:
  void SetUp() override {
    on_each_device::SetUp();
    for (float *&each : data_) {
      void *at = nullptr;
      EXPECT_OK(sg_buffer_create(context_, sizeof(image), nullptr, buffers_.emplace_back().out()));
      EXPECT_OK(sg_buffer_data(buffers_.back(), &at));
      each = static_cast<float *>(at);
      put(each);
    }
  }
  using image = std::array<float, size * size>;
  void put(float *to) {
    image values;
    for (float &each : values) each = float(random_.real());
    EXPECT_OK(sg_copy(context_, to, values.data(), sizeof values, nullptr));
  }
  image get(const float *from) {
    image values;
    EXPECT_OK(sg_copy(context_, values.data(), from, sizeof values, nullptr));
    return values;
  }
  sg_matrix matrix(int index) { return {data_[index], size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR}; }
  static sg_operation_desc of(sg_operation operation, const void *desc, std::int32_t count = 1) {
    sg_operation_desc made = SG_OPERATION_DESC_INIT;
    made.operation = operation, made.desc = desc, made.count = count;
    return made;
  }
  void run(const sg_operation_desc &what, const sg_submit *submit = nullptr) {
    job done;
    ASSERT_OK(sg_run_async(context_, &what, submit, done.out()));
    ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  }
  void refused(const sg_operation_desc &what, const char *text) {
    sg_job *none = reinterpret_cast<sg_job *>(1);
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_run_async(context_, &what, nullptr, &none));
    EXPECT_EQ(nullptr, none);
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  }

  random_source random_{3};
  std::vector<buffer> buffers_;
  float *data_[5];
};

TEST_P(operations, compute_what_their_own_functions_do) {
  sg_softmax_desc softmax = SG_SOFTMAX_DESC_INIT;
  softmax.x = matrix(0), softmax.y = matrix(1);
  run(of(SG_OPERATION_SOFTMAX, &softmax));
  softmax.y = matrix(2);
  ASSERT_OK(sg_softmax(context_, &softmax, nullptr));
  EXPECT_EQ(get(data_[2]), get(data_[1]));

  sg_gemm_desc gemms[2] = {SG_GEMM_DESC_INIT, SG_GEMM_DESC_INIT};
  gemms[0].a = matrix(0), gemms[0].b = matrix(1), gemms[0].c = matrix(2);
  gemms[1].a = matrix(1), gemms[1].b = matrix(0), gemms[1].c = matrix(3);
  run(of(SG_OPERATION_GEMM, gemms, 2));
  const image first = get(data_[2]), second = get(data_[3]);
  put(data_[2]), put(data_[3]);
  job done;
  ASSERT_OK(sg_gemm_grouped_async(context_, gemms, 2, nullptr, done.out()));
  ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(get(data_[2]), first);
  EXPECT_EQ(get(data_[3]), second);
  run(of(SG_OPERATION_GEMM, &gemms[0]));
  const image alone = get(data_[2]);
  put(data_[2]);
  ASSERT_OK(sg_gemm_async(context_, &gemms[0], nullptr, done.out()));
  ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(get(data_[2]), alone);

  sg_copy_desc copy = SG_COPY_DESC_INIT;
  copy.dst = data_[4], copy.src = data_[3], copy.width = sizeof(image);
  run(of(SG_OPERATION_COPY, &copy));
  EXPECT_EQ(second, get(data_[4]));
  run(of(SG_OPERATION_MARKER, nullptr));
}

TEST_P(operations, are_recorded) {
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context_, graph.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_axpby_desc axpby = SG_AXPBY_DESC_INIT;
  axpby.a = matrix(0), axpby.c = matrix(1), axpby.beta.re = 0;
  const sg_operation_desc what = of(SG_OPERATION_AXPBY, &axpby);
  ASSERT_OK(sg_run_async(context_, &what, &record, nullptr));
  axpby.c = matrix(2);
  ASSERT_OK(sg_graph_update(graph, 0, &what));
  job done;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, done.out()));
  ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(get(data_[0]), get(data_[2]));
}

TEST_P(operations, refused_calls) {
  sg_norm_desc norm = SG_NORM_DESC_INIT;
  norm.x = matrix(0), norm.y = matrix(1), norm.epsilon = -1;
  refused(of(SG_OPERATION_NORM, &norm), "operation->desc->epsilon is -1");
  refused(of(SG_OPERATION_NORM, nullptr), "operation->desc is NULL");
  refused(of(SG_OPERATION_NORM, &norm, 2), "operation->count is 2");
  refused(of(SG_OPERATION_GEMM, &norm, 0), "operation->count is 0");
  refused(of(static_cast<sg_operation>(1000), &norm), "operation->operation is 1000");
  sg_operation_desc short_one = of(SG_OPERATION_NORM, &norm);
  short_one.struct_size = 4;
  refused(short_one, "operation");
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_run_async(context_, nullptr, nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_run_async(nullptr, &short_one, nullptr, nullptr));
}

// What a call without _async has computed when it returns.
TEST_P(operations, waiting_forms) {
  std::vector<float> a(size * size), b(a), c(a), rows(a), product(a);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(i % 5), b[i] = float(i % 3);
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j)
      for (std::size_t k = 0; k < size; ++k) product[i * size + j] += a[i * size + k] * b[k * size + j];
  const auto view = [](std::vector<float> &of) {
    return sg_matrix{of.data(), size, size, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  };
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = view(a), desc.b = view(b), desc.c = view(c);
  const sg_operation_desc gemm = of(SG_OPERATION_GEMM, &desc);
  const auto expect_product = [&](const char *by) {
    EXPECT_EQ(product, c) << by;
    std::fill(c.begin(), c.end(), -1.0f);
  };
  ASSERT_OK(sg_run(context_, &gemm, nullptr));
  expect_product("sg_run");
  ASSERT_OK(sg_gemm_grouped(context_, &desc, 1, nullptr));
  expect_product("sg_gemm_grouped");
  ASSERT_OK(sg_sgemm(context_, SG_LAYOUT_ROW_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_N, size, size, size, 1, a.data(), size,
                     b.data(), size, 0, c.data(), size, nullptr));
  expect_product("sg_sgemm");
  const std::vector<double> wide(a.begin(), a.end()), also(b.begin(), b.end());
  std::vector<double> sums(a.size());
  ASSERT_OK(sg_dgemm(context_, SG_LAYOUT_ROW_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_N, size, size, size, 1, wide.data(),
                     size, also.data(), size, 0, sums.data(), size, nullptr));
  EXPECT_EQ(product, std::vector<float>(sums.begin(), sums.end()));
  plan planned;
  ASSERT_OK(sg_plan_create(context_, &gemm, nullptr, planned.out()));
  ASSERT_OK(sg_plan_run(planned, &gemm, nullptr));
  expect_product("sg_plan_run");
  owned<sg_graph, sg_graph_release> recorded;
  ASSERT_OK(sg_graph_create(context_, recorded.out()));
  sg_submit into = SG_SUBMIT_INIT;
  into.graph = recorded;
  ASSERT_OK(sg_run(context_, &gemm, &into));
  EXPECT_EQ(-1.0f, c[0]) << "it is recorded only";
  ASSERT_OK(sg_graph_run(recorded, nullptr));
  expect_product("sg_graph_run");
  constexpr std::uint64_t half = size / 2 * sizeof(float), pitch = size * sizeof(float);
  ASSERT_OK(sg_copy_2d(context_, rows.data(), pitch, a.data(), pitch, half, size, nullptr));
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(i % size < size / 2 ? a[i] : 0, rows[i]);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_run(context_, nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_graph_run(nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_plan_run(nullptr, &gemm, nullptr));
}

ON_EACH_DEVICE(operations);

}  // namespace
}  // namespace sg_test
