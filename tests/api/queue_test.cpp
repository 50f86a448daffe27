// SPDX-License-Identifier: Apache-2.0
// Completion queues: tags, order, time limits, closing, file descriptors, several consumers.
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <set>
#include <thread>

#include "support/harness.hpp"

namespace sg_test {
namespace {

class queues : public testing::TestWithParam<const char *> {
 protected:
  void SetUp() override {
    context_ = open_context(GetParam());
    ASSERT_OK(sg_queue_create(context_, nullptr, queue_.out()));
  }
  sg_submit posting(std::uint64_t tag) {
    sg_submit options = SG_SUBMIT_INIT;
    options.queue = queue_;
    options.tag = tag;
    return options;
  }
  void submit(std::uint64_t tag, double *c) {
    const sg_gemm_desc desc = make_gemm(&a_, &b_, c, 1, 1, 1);
    const sg_submit options = posting(tag);
    ASSERT_OK(sg_gemm_async(context_, &desc, &options, nullptr));
  }
  static bool readable(int fd, int timeout_ms) {
    pollfd wait = {fd, POLLIN, 0};
    return poll(&wait, 1, timeout_ms) == 1 && (wait.revents & POLLIN);
  }
  context context_;
  queue queue_;
  double a_ = 2, b_ = 3;
};

TEST_P(queues, every_tag_comes_back_once) {
  constexpr std::size_t count = 500;
  std::vector<double> c(count);
  for (std::size_t i = 0; i < count; ++i) submit(i * 0x0123456789abcdefu, &c[i]);
  std::set<std::uint64_t> tags;
  std::size_t received = 0;
  while (received < count) {
    sg_completion completions[64];
    std::int32_t n = -1;
    ASSERT_OK(sg_queue_next_batch(queue_, completions, sizeof(sg_completion), 64, SG_FOREVER, &n));
    ASSERT_TRUE(n >= 1 && n <= 64);
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(SG_STATUS_OK, completions[i].status);
      EXPECT_STREQ("", completions[i].message);
      EXPECT_EQ(nullptr, completions[i].job) << "the queue's options ask for none";
      tags.insert(completions[i].tag);
    }
    received += static_cast<std::size_t>(n);
  }
  EXPECT_EQ(count, tags.size());
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(1u, tags.count(i * 0x0123456789abcdefu));
  EXPECT_EQ(std::vector<double>(count, 6.0), c);
}

TEST_P(queues, oldest_first) {
  stream one;
  ASSERT_OK(sg_stream_create(context_, nullptr, one.out()));
  std::vector<double> c(100);
  for (std::size_t i = 0; i < c.size(); ++i) {
    sg_submit options = posting(i);
    options.stream = one;
    const sg_gemm_desc desc = make_gemm(&a_, &b_, &c[i], 1, 1, 1);
    ASSERT_OK(sg_gemm_async(context_, &desc, &options, nullptr));
  }
  for (std::size_t i = 0; i < c.size(); ++i) {
    sg_completion completion;
    std::int32_t n = 0;
    ASSERT_OK(sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
    ASSERT_EQ(i, completion.tag);
  }
}

TEST_P(queues, time_limits) {
  sg_completion completion;
  std::int32_t n = 7;
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, 0, &n));
  EXPECT_EQ(0, n);
  n = 7;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, 20 * ms, &n));
  EXPECT_EQ(0, n);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
}

TEST_P(queues, failures_carry_their_text) {
  const sg_submit options = posting(5);
  const context narrow = open_context(GetParam(), 1);
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit behind = options;
  behind.after = &first;
  behind.after_count = 1;
  double c = 0;
  job cancelled;
  const sg_gemm_desc desc = make_gemm(&a_, &b_, &c, 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &desc, &behind, cancelled.out()));
  ASSERT_OK(sg_job_cancel(cancelled));
  gated.open();
  sg_completion completion;
  std::int32_t n = 0;
  ASSERT_OK(sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
  EXPECT_EQ(5u, completion.tag);
  EXPECT_EQ(SG_STATUS_CANCELLED, completion.status);
  EXPECT_STRNE("", completion.message);
}

