// SPDX-License-Identifier: Apache-2.0
// A GPU is lost, and streams of another wait for it for ever: they are given up, jobs complete, later ones run on what
// is left, and neither release nor exit hangs. SG_EMULATED_GPUS=4.
#include <dlfcn.h>
#include <streamgemm/backend.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "faults.h"
#include "sums.hpp"
#include "support/harness.hpp"

namespace sg_test {
namespace {

using clock = std::chrono::steady_clock;
using graph = owned<sg_graph, sg_graph_release>;
double seconds_since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }

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

// Of the kernel, not of this library: each lane has one.
std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// Each failed job leaves its lanes on the device that works, in case its commands wait there for ever. Later ones use
// these lanes again if they do not.
TEST(emulated_lost, leaves_as_many_lanes_whatever_the_number_of_failed_jobs) {
  for (const long lost_at : {1, 8}) {
    context both = open_context("cuda:0,1,2");
    sums vectors(both);
    for (int device = 0; device < 2; ++device) vectors.fill(device);
    const auto fails = [&] {
      job done;
      sg_status status = vectors.start(0, 1, done.out());
      if (status == SG_STATUS_OK) status = sg_job_wait(done, SG_FOREVER, nullptr);
      return status == SG_STATUS_BACKEND_FAILURE;
    };
    emulated_gpu_break(EMULATED_LOST, lost_at, 0);
    for (int i = 0; i < 20; ++i) fails();
    EXPECT_TRUE(fails());
    const std::ptrdiff_t before = threads_of_this_process();
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(fails());
    EXPECT_LT(threads_of_this_process(), before + 20);
    emulated_gpu_break(EMULATED_NONE, 0, 0);
    for (int device = 0; device < 3; ++device) vectors.release(device);
    EXPECT_OK(both.reset());
  }
}

enum class ending { goes_on, releases, exits };

// Of memory that commands which were given up may still write.
void expect_memory_stays(sg_context *all, sums &vectors, int left, void *pinned) {
  double number = 1;
  EXPECT_OK(sg_host_register(all, &number, sizeof number));
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_host_unregister(all, &number));
  const long objects = emulated_gpu_objects();
  EXPECT_OK(sg_host_free(all, pinned));
  EXPECT_EQ(objects, emulated_gpu_objects()) << "the range stays pinned";
  // Nor is the vector's memory used again, but later buffers' is.
  void *const old = vectors.vector(left);
  std::set<const void *> seen = {old};
  bool is_new = true;
  for (int i = 0; i < 2000 && is_new; ++i, usleep(1000)) {
    vectors.renew(left);
    is_new = seen.insert(vectors.vector(left)).second;
  }
  EXPECT_FALSE(is_new) << "no memory of later buffers is used again";
  EXPECT_NE(old, vectors.vector(left));
}

// Nor is memory of another context of the device, whose buffer existed then.
void expect_memory_stays_in(sg_context *other, buffer &existed, void *old, std::uint64_t bytes) {
  EXPECT_OK(existed.reset());
  for (int i = 0; i < 100; ++i, usleep(1000)) {
    buffer later;
    void *memory = nullptr;
    sg_buffer_options on = SG_BUFFER_OPTIONS_INIT;
    on.device = 0;
    ASSERT_OK(sg_buffer_create(other, bytes, &on, later.out()));
    ASSERT_OK(sg_buffer_data(later, &memory));
    ASSERT_NE(old, memory) << "commands that were given up may write it";
  }
}

// Commands of one job, in any of the device's lanes.
void expect_single_commands_run(sg_context *all, sums &vectors, int on) {
  for (int i = 0; i < 20; ++i) {
    sg_axpby_desc twice = SG_AXPBY_DESC_INIT;
    twice.a = {vectors.vector(on), 100, 10, 100, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
    twice.c = twice.a;
    twice.c.data = static_cast<float *>(twice.a.data) + 2000;
    job done;
    const auto begin = clock::now();
    EXPECT_OK(sg_axpby_async(all, &twice, nullptr, done.out())) << i;
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr)) << i << ": " << sg_last_error_message();
    EXPECT_LT(seconds_since(begin), 4) << i;
  }
}

