// SPDX-License-Identifier: Apache-2.0
// A GPU is lost, and streams of another wait for it for ever: they are given up, jobs complete, later ones run on what
// is left, and neither release nor exit hangs. SG_EMULATED_GPUS=4.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "faults.h"
#include "support/harness.hpp"

namespace sg_test {
namespace {

using clock = std::chrono::steady_clock;
using graph = owned<sg_graph, sg_graph_release>;
double seconds_since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }

// Vectors on three devices, and their sums over two of them: each device waits for copies of the other.
class sums {
 public:
  explicit sums(sg_context *in) : in_(in) {
    for (int device = 0; device < 3; ++device) {
      sg_buffer_options on = SG_BUFFER_OPTIONS_INIT;
      on.device = device;
      EXPECT_OK(sg_buffer_create(in, bytes, &on, buffers_[device].out()));
      EXPECT_OK(sg_buffer_data(buffers_[device], &vectors_[device]));
    }
  }
  void fill(int device) { EXPECT_OK(sg_copy(in_, vectors_[device], values(device).data(), bytes, nullptr)); }
  sg_status start(int one, int other, sg_job **out, const sg_submit *submit = nullptr) {
    void *const both[] = {vectors_[one], vectors_[other]};
    sg_all_reduce_desc desc = SG_ALL_REDUCE_DESC_INIT;
    desc.operands = both;
    desc.operand_count = 2;
    desc.elements = count;
    return sg_all_reduce_async(in_, &desc, submit, out);
  }
  void expect_sum(int one, int other) {
    std::vector<float> seen(count), wanted = values(one);
    EXPECT_OK(sg_copy(in_, seen.data(), vectors_[other], bytes, nullptr));
    for (std::size_t i = 0; i < count; ++i) wanted[i] += values(other)[i];
    EXPECT_EQ(wanted, seen);
  }

 private:
  static constexpr std::size_t count = 400000, bytes = count * sizeof(float);
  static const std::vector<float> &values(int device) {
    static const auto all = [] {
      std::vector<std::vector<float>> made(3, std::vector<float>(count));
      for (std::size_t d = 0; d < 3; ++d)
        for (std::size_t i = 0; i < count; ++i) made[d][i] = float((i + 7 * d) % 1000);
      return made;
    }();
    return all[static_cast<std::size_t>(device)];
  }

  sg_context *const in_;
  buffer buffers_[3];
  void *vectors_[3] = {};
};

// Errors that lose all GPUs of the process.
TEST(emulated_lost, with_all_others_of_the_process) {
  for (const int error : {226, 810}) {
    context both = open_context("cuda:0,1");
    void *memory = nullptr;
    emulated_gpu_lose_with(error);
    emulated_gpu_break(EMULATED_LOST_AT_CALL, 1, 0);
    EXPECT_NE(SG_STATUS_OK, sg_host_alloc(both, 100, &memory)) << "the first call of one of them";
    for (int device = 0; device < 2; ++device) {
      EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_context_device_status(both, device)) << error;
      const std::string seen = sg_last_error_message();
      EXPECT_NE(std::string::npos, seen.find("cuda:" + std::to_string(device) + " is lost")) << seen;
      EXPECT_NE(std::string::npos, seen.find("the process must be started again")) << seen;
    }
    const double a = 1, b = 2;
    double c = 0;
    const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1, 1, 1);
    EXPECT_STATUS(SG_STATUS_NO_DEVICE, sg_gemm(both, &desc, nullptr));
    emulated_gpu_break(EMULATED_NONE, 0, 0);
    EXPECT_OK(both.reset());
  }
  emulated_gpu_lose_with(700);
  EXPECT_OK(sg_context_device_status(open_context("cuda:1"), 0));
}

enum class ending { goes_on, releases, exits };