// The jobs of completions, by which a program gets the message of a failure, or the statistics of each.
TEST_P(queues, completions_bring_their_jobs) {
  for (const sg_queue_jobs which : {SG_QUEUE_JOBS_NONE, SG_QUEUE_JOBS_FAILED, SG_QUEUE_JOBS_ALL}) {
    sg_queue_options options = SG_QUEUE_OPTIONS_INIT;
    options.jobs = which;
    queue with_jobs;
    ASSERT_OK(sg_queue_create(context_, &options, with_jobs.out()));
    gated_job gated(context_);
    SKIP_WITHOUT_GATE(gated);
    sg_job *const first = gated.get();
    sg_submit behind = SG_SUBMIT_INIT;
    behind.after = &first, behind.after_count = 1, behind.queue = with_jobs;
    double c[2] = {};
    job cancelled;
    for (int i = 0; i < 2; ++i) {
      behind.tag = std::uint64_t(i);
      const sg_gemm_desc desc = make_gemm(&a_, &b_, &c[i], 1, 1, 1);
      ASSERT_OK(sg_gemm_async(context_, &desc, &behind, i == 0 ? cancelled.out() : nullptr));
    }
    ASSERT_OK(sg_job_cancel(cancelled));
    cancelled = {};
    gated.open();
    // As a program gets them that was compiled against later headers, with a longer struct.
    struct longer {
      sg_completion known;
      std::uint64_t later;
    };
    for (int left = 2; left > 0;) {
      longer taken[2];
      std::memset(static_cast<void *>(taken), 0xff, sizeof taken);
      std::int32_t n = 0;
      ASSERT_OK(sg_queue_next_batch(with_jobs, &taken[0].known, sizeof(longer), 2, SG_FOREVER, &n));
      left -= n;
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(0u, taken[i].later);
        EXPECT_EQ(taken[i].known.tag == 0 ? SG_STATUS_CANCELLED : SG_STATUS_OK, taken[i].known.status);
        EXPECT_EQ(which == SG_QUEUE_JOBS_ALL || (which == SG_QUEUE_JOBS_FAILED && taken[i].known.tag == 0),
                  taken[i].known.job != nullptr);
        if (!taken[i].known.job) continue;
        char text[256];
        EXPECT_OK(sg_job_message(taken[i].known.job, text, sizeof text, nullptr));
        EXPECT_EQ(taken[i].known.tag == 0, text[0] != '\0');
        EXPECT_STATUS(taken[i].known.status, sg_job_query(taken[i].known.job, nullptr));
        EXPECT_OK(sg_job_release(taken[i].known.job));
      }
    }
  }
}

TEST_P(queues, wrong_sizes_are_refused) {
  sg_completion completion;
  std::int32_t n = 7;
  for (const std::uint64_t size :
       {std::uint64_t(0), sizeof completion - 8, sizeof completion + 4, std::uint64_t(1) << 20}) {
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_queue_next_batch(queue_, &completion, size, 1, 0, &n));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), ("completion_size is " + std::to_string(size)).c_str()));
  }
}

