// SPDX-License-Identifier: Apache-2.0
// Shared by every test of the public API: owned handles, contexts by name, gates, checks that print the message.
#pragma once

#include <gtest/gtest.h>
#include <streamgemm/streamgemm.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/gate.h"
#include "support/owned.hpp"

namespace sg_test {

// The message is read after the call and belongs to the failed call.
#define EXPECT_STATUS(expected, call) \
  EXPECT_STREQ(sg_status_name(expected), sg_status_name(call)) << sg_last_error_message() << ' '
#define ASSERT_STATUS(expected, call) \
  ASSERT_STREQ(sg_status_name(expected), sg_status_name(call)) << sg_last_error_message() << ' '
#define EXPECT_OK(call) EXPECT_STATUS(SG_STATUS_OK, call)
#define ASSERT_OK(call) ASSERT_STATUS(SG_STATUS_OK, call)

inline constexpr std::int64_t ms = 1'000'000;  // in nanoseconds, as the API counts
inline constexpr sg_memory_kind memory_kinds[] = {SG_MEMORY_PAGEABLE, SG_MEMORY_PINNED, SG_MEMORY_DEVICE};

inline context open_context(const char *device, std::int32_t lanes = 0,
                            std::uint32_t flags = SG_CONTEXT_CHECK_HAZARDS) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = device;
  options.compute_lanes = lanes;
  options.flags = flags;
  context result;
  EXPECT_OK(sg_context_create(&options, result.out()));
  return result;
}

// A stream of any device with a priority and a limit of compute units.
inline sg_status create_stream(sg_context *context, std::int32_t priority, std::int32_t compute_units,
                               sg_stream **out) {
  sg_stream_options options = SG_STREAM_OPTIONS_INIT;
  options.priority = priority, options.compute_units = compute_units;
  return sg_stream_create(context, &options, out);
}

// sg_graph_update of one descriptor.
inline sg_status update_recorded(sg_graph *graph, std::int32_t index, sg_operation operation, const void *desc) {
  sg_operation_desc given = SG_OPERATION_DESC_INIT;
  given.operation = operation, given.desc = desc;
  return sg_graph_update(graph, index, &given);
}

// C = A * B for row-major f64 matrices without gaps.
inline sg_gemm_desc make_gemm(const double *a, const double *b, double *c, std::int64_t m, std::int64_t n,
                              std::int64_t k) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = {const_cast<double *>(a), m, k, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  desc.b = {const_cast<double *>(b), k, n, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  desc.c = {c, m, n, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  return desc;
}

// A job that runs until the test opens its gate: c = a * b with a behind the gate.
class gated_job {
 public:
  explicit gated_job(sg_context *context, const sg_submit *submit = nullptr) : gate_(gate_new(sizeof(double))) {
    if (!gate_) return;
    *static_cast<double *>(gate_content(gate_)) = 3.0;
    const sg_gemm_desc desc = make_gemm(static_cast<const double *>(gate_memory(gate_)), &b_, &c_, 1, 1, 1);
    EXPECT_OK(sg_gemm_async(context, &desc, submit, job_.out()));
  }
  ~gated_job() {
    if (!gate_) return;
    gate_open(gate_);
    sg_job_wait(job_, SG_FOREVER, nullptr);
    gate_free(gate_);
  }
  gated_job(const gated_job &) = delete;
  gated_job &operator=(const gated_job &) = delete;

  explicit operator bool() const { return gate_ != nullptr; }
  sg_job *get() const { return job_; }
  job &handle() { return job_; }
  void open() { gate_open(gate_); }
  bool running() { return gate_reached(gate_, 300000) == 1; }
  const double *result() const { return &c_; }  // 3 * 7 once complete
  static constexpr double expected = 21.0;

 private:
  gate *gate_;
  double b_ = 7.0, c_ = 0.0;
  job job_;
};

#define SKIP_WITHOUT_GATE(gated) \
  if (!(gated)) GTEST_SKIP() << "userfaultfd is not available here"

// Names of the devices under test: the one in SG_TEST_DEVICE if it is set.
inline std::vector<const char *> devices_under_test() {
  if (const char *chosen = std::getenv("SG_TEST_DEVICE")) return {chosen};
  return {"cpu", "sim:h200"};
}

// For the names of parameterised tests: letters, digits and underscores only.
inline std::string test_name(std::string text) {
  for (char &c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

// A suite that runs on every device of the list above.
class on_each_device : public testing::TestWithParam<const char *> {
 protected:
  void SetUp() override { context_ = open_context(GetParam()); }
  context context_;
};

#define ON_EACH_DEVICE(suite)                                                                  \
  INSTANTIATE_TEST_SUITE_P(devices, suite, testing::ValuesIn(::sg_test::devices_under_test()), \
                           [](const auto &info) { return ::sg_test::test_name(info.param); })

}  // namespace sg_test