// Run in a process of its own by the test below, because a lost device stays lost.
TEST(emulated_lost, DISABLED_child) {
  const auto how = static_cast<ending>(std::atol(std::getenv("SG_TEST_ENDING")));
  const int one = static_cast<int>(std::atol(std::getenv("SG_TEST_FIRST_DEVICE"))), other = one + 1;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "cuda:0,1,2";
  sg_context *all = nullptr;
  ASSERT_OK(sg_context_create(&options, &all));
  sums vectors(all);
  for (int device = 0; device < 3; ++device) vectors.fill(device);
  void *pinned = nullptr;
  ASSERT_OK(sg_host_alloc(all, 1 << 20, &pinned));
  // A context of its own of the device that may be left.
  const context beside = open_context(("cuda:" + std::to_string(one)).c_str());
  buffer of_beside;
  void *memory_beside = nullptr;
  constexpr std::uint64_t bytes_beside = 4096;
  ASSERT_OK(sg_buffer_create(beside, bytes_beside, nullptr, of_beside.out()));
  ASSERT_OK(sg_buffer_data(of_beside, &memory_beside));
  graph recorded;
  ASSERT_OK(sg_graph_create(all, recorded.out()));
  sg_submit into = SG_SUBMIT_INIT;
  into.graph = recorded;
  ASSERT_OK(vectors.start(one, other, nullptr, &into));
  const bool as_graph = std::getenv("SG_TEST_GRAPH") != nullptr;
  const auto start = [&](sg_job **out) {
    return as_graph ? sg_graph_run_async(recorded, nullptr, out) : vectors.start(one, other, out);
  };
  job first;
  ASSERT_OK(start(first.out()));
  ASSERT_OK(sg_job_wait(first, SG_FOREVER, nullptr));
  vectors.fill(one), vectors.fill(other);
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
    const int left = sg_context_device_status(all, one) == SG_STATUS_OK ? one : other, third = 3 - one - other;
    EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_context_device_status(all, one + other - left));
    for (int i = 0; i < 3; ++i) {
      vectors.fill(left), vectors.fill(third);
      job after;
      const auto again = clock::now();
      EXPECT_OK(vectors.start(left, third, after.out()));
      EXPECT_OK(sg_job_wait(after, SG_FOREVER, nullptr)) << sg_last_error_message();
      EXPECT_LT(seconds_since(again), 4);
      vectors.expect_sum(left, third);
    }
    if (as_graph) {
      job again;
      EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, start(again.out()) == SG_STATUS_OK
                                                   ? sg_job_wait(again, SG_FOREVER, nullptr)
                                                   : SG_STATUS_BACKEND_FAILURE);
      EXPECT_OK(sg_context_device_status(all, left)) << "the error of the other one: " << sg_last_error_message();
    }
    if (waited) {
      vectors.fill(left);
      expect_single_commands_run(all, vectors, left);
      if (left == one) expect_memory_stays_in(beside, of_beside, memory_beside, bytes_beside);
      expect_memory_stays(all, vectors, left, pinned);
    }
  }
  EXPECT_OK(recorded.reset());
  EXPECT_OK(sg_context_release(all));
}