TEST_P(queues, closing_wakes_the_waiters) {
  std::thread waiter([&] {
    sg_completion completion;
    std::int32_t n = 7;
    EXPECT_STATUS(SG_STATUS_CANCELLED,
                  sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
    EXPECT_EQ(0, n);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_OK(sg_queue_close(queue_));
  waiter.join();
  EXPECT_OK(sg_queue_close(queue_)) << "closing twice";
}

TEST_P(queues, a_closed_queue_still_delivers_and_accepts_completions) {
  double c[2] = {};
  submit(1, &c[0]);
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  ASSERT_OK(sg_queue_close(queue_));
  sg_completion completion;
  std::int32_t n = 0;
  EXPECT_OK(sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
  EXPECT_EQ(1u, completion.tag);
  EXPECT_STATUS(SG_STATUS_CANCELLED,
                sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
  submit(2, &c[1]);
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_OK(sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
  EXPECT_EQ(2u, completion.tag);
}

TEST_P(queues, the_descriptor_follows_the_queue) {
  std::int32_t fd = -1, again = -1;
  ASSERT_OK(sg_queue_fd(queue_, &fd));
  ASSERT_OK(sg_queue_fd(queue_, &again));
  EXPECT_EQ(fd, again);
  EXPECT_FALSE(readable(fd, 0));
  double c[3] = {};
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i) submit(static_cast<std::uint64_t>(i), &c[i]);
    ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
    for (int left = 3; left > 0; --left) {
      EXPECT_TRUE(readable(fd, 300000)) << left << " completions are waiting";
      sg_completion completion;
      std::int32_t n = 0;
      ASSERT_OK(sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, 0, &n));
    }
    EXPECT_FALSE(readable(fd, 0)) << "the queue is empty again";
  }
  ASSERT_OK(sg_queue_close(queue_));
  EXPECT_TRUE(readable(fd, 300000)) << "the queue is closed";
}

TEST_P(queues, a_descriptor_asked_for_late_is_readable_at_once) {
  double c = 0;
  submit(1, &c);
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  std::int32_t fd = -1;
  ASSERT_OK(sg_queue_fd(queue_, &fd));
  EXPECT_TRUE(readable(fd, 300000));
}

TEST_P(queues, epoll) {
  std::int32_t fd = -1;
  ASSERT_OK(sg_queue_fd(queue_, &fd));
  const int watch = epoll_create1(EPOLL_CLOEXEC);
  epoll_event interest = {};
  interest.events = EPOLLIN;
  ASSERT_EQ(0, epoll_ctl(watch, EPOLL_CTL_ADD, fd, &interest));
  epoll_event seen;
  EXPECT_EQ(0, epoll_wait(watch, &seen, 1, 0));
  std::vector<double> c(50);
  std::size_t received = 0;
  for (std::size_t i = 0; i < c.size(); ++i) submit(i, &c[i]);
  while (received < c.size()) {
    ASSERT_EQ(1, epoll_wait(watch, &seen, 1, 300000)) << received;
    sg_completion completions[7];
    std::int32_t n = 0;
    const sg_status status = sg_queue_next_batch(queue_, completions, sizeof(sg_completion), 7, 0, &n);
    ASSERT_TRUE(status == SG_STATUS_OK || status == SG_STATUS_TIMEOUT);
    received += static_cast<std::size_t>(n);
  }
  close(watch);
}

TEST_P(queues, the_descriptor_is_closed_with_the_queue) {
  std::int32_t fd = -1;
  ASSERT_OK(sg_queue_fd(queue_, &fd));
  EXPECT_OK(queue_.reset());
  pollfd wait = {fd, POLLIN, 0};
  ASSERT_EQ(1, poll(&wait, 1, 0));
  EXPECT_TRUE(wait.revents & POLLNVAL);
}

TEST_P(queues, several_consumers_share_the_completions) {
  constexpr std::uint64_t count = 2000;
  std::vector<double> c(count);
  std::vector<std::atomic<int>> seen(count);
  std::vector<std::thread> consumers;
  for (int t = 0; t < 4; ++t)
    consumers.emplace_back([&] {
      for (;;) {
        sg_completion completions[5];
        std::int32_t n = 0;
        const sg_status status = sg_queue_next_batch(queue_, completions, sizeof(sg_completion), 5, SG_FOREVER, &n);
        if (status == SG_STATUS_CANCELLED) return;
        ASSERT_OK(status);
        for (int i = 0; i < n; ++i) seen[completions[i].tag]++;
      }
    });
  for (std::uint64_t i = 0; i < count; ++i) submit(i, &c[i]);
  EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_OK(sg_queue_close(queue_));
  for (std::thread &consumer : consumers) consumer.join();
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(1, seen[i]) << i;
}

// Jobs in flight keep the queue until they have posted; it has no reader left, which is no error.
TEST_P(queues, released_before_its_jobs_have_completed) {
  const sg_submit options = posting(1);
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  std::int32_t fd = -1;
  ASSERT_OK(sg_queue_fd(queue_, &fd));
  EXPECT_OK(queue_.reset());
  gated.open();
  EXPECT_OK(sg_job_wait(gated.get(), SG_FOREVER, nullptr));
}

std::size_t entries_of(const char *folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// An untaken completion is freed with its queue, and keeps neither the queue nor the context alive.
TEST_P(queues, released_with_an_untaken_completion) {
  // Libraries keep threads and descriptors of their own from the first context on.
  const std::size_t threads = entries_of("/proc/self/task"), descriptors = entries_of("/proc/self/fd");
  for (int i = 0; i < 20; ++i) {
    context own = open_context(GetParam());
    queue posted;
    std::int32_t fd = -1;
    ASSERT_OK(sg_queue_create(own, nullptr, posted.out()));
    ASSERT_OK(sg_queue_fd(posted, &fd));
    double c;
    const sg_gemm_desc desc = make_gemm(&a_, &b_, &c, 1, 1, 1);
    sg_submit options = SG_SUBMIT_INIT;
    options.queue = posted;
    job about;
    ASSERT_OK(sg_gemm_async(own, &desc, &options, about.out()));
    ASSERT_OK(sg_job_wait(about, SG_FOREVER, nullptr));
    ASSERT_TRUE(readable(fd, 10000));
  }
  // The threads exit after the last release has returned.
  // The others may hold a descriptor for a moment.
  for (int i = 0; i < 1000 && (entries_of("/proc/self/task") > threads || entries_of("/proc/self/fd") > descriptors);
       ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(entries_of("/proc/self/task"), threads);
  EXPECT_LE(entries_of("/proc/self/fd"), descriptors);
}

TEST_P(queues, copies_post_too) {
  char from[4] = "abc", to[4] = "";
  const sg_submit options = posting(9);
  ASSERT_OK(sg_copy_async(context_, to, from, 4, &options, nullptr));
  sg_completion completion;
  std::int32_t n = 0;
  ASSERT_OK(sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
  EXPECT_EQ(9u, completion.tag);
  EXPECT_STREQ("abc", to);
}

// A submission without work still completes and posts.
TEST_P(queues, empty_submissions_post) {
  sg_gemm_desc nothing = make_gemm(nullptr, nullptr, nullptr, 0, 0, 0);
  const sg_submit first = posting(1), second = posting(2);
  ASSERT_OK(sg_gemm_async(context_, &nothing, &first, nullptr));
  ASSERT_OK(sg_copy_async(context_, nullptr, nullptr, 0, &second, nullptr));
  std::set<std::uint64_t> tags;
  while (tags.size() < 2) {
    sg_completion completion;
    std::int32_t n = 0;
    ASSERT_OK(sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, 300000 * ms, &n));
    tags.insert(completion.tag);
  }
}

// One queue may serve several contexts: an event loop has one.
TEST_P(queues, a_queue_of_another_context) {
  const context other = open_context("cpu");
  double c = 0;
  const sg_gemm_desc desc = make_gemm(&a_, &b_, &c, 1, 1, 1);
  const sg_submit options = posting(3);
  ASSERT_OK(sg_gemm_async(other, &desc, &options, nullptr));
  sg_completion completion;
  std::int32_t n = 0;
  ASSERT_OK(sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
  EXPECT_EQ(3u, completion.tag);
  EXPECT_EQ(6, c);
}

ON_EACH_DEVICE(queues);

// A queue that belongs to no context.
class shared_queues : public testing::TestWithParam<const char *> {
 protected:
  void SetUp() override { ASSERT_OK(sg_queue_create(nullptr, nullptr, queue_.out())); }
  void submit(sg_context *context, std::uint64_t tag, double *c, sg_job **job = nullptr) {
    const sg_gemm_desc desc = make_gemm(&a_, &b_, c, 1, 1, 1);
    sg_submit options = SG_SUBMIT_INIT;
    options.queue = queue_;
    options.tag = tag;
    ASSERT_OK(sg_gemm_async(context, &desc, &options, job));
  }
  // The threads of a context exit after its last release has returned.
  static bool has_at_most(std::size_t threads) {
    for (int i = 0; i < 1000 && entries_of("/proc/self/task") > threads; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return entries_of("/proc/self/task") <= threads;
  }
  queue queue_;
  double a_ = 2, b_ = 3;
};

TEST_P(shared_queues, serves_contexts_that_come_and_go) {
  double c[40] = {};
  std::set<std::uint64_t> tags;
  std::thread consumer([&] {
    for (;;) {
      sg_completion completions[3];
      std::int32_t n = 0;
      const sg_status status = sg_queue_next_batch(queue_, completions, sizeof(sg_completion), 3, SG_FOREVER, &n);
      if (status == SG_STATUS_CANCELLED) return;
      ASSERT_OK(status);
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(SG_STATUS_OK, completions[i].status);
        tags.insert(completions[i].tag);
      }
    }
  });
  for (std::uint64_t round = 0; round < 10; ++round) {
    const context first = open_context(GetParam()), second = open_context("cpu");
    for (std::uint64_t i = 0; i < 4; ++i) submit(i % 2 ? second : first, 4 * round + i, &c[4 * round + i]);
    EXPECT_OK(sg_context_synchronize(first, SG_FOREVER));
    EXPECT_OK(sg_context_synchronize(second, SG_FOREVER));
  }
  EXPECT_OK(sg_queue_close(queue_));
  consumer.join();
  EXPECT_EQ(40u, tags.size());
  for (const double each : c) EXPECT_EQ(6, each);
}

TEST_P(shared_queues, gives_completions_of_a_context_that_was_released) {
  double c = 0;
  std::int32_t fd = -1;
  ASSERT_OK(sg_queue_fd(queue_, &fd));
  {
    const context gone = open_context(GetParam());
    submit(gone, 7, &c);
  }
  pollfd wait = {fd, POLLIN, 0};
  ASSERT_EQ(1, poll(&wait, 1, 300000));
  sg_completion completion;
  std::int32_t n = 0;
  ASSERT_OK(sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
  EXPECT_EQ(7u, completion.tag);
  EXPECT_EQ(SG_STATUS_OK, completion.status);
  EXPECT_EQ(6, c);
}

TEST_P(shared_queues, keeps_no_context_open) {
  const std::size_t threads = entries_of("/proc/self/task");
  for (int i = 0; i < 5; ++i) {
    const context own = open_context(GetParam());
    double c = 0;
    submit(own, 1, &c);
    sg_completion completion;
    std::int32_t n = 0;
    ASSERT_OK(sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
  }
  EXPECT_TRUE(has_at_most(threads)) << entries_of("/proc/self/task");
}

TEST_P(shared_queues, released_with_untaken_completions_frees_everything) {
  const std::size_t threads = entries_of("/proc/self/task"), descriptors = entries_of("/proc/self/fd");
  for (int i = 0; i < 20; ++i) {
    queue untaken;
    ASSERT_OK(sg_queue_create(nullptr, nullptr, untaken.out()));
    std::int32_t fd = -1;
    ASSERT_OK(sg_queue_fd(untaken, &fd));
    const context first = open_context(GetParam()), second = open_context("cpu");
    double c[2] = {};
    sg_submit options = SG_SUBMIT_INIT;
    options.queue = untaken;
    const sg_gemm_desc desc = make_gemm(&a_, &b_, &c[0], 1, 1, 1), other = make_gemm(&a_, &b_, &c[1], 1, 1, 1);
    ASSERT_OK(sg_gemm_async(first, &desc, &options, nullptr));
    ASSERT_OK(sg_gemm_async(second, &other, &options, nullptr));
    if (i % 2) {  // otherwise the queue may be released before its jobs have completed
      EXPECT_OK(sg_context_synchronize(first, SG_FOREVER));
      EXPECT_OK(sg_context_synchronize(second, SG_FOREVER));
    }
    EXPECT_OK(untaken.reset());
    EXPECT_OK(sg_context_synchronize(first, SG_FOREVER));
    EXPECT_OK(sg_context_synchronize(second, SG_FOREVER));
  }
  EXPECT_TRUE(has_at_most(threads)) << entries_of("/proc/self/task");
  EXPECT_LE(entries_of("/proc/self/fd"), descriptors);
}

TEST_P(shared_queues, time_limits_and_closing) {
  sg_completion completion;
  std::int32_t n = 7;
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, 0, &n));
  EXPECT_EQ(0, n);
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, 5 * ms, &n));
  EXPECT_OK(sg_queue_close(queue_));
  EXPECT_STATUS(SG_STATUS_CANCELLED,
                sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, SG_FOREVER, &n));
}

ON_EACH_DEVICE(shared_queues);

}  // namespace
}  // namespace sg_test
