// SPDX-License-Identifier: Apache-2.0
// Operations by sg_operation_async: as by their own functions; refused calls.
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
    ASSERT_OK(sg_operation_async(context_, &what, submit, done.out()));
    ASSERT_OK(sg_job_wait(done, SG_FOREVER));
  }
  void refused(const sg_operation_desc &what, const char *text) {
    sg_job *none = reinterpret_cast<sg_job *>(1);
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_operation_async(context_, &what, nullptr, &none));
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
  ASSERT_OK(sg_job_wait(done, SG_FOREVER));
  EXPECT_EQ(get(data_[2]), first);
  EXPECT_EQ(get(data_[3]), second);
  run(of(SG_OPERATION_GEMM, &gemms[0]));
  const image alone = get(data_[2]);
  put(data_[2]);
  ASSERT_OK(sg_gemm_async(context_, &gemms[0], nullptr, done.out()));
  ASSERT_OK(sg_job_wait(done, SG_FOREVER));
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
  ASSERT_OK(sg_operation_async(context_, &what, &record, nullptr));
  axpby.c = matrix(2);
  ASSERT_OK(sg_graph_update(graph, 0, &what));
  job done;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, done.out()));
  ASSERT_OK(sg_job_wait(done, SG_FOREVER));
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
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_operation_async(context_, nullptr, nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_operation_async(nullptr, &short_one, nullptr, nullptr));
}

ON_EACH_DEVICE(operations);

}  // namespace
}  // namespace sg_test
