// SPDX-License-Identifier: Apache-2.0
// Every allocation, launch and call of CUDA fails in turn, once, several times in a row, or for good. The affected job
// reports why or succeeds all the same, results are right, nothing hangs or leaks; a lost device fails later jobs with
// the loss as their message, and another context works again.
#include "faults.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/gemm_case.hpp"
#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t patience = 60'000'000'000;

struct breakage {
  const char *name;
  emulated_fault how;
  long more;                        // after the first
  long steps;                       // stride between tested operations
  std::vector<const char *> texts;  // each failure has one of these texts, of CUDA, cuBLAS or the plugin
};
const breakage *g_breakage;

// Whether it failed as the device may fail. `seen`: "" or the result of run_gemm_case() and the like.
bool is_fault(const std::string &seen) {
  const auto has = [&](const char *text) { return seen.find(text) != std::string::npos; };
  if (seen.empty()) return false;
  if (!emulated_gpu_is_broken()) ADD_FAILURE() << "without a fault: " << seen;
  EXPECT_TRUE(has("SG_STATUS_OUT_OF_MEMORY") || has("SG_STATUS_BACKEND_FAILURE") || has("SG_STATUS_DEPENDENCY_FAILED"))
      << seen;
  EXPECT_TRUE(std::any_of(g_breakage->texts.begin(), g_breakage->texts.end(), has)) << "no reason: " << seen;
  return true;
}

// Jobs one by one, as a group and from a graph, in device memory; each result is alpha * 2 * 3 * n in every element.
class small_gemms {
 public:
  static constexpr int n = 12, count = 24;

  explicit small_gemms(sg_context *context) : context_(context) {}

  bool run() {
    std::fill(c_.begin(), c_.end(), -1.0);
    std::string seen = failure(sg_buffer_create(context_, bytes, nullptr, memory_.out()), "sg_buffer_create");
    void *data = nullptr;
    if (seen.empty()) seen = failure(sg_buffer_data(memory_, &data), "sg_buffer_data");
    if (seen.empty()) seen = failure(sg_graph_create(context_, &graph_), "sg_graph_create");
    if (seen.empty()) seen = work(static_cast<double *>(data));
    sg_graph_release(std::exchange(graph_, nullptr));
    if (!seen.empty()) return is_fault(seen);
    for (std::size_t i = 0; i < c_.size(); ++i) {
      const auto alpha = static_cast<double>(i / (n * n) % count + 1);
      if (c_[i] != alpha * 6 * n) return ADD_FAILURE() << i << ": " << c_[i] << ", alpha " << alpha, false;
    }
    return false;
  }

 private:
  static constexpr std::size_t items = 2 + 3 * count, bytes = items * n * n * sizeof(double);

  static std::string failure(sg_status status, const char *call) {
    if (status == SG_STATUS_OK) return "";
    return std::string(call) + ": " + sg_status_name(status) + ": " + sg_last_error_message();
  }

  std::string work(double *there) {
    const auto item = [&](int i) { return there + i * n * n; };
    std::vector<job> jobs;
    std::string seen;
    const auto submit = [&](const char *call, auto &&by) {
      if (!seen.empty()) return;
      job made;
      seen = failure(by(made.out()), call);
      if (made) jobs.push_back(std::move(made));
    };
    submit("sg_copy_async", [&](sg_job **out) {
      return sg_copy_async(context_, there, ab_.data(), ab_.size() * sizeof(double), nullptr, out);
    });
    for (int i = 0; i < count; ++i) {
      sg_gemm_desc one = make_gemm(item(0), item(1), item(2 + i), n, n, n);
      one.alpha = {i + 1.0, 0};
      submit("sg_gemm_async", [&](sg_job **out) { return sg_gemm_async(context_, &one, nullptr, out); });
    }
    std::vector<sg_gemm_desc> group;
    for (int i = 0; i < count; ++i) {
      sg_gemm_desc one = make_gemm(item(0), item(1), item(2 + count + i), n, n, n);
      one.op_a = i % 2 ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;  // both matrices are constant
      one.alpha = {i + 1.0, 0};
      group.push_back(one);
    }
    submit("sg_gemm_grouped_async",
           [&](sg_job **out) { return sg_gemm_grouped_async(context_, group.data(), count, nullptr, out); });
    sg_submit record = SG_SUBMIT_INIT;
    record.graph = graph_;
    for (int i = 0; i < count && seen.empty(); ++i) {
      const sg_gemm_desc one = make_gemm(item(0), item(1), item(2 + 2 * count + i), n, n, n);
      seen = failure(sg_gemm_async(context_, &one, &record, nullptr), "recording");
    }
    submit("sg_graph_run_async", [&](sg_job **out) { return sg_graph_run_async(graph_, nullptr, out); });
    for (int i = 0; i < count && seen.empty(); ++i) {  // which operation the second run fails
      sg_gemm_desc one = make_gemm(item(0), item(1), item(2 + 2 * count + i), n, n, n);
      one.alpha = {i + 1.0, 0};
      seen = failure(update_recorded(graph_, i, SG_OPERATION_GEMM, &one), "sg_graph_update");
    }
    submit("sg_graph_run_async", [&](sg_job **out) { return sg_graph_run_async(graph_, nullptr, out); });
    submit("sg_copy_async", [&](sg_job **out) {
      return sg_copy_async(context_, c_.data(), item(2), c_.size() * sizeof(double), nullptr, out);
    });
    for (const job &each : jobs) {  // all of them, or the next ones would use freed memory
      const std::string outcome = failure(sg_job_wait(each, patience, nullptr), "sg_job_wait");
      EXPECT_EQ(std::string::npos, outcome.find("SG_STATUS_TIMEOUT")) << "it hangs";
      if (seen.empty()) seen = outcome;
    }
    return seen;
  }