// Also run in a process of its own: a command comes behind those of a stream while the stream is given up.
TEST(emulated_lost, DISABLED_late_command) {
  void *const plugin = dlopen(std::getenv("SG_PLUGIN_PATH"), RTLD_NOW);
  ASSERT_NE(nullptr, plugin) << dlerror();
  const sg_backend_ops &ops = *reinterpret_cast<sg_backend_entry_fn>(dlsym(plugin, SG_BACKEND_ENTRY_SYMBOL))();
  sg_backend_device *devices[2] = {};
  sg_backend_event *events[2] = {};
  sg_backend_stream *first = nullptr, *of_lost = nullptr, *waiting = nullptr;
  sg_backend_copy copies[2] = {};
  for (const int i : {0, 1}) {
    char message[SG_BACKEND_MESSAGE_SIZE];
    ASSERT_OK(ops.device_open(nullptr, i == 0 ? "0" : "1", &devices[i], message)) << message;
    ASSERT_OK(ops.event_create(devices[i], &events[i]));
    constexpr std::int64_t bytes = 64 << 20;
    void *from = nullptr, *to = nullptr;
    ASSERT_OK(ops.host_alloc(devices[i], bytes, &from));
    ASSERT_OK(ops.mem_alloc(devices[i], bytes, &to));
    copies[i] = {{sizeof copies[i], SG_BACKEND_COPY},
                 to,
                 from,
                 bytes,
                 bytes,
                 bytes,
                 1,
                 {SG_MEMORY_DEVICE, 0},
                 {SG_MEMORY_PINNED, 0}};
  }
  ASSERT_OK(ops.stream_create(devices[0], 0, &first));
  ASSERT_OK(ops.stream_create(devices[1], 0, &of_lost));
  ASSERT_OK(ops.stream_create(devices[0], 0, &waiting));
  const auto copy = [&](sg_backend_stream *in, int device, std::atomic<int> *failures) {
    const sg_backend_command *const one = &copies[device].header;
    const auto notify = [](void *user, const sg_backend_result *result) {
      if (user) *static_cast<std::atomic<int> *>(user) += result->status == SG_STATUS_BACKEND_FAILURE;
    };
    return ops.enqueue(in, &one, 1, nullptr, {notify, failures});
  };
  // The other device is lost once its stream has waited for many copies, when all of this is enqueued.
  constexpr int before = 60;
  emulated_gpu_leave_stuck(1);
  emulated_gpu_break(EMULATED_LOST, before + 1, 0);
  for (int i = 0; i < before; ++i) ASSERT_OK(copy(first, 0, nullptr));
  ASSERT_OK(ops.event_record(events[0], first));
  ASSERT_OK(ops.stream_wait(of_lost, events[0]));
  ASSERT_OK(copy(of_lost, 1, nullptr));
  ASSERT_OK(ops.event_record(events[1], of_lost));
  ASSERT_OK(ops.stream_wait(waiting, events[1]));
  std::atomic<int> failures{0};
  ASSERT_OK(copy(waiting, 0, &failures));
  while (ops.device_status(devices[1]) == SG_STATUS_OK) usleep(1000);
  usleep(4'000'000);
  ASSERT_OK(ops.stream_status(waiting));
  emulated_gpu_delay_thread(3000);
  ASSERT_OK(copy(waiting, 0, &failures));
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, ops.stream_status(waiting));
  for (int i = 0; i < 3000 && failures < 2; ++i) usleep(1000);
  EXPECT_EQ(2, failures.load());
  std::_Exit(HasFailure());  // the streams stay
}

// Whether a process of a test above ends well, and after how long.
bool ends(const char *test, const std::map<std::string, std::string> &variables, double &seconds) {
  const auto begin = clock::now();
  const pid_t child = fork();
  if (child == 0) {
    for (const auto &[name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const std::string filter = std::string("--gtest_filter=emulated_lost.DISABLED_") + test;
    execl("/proc/self/exe", "emulated_tests", "--gtest_also_run_disabled_tests", filter.c_str(), nullptr);
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

TEST(emulated_lost, streams_that_are_given_up_complete_late_commands) {
  double seconds = 0;
  EXPECT_TRUE(ends("late_command", {}, seconds)) << seconds;
}

// Which command runs as the nth depends on threads, so that several are tried, until streams had to be given up.
class emulated_lost_at : public ::testing::TestWithParam<std::tuple<ending, bool, int>> {};
TEST_P(emulated_lost_at, streams_that_wait_for_it_are_given_up) {
  bool given_up = false;
  for (long at = 1; at < 40 && !given_up; ++at) {
    double seconds = 0;
    const auto [how, as_graph, first_device] = GetParam();
    std::map<std::string, std::string> variables = {{"SG_TEST_LOST_AT", std::to_string(at)},
                                                    {"SG_TEST_ENDING", std::to_string(static_cast<int>(how))},
                                                    {"SG_TEST_FIRST_DEVICE", std::to_string(first_device)}};
    if (as_graph) variables["SG_TEST_GRAPH"] = "1";
    EXPECT_TRUE(ends("child", variables, seconds)) << "lost at command " << at;
    given_up = seconds > 4.5;
  }
  EXPECT_TRUE(given_up) << "no stream waited for the lost device";
}
INSTANTIATE_TEST_SUITE_P(of_jobs, emulated_lost_at,
                         ::testing::Combine(::testing::Values(ending::goes_on, ending::releases, ending::exits),
                                            ::testing::Bool(), ::testing::Values(0)));
// Pinned memory is that of a device that neither is lost nor waits.
INSTANTIATE_TEST_SUITE_P(beside_another, emulated_lost_at,
                         ::testing::Combine(::testing::Values(ending::goes_on), ::testing::Bool(),
                                            ::testing::Values(1)));

}  // namespace
}  // namespace sg_test
