// SPDX-License-Identifier: Apache-2.0
// Every allocation, copy and launch of a simulated device fails in turn: the affected job reports it, its dependents do
// not run, all other jobs do, and afterwards the context works as before.
#include "support/gemm_case.hpp"
#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t patience = 60'000'000'000;

// A job's final status and message.
struct ending {
  sg_status status;
  std::string message;
};

ending end_of(sg_job *job) {
  char text[500] = "";
  const sg_status status = sg_job_wait(job, patience, nullptr);
  EXPECT_OK(sg_job_message(job, text, sizeof text, nullptr));
  return {status, text};
}

bool is_fault(sg_status status) { return status == SG_STATUS_BACKEND_FAILURE || status == SG_STATUS_OUT_OF_MEMORY; }

// One round of work of several kinds. Each job writes a matrix of its own; `dependent` reads the result of `first`.
class round_of_work {
 public:
  static constexpr int n = 40;

  explicit round_of_work(sg_context *context) : context_(context) {}

  // The number of jobs that reported a fault. All others must have succeeded with a right result.
  int run() {
    std::fill(c_.begin(), c_.end(), -1.0);
    std::fill(d_.begin(), d_.end(), -1.0);
    std::fill(e_.begin(), e_.end(), -1.0);
    std::fill(f_.begin(), f_.end(), -1.0);
    queue posted;
    EXPECT_OK(sg_queue_create(context_, nullptr, posted.out()));
    sg_submit submit = SG_SUBMIT_INIT;
    sg_plan_options tiles = SG_PLAN_OPTIONS_INIT, split = SG_PLAN_OPTIONS_INIT;
    tiles.tile_m = tiles.tile_n = tiles.tile_k = 16;
    split.split = SG_SPLIT_K;
    split.parts = 3;
    submit.queue = posted;

    // All four are submitted before the first can complete, or the dependency would be the caller's responsibility.
    gated_job gated(context_);
    if (!gated) return 0;
    sg_job *const before = gated.get();
    submit.after = &before;
    submit.after_count = 1;
    job first, dependent, independent, copy;
    int faults = 0, expected_posts = 0;
    submit.plan = &tiles;
    faults += !submitted(make_gemm(a_.data(), b_.data(), c_.data(), n, n, n), submit, first, expected_posts);
    submit.plan = &split;
    if (first)
      faults += !submitted(make_gemm(c_.data(), b_.data(), d_.data(), n, n, n), submit, dependent, expected_posts);
    faults += !submitted(make_gemm(a_.data(), b_.data(), e_.data(), n, n, n), submit, independent, expected_posts);
    submit.plan = nullptr;
    const sg_status copied = sg_copy_async(context_, f_.data(), a_.data(), sizeof(double) * n * n, &submit, copy.out());
    faults += copied != SG_STATUS_OK;
    EXPECT_TRUE(copied == SG_STATUS_OK || is_fault(copied)) << sg_status_name(copied);
    expected_posts += copied == SG_STATUS_OK;
    gated.open();
    if (const ending e = end_of(gated.get()); e.status != SG_STATUS_OK) {
      EXPECT_TRUE(is_fault(e.status)) << sg_status_name(e.status);
      return drained(posted, expected_posts), 1;
    }

    bool first_failed = !first;
    if (first) faults += first_failed = judged(first, c_, 6.0 * n, "first");
    if (dependent && first_failed) {
      EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, end_of(dependent).status);
      EXPECT_EQ(std::vector<double>(n * n, -1.0), d_) << "it ran nevertheless";
    } else if (dependent) {
      faults += judged(dependent, d_, 18.0 * n * n, "dependent");
    }
    if (independent) faults += judged(independent, e_, 6.0 * n, "independent");
    if (copy) faults += judged(copy, f_, 2.0, "copy");
    drained(posted, expected_posts);
    return faults;
  }

 private:
  bool submitted(const sg_gemm_desc &desc, const sg_submit &submit, job &out, int &posts) {
    const sg_status status = sg_gemm_async(context_, &desc, &submit, out.out());
    EXPECT_TRUE(status == SG_STATUS_OK || is_fault(status)) << sg_status_name(status);
    posts += status == SG_STATUS_OK;
    return status == SG_STATUS_OK;
  }
  static bool judged(sg_job *job, const std::vector<double> &result, double expected, const char *what) {
    const ending e = end_of(job);
    if (e.status == SG_STATUS_OK) {
      EXPECT_EQ(std::vector<double>(n * n, expected), result) << what;
      return false;
    }
    EXPECT_TRUE(is_fault(e.status)) << what << ": " << sg_status_name(e.status) << ": " << e.message;
    EXPECT_NE("", e.message) << what;
    sg_job_statistics did = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(job, &did));
    EXPECT_LE(did.bytes_out, result.size() * sizeof result[0]) << what;
    if (did.bytes_out == 0) {
      EXPECT_EQ(std::vector<double>(n * n, -1.0), result) << what << ": nothing was copied back";
    }
    return true;
  }
  static void drained(sg_queue *posted, int expected) {
    while (expected > 0) {
      sg_completion completions[4];
      std::int32_t count = 0;
      ASSERT_OK(sg_queue_next_batch(posted, completions, sizeof(sg_completion), 4, patience, &count));
      for (int i = 0; i < count; ++i) EXPECT_EQ(completions[i].status == SG_STATUS_OK, !completions[i].message[0]);
      expected -= count;
    }
    sg_completion extra;
    std::int32_t count = 0;
    EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_queue_next_batch(posted, &extra, sizeof(sg_completion), 1, 0, &count))
        << "a job posted twice";
  }

  sg_context *context_;
  std::vector<double> a_ = std::vector<double>(n * n, 2), b_ = std::vector<double>(n * n, 3), c_ = a_, d_ = a_, e_ = a_,
                      f_ = a_;
};