  sg_context *context_;
  buffer memory_;
  sg_graph *graph_ = nullptr;
  std::vector<double> c_ = std::vector<double>(std::size_t{3} * count * n * n);
  std::vector<double> ab_ = [] {
    std::vector<double> both(std::size_t{2} * n * n, 2.0);
    std::fill(both.begin() + n * n, both.end(), 3.0);
    return both;
  }();
};

std::vector<gemm_case> cases() {
  std::vector<gemm_case> all;
  const auto add = [&](sg_dtype in, sg_dtype out, std::int64_t size) -> gemm_case & {
    gemm_case g;
    g.in = in, g.out = out;
    g.m = size, g.n = size + 3, g.k = size - 2;
    return all.emplace_back(g);
  };
  add(SG_DTYPE_F64, SG_DTYPE_F64, 40).options.tile_m = 16;
  gemm_case &split = add(SG_DTYPE_F32, SG_DTYPE_F32, 40);
  split.options.split = SG_SPLIT_K;
  split.options.parts = 3;
  split.beta = {1, 0};
  gemm_case &pinned = add(SG_DTYPE_F32, SG_DTYPE_F32, 32);
  pinned.place_a = pinned.place_b = pinned.place_c = SG_MEMORY_PINNED;
  gemm_case &batch = add(SG_DTYPE_F32, SG_DTYPE_F32, 9);
  batch.form = batch_form::pointers;
  batch.batch = 5;
  batch.place_a = batch.place_b = batch.place_c = SG_MEMORY_DEVICE;
  gemm_case &with_epilogue = add(SG_DTYPE_F32, SG_DTYPE_F32, 20);
  with_epilogue.has_bias = true;
  with_epilogue.activation = SG_ACTIVATION_RELU;
  add(SG_DTYPE_F16, SG_DTYPE_F16, 20).beta = {0.5, 0};
  add(SG_DTYPE_I8, SG_DTYPE_I32, 21);
  add(SG_DTYPE_F8_E4M3, SG_DTYPE_F32, 18);
  return all;
}

// From host memory, with a bias that cuDNN adds, and one that it does not.
int convolutions(sg_context *context) {
  int faults = 0;
  for (const std::int64_t kernel : {3, 2}) {
    const std::int64_t out = 7 - kernel;
    std::vector<float> x(3 * 2 * 36, 1.0f), w(static_cast<std::size_t>(4 * 2 * kernel * kernel), 2.0f), bias(4, 5.0f);
    std::vector<float> y(static_cast<std::size_t>(3 * 4 * out * out), -1.0f);
    sg_conv2d_desc d = SG_CONV2D_DESC_INIT;
    d.x.data = x.data(), d.w = w.data(), d.bias = bias.data(), d.y.data = y.data();
    d.images = 3, d.channels = 2, d.height = d.width = 6, d.out_channels = 4;
    d.windows.kernel_h = d.windows.kernel_w = kernel;
    const sg_status status = sg_conv2d(context, &d, nullptr);
    if (status != SG_STATUS_OK) {
      faults += is_fault(std::string(sg_status_name(status)) + ": " + sg_last_error_message());
      continue;
    }
    for (const float each : y) EXPECT_EQ(static_cast<float>(4 * kernel * kernel + 5), each);
  }
  return faults;
}

// All of it. Returns how many children failed; none may have a wrong result.
int work(sg_context *context) {
  int faults = 0;
  for (const gemm_case &g : cases()) {
    SCOPED_TRACE(g.text());
    faults += is_fault(run_gemm_case(context, g));
  }
  faults += convolutions(context);
  small_gemms together(context);
  return faults + together.run();
}