// Run in a process of its own by the test below, because a lost device stays lost.
TEST(emulated_lost, DISABLED_child) {
  const auto how = static_cast<ending>(std::atol(std::getenv("SG_TEST_ENDING")));
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "cuda:0,1,2";
  sg_context *all = nullptr;
  ASSERT_OK(sg_context_create(&options, &all));
  sums vectors(all);
  for (int device = 0; device < 3; ++device) vectors.fill(device);
  graph recorded;
  ASSERT_OK(sg_graph_create(all, recorded.out()));
  sg_submit into = SG_SUBMIT_INIT;
  into.graph = recorded;
  ASSERT_OK(vectors.start(0, 1, nullptr, &into));
  const bool as_graph = std::getenv("SG_TEST_GRAPH") != nullptr;
  const auto start = [&](sg_job **out) {
    return as_graph ? sg_graph_run_async(recorded, nullptr, out) : vectors.start(0, 1, out);
  };
  job first;
  ASSERT_OK(start(first.out()));
  ASSERT_OK(sg_job_wait(first, SG_FOREVER, nullptr));
  vectors.fill(0), vectors.fill(1);
  emulated_gpu_leave_stuck(1);
  emulated_gpu_break(EMULATED_LOST, std::atol(std::getenv("SG_TEST_LOST_AT")), 0);
  job lost;
  ASSERT_OK(start(lost.out()));
  if (how != ending::goes_on) {
    if (how == ending::releases) sg_context_release(all);
    std::exit(0);
  }
  const auto begin = clock::now();
  const sg_status status = sg_job_wait(lost, SG_FOREVER, nullptr);
  if (status != SG_STATUS_OK) {
    EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, status);
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "lost")) << sg_last_error_message();
    const bool waited = seconds_since(begin) > 4.5;
    // The device that is left has lanes without commands that wait, and memory that none of these uses.
    const int left = sg_context_device_status(all, 0) == SG_STATUS_OK ? 0 : 1;
    EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_context_device_status(all, 1 - left));
    for (int i = 0; i < 3; ++i) {
      vectors.fill(left), vectors.fill(2);
      job after;
      const auto again = clock::now();
      EXPECT_OK(vectors.start(left, 2, after.out()));
      EXPECT_OK(sg_job_wait(after, SG_FOREVER, nullptr)) << sg_last_error_message();
      EXPECT_LT(seconds_since(again), 4);
      vectors.expect_sum(left, 2);
    }
    if (as_graph) {
      job again;
      EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, start(again.out()) == SG_STATUS_OK
                                                   ? sg_job_wait(again, SG_FOREVER, nullptr)
                                                   : SG_STATUS_BACKEND_FAILURE);
      EXPECT_OK(sg_context_device_status(all, left)) << "the error of the other one: " << sg_last_error_message();
    }
    // Of memory that may wait for its last command.
    if (waited && left == 0) {
      double number = 1;
      EXPECT_OK(sg_host_register(all, &number, sizeof number));
      EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_host_unregister(all, &number));
    }
  }
  EXPECT_OK(recorded.reset());
  EXPECT_OK(sg_context_release(all));
}

// Whether such a process ends well, and after how long.
bool ends(long lost_at, ending how, bool as_graph, double &seconds) {
  const auto begin = clock::now();
  const pid_t child = fork();
  if (child == 0) {
    setenv("SG_TEST_LOST_AT", std::to_string(lost_at).c_str(), 1);
    setenv("SG_TEST_ENDING", std::to_string(static_cast<int>(how)).c_str(), 1);
    if (as_graph) setenv("SG_TEST_GRAPH", "1", 1);
    execl("/proc/self/exe", "emulated_tests", "--gtest_also_run_disabled_tests",
          "--gtest_filter=emulated_lost.DISABLED_child", nullptr);
    _exit(127);
  }
  for (;;) {
    int state = 0;
    const bool has_ended = waitpid(child, &state, WNOHANG) == child;
    seconds = seconds_since(begin);
    if (has_ended) return WIFEXITED(state) && WEXITSTATUS(state) == 0;
    if (seconds > 60) {
      kill(child, SIGKILL);
      waitpid(child, &state, 0);
      return false;
    }
    usleep(20'000);
  }
}

// Which command runs as the nth depends on threads, so that several are tried, until streams had to be given up.
class emulated_lost_at : public ::testing::TestWithParam<std::tuple<ending, bool>> {};
TEST_P(emulated_lost_at, streams_that_wait_for_it_are_given_up) {
  bool given_up = false;
  for (long at = 1; at < 40 && !given_up; ++at) {
    double seconds = 0;
    EXPECT_TRUE(ends(at, std::get<0>(GetParam()), std::get<1>(GetParam()), seconds)) << "lost at command " << at;
    given_up = seconds > 4.5;
  }
  EXPECT_TRUE(given_up) << "no stream waited for the lost device";
}
INSTANTIATE_TEST_SUITE_P(of_jobs, emulated_lost_at,
                         ::testing::Combine(::testing::Values(ending::goes_on, ending::releases, ending::exits),
                                            ::testing::Bool()));

}  // namespace
}  // namespace sg_test
