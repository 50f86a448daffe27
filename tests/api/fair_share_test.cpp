// SPDX-License-Identifier: Apache-2.0
// One submitter's GEMMs complete while another keeps the device full: each GEMM of the flood is resubmitted as soon as
// it has completed, so that a constant number is always queued or running.
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "support/harness.hpp"
#include "support/sanitizers.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t minute = 60'000'000'000;
// Starvation shows at the first or second attempt.
constexpr int submissions = sanitized ? 4 : 40;

// Device memory, filled from the host.
class on_device {
 public:
  on_device(sg_context *in, const std::vector<double> &host) {
    void *memory = nullptr;
    const std::size_t bytes = host.size() * sizeof(double);
    EXPECT_OK(sg_buffer_create(in, bytes, nullptr, buffer_.out()));
    EXPECT_OK(sg_buffer_data(buffer_, &memory));
    job filled;
    EXPECT_OK(sg_copy_async(in, memory, host.data(), bytes, nullptr, filled.out()));
    EXPECT_OK(sg_job_wait(filled, SG_FOREVER, nullptr));
    first = static_cast<double *>(memory);
  }
  double *first = nullptr;

 private:
  buffer buffer_;
};

class flood {
 public:
  // `options`: submission options of the GEMMs.
  flood(sg_context *in, std::vector<sg_gemm_desc> gemms, const sg_submit &options)
      : in_(in), gemms_(std::move(gemms)), options_(options) {
    EXPECT_OK(sg_queue_create(in, nullptr, queue_.out()));
    options_.queue = queue_;
    feeder_ = std::thread([this] { feed(); });
  }
  ~flood() {
    stopping_ = true;
    feeder_.join();
  }
  flood(const flood &) = delete;
  flood &operator=(const flood &) = delete;

  std::int64_t completed() const { return completed_; }

 private:
  void submit(std::uint64_t tag) {
    options_.tag = tag;
    EXPECT_OK(sg_gemm_async(in_, &gemms_[tag], &options_, nullptr));
  }
  void feed() {
    for (std::size_t i = 0; i < gemms_.size(); ++i) submit(i);
    for (std::size_t left = gemms_.size(); left > 0;) {
      sg_completion done;
      std::int32_t count = 0;
      ASSERT_OK(sg_queue_next_batch(queue_, &done, sizeof(sg_completion), 1, SG_FOREVER, &count));
      EXPECT_STATUS(SG_STATUS_OK, done.status) << done.message;
      ++completed_;
      stopping_ ? void(--left) : submit(done.tag);
    }
  }

  sg_context *in_;
  std::vector<sg_gemm_desc> gemms_;
  sg_submit options_;
  queue queue_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> completed_{0};
  std::thread feeder_;
};

class fair_share : public on_each_device {
 protected:
  static constexpr std::int64_t n = 96;
  static constexpr std::size_t in_turn = 16;

  // Independent GEMMs of n^3, in memory that the caller keeps.
  static std::vector<sg_gemm_desc> cubes(double *at, std::int64_t size) {
    std::vector<sg_gemm_desc> all;
    for (std::size_t i = 0; i < in_turn; ++i) {
      double *const c = at + (2 + i) * static_cast<std::size_t>(size * size);
      all.push_back(make_gemm(at, at + size * size, c, size, size, size));
    }
    return all;
  }
  static std::vector<double> memory_of_cubes(std::int64_t size) {
    return std::vector<double>(static_cast<std::size_t>(size * size) * (2 + in_turn), 1);
  }