class sim_faults : public testing::TestWithParam<const char *> {};

TEST_P(sim_faults, each_in_turn) {
  if (gate *const probe = gate_new(1)) {
    gate_free(probe);
  } else {
    GTEST_SKIP() << "userfaultfd is not available here";
  }
  const bool refuses_memory = std::string(GetParam()) == "fail-alloc=";
  int reported = 0, unharmed = 0;
  for (int n = 1;; ++n) {
    ASSERT_LT(n, 2000) << "the number of operations that can fail is unbounded";
    SCOPED_TRACE(testing::Message() << GetParam() << n);
    const std::string device = std::string("sim:h200?") + GetParam() + std::to_string(n);
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    options.device = device.c_str();
    options.flags = SG_CONTEXT_CHECK_HAZARDS;
    context context;
    const sg_status opened = sg_context_create(&options, context.out());
    if (opened != SG_STATUS_OK) {
      EXPECT_TRUE(is_fault(opened)) << sg_status_name(opened);
      ++reported;
      continue;
    }
    round_of_work work(context);
    const int faults = work.run();
    // A refused allocation of device memory is retried; only after several refusals is there nothing left to fail.
    unharmed = faults ? 0 : unharmed + 1;
    if (unharmed == (refuses_memory ? 8 : 1)) break;
    if (!faults) continue;
    EXPECT_EQ(1, faults) << "one fault, one job";
    EXPECT_EQ(0, work.run()) << "the fault occurs once";
    if (testing::Test::HasFailure()) return;
    ++reported;
  }
  // A device allocation that is refused once is retried; a pinned one is not.
  EXPECT_GE(reported, refuses_memory ? 1 : 2) << "too few faults were injected";
  RecordProperty("reported", reported);
}

INSTANTIATE_TEST_SUITE_P(kinds, sim_faults,
                         testing::Values("fail-alloc=", "fail-copy=", "fail-launch=", "refuse-copy=", "refuse-launch="),
                         [](const auto &info) {
                           return test_name(std::string(info.param, 0, std::string(info.param).size() - 1));
                         });

// A device so small that a leak of one job's memory would affect the next.
TEST(sim_faults_and_memory, failed_jobs_release_their_memory) {
  for (int n = 1;; ++n) {
    const std::string device = "sim:h200?memory=400KiB&fail-copy=" + std::to_string(n);
    const context context = open_context(device.c_str());
    gemm_case g;
    g.m = g.n = g.k = 100;  // three operands of 80 KB
    g.options.tile_m = 50;
    const std::string first = run_gemm_case(context, g);
    if (first.empty()) {
      EXPECT_GT(n, 3) << "too few faults were injected";
      break;
    }
    EXPECT_NE(std::string::npos, first.find("SG_STATUS_BACKEND_FAILURE")) << first;
    for (int i = 0; i < 8; ++i) ASSERT_EQ("", run_gemm_case(context, g)) << n << ' ' << i;
  }
}

// A program that has a copy of what a job replaces may compute it in another way if nothing was copied back.
TEST(sim_faults_and_statistics, a_failed_job_says_what_it_copied) {
  constexpr int n = 64;
  const std::vector<double> a(n * n, 2), b(n * n, 3), before(n * n, 1);
  sg_job_statistics whole = SG_JOB_STATISTICS_INIT;
  for (const int fails : {1000, 1, 2, 3, 4}) {
    const context context = open_context(("sim:h200?fail-copy=" + std::to_string(fails)).c_str());
    std::vector<double> c = before;
    sg_gemm_desc desc = make_gemm(a.data(), b.data(), c.data(), n, n, n);
    desc.beta.re = 1;
    job job;
    ASSERT_OK(sg_gemm_async(context, &desc, nullptr, job.out()));
    const sg_status status = sg_job_wait(job, patience, nullptr);
    sg_job_statistics did = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(job, &did));
    if (status == SG_STATUS_OK) {
      whole = did;
      continue;
    }
    EXPECT_LE(fails, 4);
    EXPECT_LE(did.bytes_in, whole.bytes_in);
    EXPECT_EQ(0u, did.bytes_out) << "the result is copied back by the fourth copy, through memory of the library";
    EXPECT_EQ(before, c);
  }
  EXPECT_EQ(3u * n * n * sizeof(double), whole.bytes_in);
  EXPECT_EQ(1u * n * n * sizeof(double), whole.bytes_out);
}

// A late copy delays its job and nothing else.
TEST(sim_faults_and_time, a_late_copy_delays_only_its_job) {
  const context context = open_context("sim:h200?late-copy=2:20000");
  gemm_case g;
  g.m = g.n = g.k = 30;
  sg_job_statistics late = SG_JOB_STATISTICS_INIT, usual = SG_JOB_STATISTICS_INIT;
  EXPECT_EQ("", run_gemm_case(context, g, &late));
  EXPECT_EQ("", run_gemm_case(context, g, &usual));
  EXPECT_GE(late.end_ns - late.start_ns, 20'000'000);
  EXPECT_LT(usual.end_ns - usual.start_ns, 20'000'000);
}

}  // namespace
}  // namespace sg_test