// Closing a context frees its objects, some of them on a thread of its own.
bool come_down_to(long objects) {
  for (int tries = 0; tries < 6000 && emulated_gpu_objects() > objects; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return emulated_gpu_objects() <= objects;
}

long settled_objects() {
  for (long seen = emulated_gpu_objects();;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (const long now = emulated_gpu_objects(); std::exchange(seen, now) == now) return now;
  }
}

// Sanitizers make each round so much slower that only some are tried.
long stride() {
  const char *given = std::getenv("SG_TEST_FAULT_STRIDE");
  return given ? std::max(1L, std::atol(given)) : 1;
}

class emulated_faults : public testing::TestWithParam<breakage> {};

TEST_P(emulated_faults, each_in_turn) {
  const breakage &p = GetParam();
  const bool stays_lost = p.how == EMULATED_LOST || p.how == EMULATED_LOST_AT_CALL;
  const long before = settled_objects();
  g_breakage = &p;
  int reported = 0, survived = 0, unreached = 0;
  for (long n = 1; unreached < 3; n += p.steps * stride()) {
    SCOPED_TRACE(testing::Message() << p.name << ' ' << n);
    emulated_gpu_break(p.how, n, p.more);
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    options.device = "cuda:0";
    options.flags = SG_CONTEXT_CHECK_HAZARDS;
    context context;
    const sg_status opened = sg_context_create(&options, context.out());
    int faults = 0;
    if (opened != SG_STATUS_OK) {
      faults = is_fault(std::string(sg_status_name(opened)) + ": " + sg_last_error_message());
    } else {
      faults = work(context);
    }
    if (!stays_lost && p.more == 0) {
      EXPECT_LE(faults, 1) << "one fault, one job";
    }
    const bool broken = emulated_gpu_is_broken() != 0;
    if (broken && stays_lost) {
      // Later jobs find the device lost, and report it.
      gemm_case late;
      if (opened == SG_STATUS_OK) {
        const std::string seen = run_gemm_case(context, late);
        EXPECT_NE(std::string::npos, seen.find("illegal memory access")) << seen;
      }
    }
    emulated_gpu_break(EMULATED_NONE, 0, 0);
    if (opened == SG_STATUS_OK && !stays_lost) {
      EXPECT_EQ(0, work(context)) << "the fault occurs once";
    }
    EXPECT_OK(context.reset());
    if (!stays_lost) {
      EXPECT_TRUE(come_down_to(before)) << emulated_gpu_objects() << " objects, before " << before;
    }
    if (testing::Test::HasFailure()) return;
    ++(!broken ? unreached : faults > 0 ? reported : survived);
  }
  const context healthy = open_context("cuda:0");
  EXPECT_EQ(0, work(healthy)) << "another context";
  EXPECT_GT(reported, 30 / p.steps / stride()) << "too few faults were injected";
  if (p.how == EMULATED_NO_MEMORY && p.more == 0 && stride() == 1) {
    EXPECT_GT(survived, 0) << "no allocation was tried again";
  }
  RecordProperty("reported", reported);
  RecordProperty("survived", survived);
}

// Of CUDA's documentation: "any further CUDA work will return the same error", or the process must be started again.
TEST(emulated_loss, by_every_error_that_ends_the_context) {
  for (const int error :
       {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 806, 807, 810, 911, 999}) {
    context context = open_context("cuda:0");
    emulated_gpu_lose_with(error);
    emulated_gpu_break(EMULATED_LOST_AT_CALL, 1, 0);
    for (int job = 0; job < 2; ++job) {
      const std::string seen = run_gemm_case(context, {});
      EXPECT_NE(std::string::npos, seen.find("cuda:0 is lost")) << error << ": " << seen;
    }
    emulated_gpu_break(EMULATED_NONE, 0, 0);
    EXPECT_OK(context.reset());
  }
  emulated_gpu_lose_with(700);
  const context healthy = open_context("cuda:0");
  EXPECT_EQ("", run_gemm_case(healthy, {}));
}

TEST(emulated_loss, is_none_where_mps_refuses_the_process) {
  for (const int error : {805, 806, 807, 808, 809}) {
    emulated_gpu_lose_with(error);
    emulated_gpu_break(EMULATED_LOST_AT_CALL, 1, 0);
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    options.device = "cuda:0";
    context refused;
    EXPECT_STATUS(SG_STATUS_NO_DEVICE, sg_context_create(&options, refused.out())) << error;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "MPS refuses")) << sg_last_error_message();
    emulated_gpu_break(EMULATED_NONE, 0, 0);
  }
  emulated_gpu_lose_with(700);
  EXPECT_EQ("", run_gemm_case(open_context("cuda:0"), {}));
}

const std::vector<const char *> no_memory = {
    "out of memory",         "resource allocation failed",        "cuBLAS has no memory",
    "cuBLAS does not start", "bytes of device memory are wanted", "cuDNN does not start"};
const std::vector<const char *> no_launch = {"too many resources", "failed to launch", "cuBLAS has no GEMM"};
const std::vector<const char *> lost = {"illegal memory access", "failed to launch", "cuBLAS does not start",
                                        "cuBLAS has no GEMM", "primary context"};

INSTANTIATE_TEST_SUITE_P(kinds, emulated_faults,
                         testing::Values(breakage{"no memory", EMULATED_NO_MEMORY, 0, 1, no_memory},
                                         breakage{"no memory for long", EMULATED_NO_MEMORY, 12, 1, no_memory},
                                         breakage{"no launch", EMULATED_NO_LAUNCH, 0, 1, no_launch},
                                         breakage{"lost", EMULATED_LOST, 0, 1, lost},
                                         breakage{"lost at a call", EMULATED_LOST_AT_CALL, 0, 7, lost}),
                         [](const auto &info) { return test_name(info.param.name); });

}  // namespace
}  // namespace sg_test