  // One by one, without a wait call that the library could notice: each within a minute, though it takes microseconds.
  template <class Submit>
  static void expect_progress(sg_context *in, const flood &beside, const char *what, Submit &&one) {
    queue completions;
    ASSERT_OK(sg_queue_create(in, nullptr, completions.out()));
    sg_submit options = SG_SUBMIT_INIT;
    options.queue = completions;
    while (beside.completed() < std::int64_t{in_turn}) std::this_thread::yield();
    for (int i = 0; i < submissions; ++i) {
      const std::int64_t before = beside.completed();
      options.tag = static_cast<std::uint64_t>(i);
      ASSERT_OK(one(options));
      sg_completion done;
      std::int32_t count = 0;
      ASSERT_OK(sg_queue_next_batch(completions, &done, sizeof(sg_completion), 1, minute, &count))
          << what << ' ' << i << " waits though " << beside.completed() - before
          << " of another submitter have completed";
      EXPECT_STATUS(SG_STATUS_OK, done.status) << done.message;
      EXPECT_EQ(options.tag, done.tag);
    }
  }
  // Of the flood's type; of another type, which cannot join its batches; and a large one.
  static void expect_gemms(sg_context *in, const flood &beside) {
    constexpr std::int64_t large = 320;
    const on_device operands(in, std::vector<double>(3 * large * large, 0));
    sg_gemm_desc desc = make_gemm(operands.first, operands.first + 1, operands.first + 2, 1, 1, 1);
    const auto one = [&](const sg_submit &options) { return sg_gemm_async(in, &desc, &options, nullptr); };
    expect_progress(in, beside, "GEMM", one);
    for (sg_matrix *each : {&desc.a, &desc.b, &desc.c}) each->dtype = SG_DTYPE_F32;
    expect_progress(in, beside, "f32 GEMM", one);
    desc = make_gemm(operands.first, operands.first + large * large, operands.first + 2 * large * large, large, large,
                     large);
    expect_progress(in, beside, "large GEMM", one);
  }
  static void expect_copies(sg_context *in, const flood &beside) {
    const on_device memory(in, std::vector<double>(1, 0));
    double host = 0;
    expect_progress(in, beside, "copy in", [&](const sg_submit &options) {
      return sg_copy_async(in, memory.first, &host, sizeof host, &options, nullptr);
    });
    expect_progress(in, beside, "copy out", [&](const sg_submit &options) {
      return sg_copy_async(in, &host, memory.first, sizeof host, &options, nullptr);
    });
  }

  void expect_progress_beside_cubes(const sg_submit &options) {
    const on_device operands(context_, memory_of_cubes(n));
    const flood beside(context_, cubes(operands.first, n), options);
    expect_gemms(context_, beside);
  }
};

TEST_P(fair_share, beside_gemms_without_a_stream) {
  const sg_submit options = SG_SUBMIT_INIT;
  expect_progress_beside_cubes(options);
}

TEST_P(fair_share, beside_a_chain_of_gemms) {
  stream ordered;
  ASSERT_OK(sg_stream_create(context_, nullptr, ordered.out()));
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = ordered;
  expect_progress_beside_cubes(options);
}

TEST_P(fair_share, beside_a_chain_of_low_priority_gemms) {
  stream ordered;
  ASSERT_OK(create_stream(context_, -1, 0, ordered.out()));
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = ordered;
  expect_progress_beside_cubes(options);
}

TEST_P(fair_share, beside_low_priority_gemms_without_a_stream) {
  sg_submit options = SG_SUBMIT_INIT;
  options.priority = -1;
  expect_progress_beside_cubes(options);
}

// Many children of them are in flight.
TEST_P(fair_share, beside_split_gemms) {
  sg_plan_options parts = SG_PLAN_OPTIONS_INIT;
  parts.split = SG_SPLIT_M;
  parts.parts = 48;
  sg_submit options = SG_SUBMIT_INIT;
  options.plan = &parts;
  expect_progress_beside_cubes(options);
}

TEST_P(fair_share, beside_gemms_on_host_memory) {
  std::vector<double> operands = memory_of_cubes(n);
  sg_plan_options tiles = SG_PLAN_OPTIONS_INIT;
  tiles.tile_m = tiles.tile_n = n / 16;
  sg_submit options = SG_SUBMIT_INIT;
  options.plan = &tiles;
  const flood beside(context_, cubes(operands.data(), n), options);
  expect_gemms(context_, beside);
  expect_copies(context_, beside);
}

// There is memory for one of them at a time: the others wait for it.
TEST_P(fair_share, beside_gemms_that_wait_for_memory) {
  sg_context_options with_limit = SG_CONTEXT_OPTIONS_INIT;
  with_limit.device = GetParam();
  with_limit.memory_limit = 300'000;
  context in;
  ASSERT_OK(sg_context_create(&with_limit, in.out()));
  std::vector<double> operands = memory_of_cubes(n);
  const sg_submit options = SG_SUBMIT_INIT;
  const flood beside(in, cubes(operands.data(), n), options);
  expect_gemms(in, beside);
}

ON_EACH_DEVICE(fair_share);

}  // namespace
}  // namespace sg_test
