// SPDX-License-Identifier: Apache-2.0
// Tables of wrong calls: for each the status, words that its message must contain, and outputs that stay NULL.
#pragma once

#include <cstring>
#include <functional>

#include "support/gemm_plan.h"
#include "support/harness.hpp"

namespace sg_test {

struct wrong_call {
  const char *what;
  sg_status expected;
  std::vector<const char *> words;  // each of them is in the message
  std::function<sg_status()> call;
};

inline void check(const std::vector<wrong_call> &table) {
  for (const wrong_call &row : table) {
    const sg_status seen = row.call();
    const std::string message = sg_last_error_message();
    EXPECT_STREQ(sg_status_name(row.expected), sg_status_name(seen)) << row.what << ": " << message;
    if (seen != row.expected) continue;
    for (const char *word : row.words)
      EXPECT_NE(std::string::npos, message.find(word)) << row.what << ": '" << word << "' is not in: " << message;
  }
}

// A call with an output that must be NULL afterwards, whatever it was before.
template <class T, class Call>
std::function<sg_status()> nulls(Call call) {
  return [call] {
    T *out = reinterpret_cast<T *>(1);
    const sg_status status = call(&out);
    EXPECT_EQ(nullptr, out) << "an output handle after a failure";
    return status;
  };
}

class bad_input : public on_each_device {
 protected:
  void SetUp() override {
    on_each_device::SetUp();
    ASSERT_OK(sg_stream_create(context_, nullptr, stream_.out()));
    ASSERT_OK(sg_event_create(context_, event_.out()));
    ASSERT_OK(sg_buffer_create(context_, 4096, nullptr, buffer_.out()));
    ASSERT_OK(sg_queue_create(context_, nullptr, queue_.out()));
    const sg_gemm_desc desc = good();
    ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, job_.out()));
    ASSERT_OK(sg_job_wait(job_, SG_FOREVER, nullptr));
    sg_gemm_desc shape = good();
    shape.a.data = shape.b.data = shape.c.data = nullptr;
    ASSERT_OK(create_gemm_plan(context_, &shape, nullptr, plan_.out()));
  }
  sg_gemm_desc good() { return make_gemm(a_, b_, c_, 2, 3, 4); }

  double a_[12] = {}, b_[12] = {}, c_[12] = {};
  stream stream_;
  event event_;
  buffer buffer_;
  queue queue_;
  job job_;
  plan plan_;
};

constexpr sg_status argument = SG_STATUS_INVALID_ARGUMENT, handle = SG_STATUS_INVALID_HANDLE;

}  // namespace sg_test
