// SPDX-License-Identifier: Apache-2.0
// sg_log_set: which messages reach the callback, and that none does once it has been replaced.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "support/gemm_plan.h"
#include "support/harness.hpp"

namespace sg_test {
namespace {

struct received {
  std::mutex lock;
  std::vector<std::pair<sg_log_level, std::string>> messages;  // "area: text"
  std::size_t count(sg_log_level level, const char *text) {
    const std::lock_guard held(lock);
    return static_cast<std::size_t>(std::ranges::count_if(messages, [&](const auto &each) {
      return each.first == level && each.second.find(text) != std::string::npos;
    }));
  }
};

void keep_message(sg_log_level level, const char *area, const char *message, void *user) {
  auto &to = *static_cast<received *>(user);
  const std::lock_guard held(to.lock);
  to.messages.emplace_back(level, std::string(area) + ": " + message);
}

class the_log : public testing::Test {
 protected:
  void TearDown() override { EXPECT_OK(sg_log_set(SG_LOG_OFF, nullptr, nullptr)); }
  // A plan of a shape that no test planned before.
  std::string plan_another() {
    static std::atomic<std::int64_t> size{3000};
    const sg_gemm_desc desc = make_gemm(nullptr, nullptr, nullptr, size++, 64, 64);
    plan made;
    EXPECT_OK(create_gemm_plan(context_, &desc, nullptr, made.out()));
    return "plan: " + std::to_string(desc.c.rows) + " x 64 x 64 f64 on ";
  }
  context context_ = open_context("sim:h200");
};

TEST_F(the_log, messages_of_the_level_and_above_reach_the_callback) {
  received info, debug, off;
  ASSERT_OK(sg_log_set(SG_LOG_INFO, keep_message, &info));
  const std::string planned = plan_another();
  EXPECT_EQ(1U, info.count(SG_LOG_INFO, planned.c_str())) << info.messages.size();
  EXPECT_EQ(0U, info.count(SG_LOG_DEBUG, ""));
  ASSERT_OK(sg_log_set(SG_LOG_DEBUG, keep_message, &debug));
  plan_another();
  EXPECT_EQ(1U, debug.count(SG_LOG_INFO, "plan: "));
  EXPECT_GT(debug.count(SG_LOG_DEBUG, "plan: candidate "), 0U);
  EXPECT_EQ(1U, info.messages.size()) << "it was replaced";
  for (const sg_log_level level : {SG_LOG_OFF, SG_LOG_ERROR, SG_LOG_WARN}) {
    ASSERT_OK(sg_log_set(level, keep_message, &off));
    plan_another();
  }
  EXPECT_EQ(0U, off.messages.size());
}

TEST_F(the_log, messages_are_one_escaped_line) {
  received all;
  ASSERT_OK(sg_log_set(SG_LOG_ERROR, keep_message, &all));
  double a = 0;
  sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
  const sg_custom_operand operand{&a, sizeof a, SG_ACCESS_WRITE};
  desc.function = [](const sg_custom_call *, void *) { return SG_STATUS_BACKEND_FAILURE; };
  desc.operands = &operand, desc.operand_count = 1;
  sg_submit submit = SG_SUBMIT_INIT;
  submit.label = "two\nlines";
  const context cpu = open_context("cpu");
  EXPECT_EQ(SG_STATUS_BACKEND_FAILURE, sg_custom(cpu, &desc, &submit));
  EXPECT_EQ(1U, all.count(SG_LOG_ERROR, "job: "));
  EXPECT_EQ(0U, all.count(SG_LOG_ERROR, "\n"));
  EXPECT_EQ(1U, all.count(SG_LOG_ERROR, "lines"));
}

TEST_F(the_log, a_callback_sets_no_other_one) {
  static std::atomic<sg_status> inner;
  inner = SG_STATUS_OK;
  ASSERT_OK(sg_log_set(
      SG_LOG_INFO,
      [](sg_log_level, const char *, const char *, void *) { inner = sg_log_set(SG_LOG_OFF, nullptr, nullptr); },
      nullptr));
  plan_another();
  EXPECT_EQ(SG_STATUS_DEADLOCK, inner);
}

TEST_F(the_log, wrong_levels_are_refused) {
  for (const int level : {-1, 5})
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_log_set(static_cast<sg_log_level>(level), nullptr, nullptr));
}

// Each receiver is gone when the next one is set.
TEST_F(the_log, no_thread_is_in_a_replaced_callback) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!ends.load()) plan_another();
    });
  struct guarded {
    std::atomic<bool> valid{true};
    std::atomic<int> calls{0};
  };
  std::vector<guarded> receivers(50);
  static std::atomic<int> wrong, unwanted;
  wrong = unwanted = 0;
  for (guarded &each : receivers) {
    EXPECT_OK(sg_log_set(
        SG_LOG_DEBUG,
        [](sg_log_level, const char *, const char *, void *user) {
          auto &here = *static_cast<guarded *>(user);
          if (!here.valid.load()) ++wrong;
          ++here.calls;
        },
        &each));
    if (&each != &receivers.front()) (&each - 1)->valid = false;
    while (each.calls.load() == 0) std::this_thread::yield();
    EXPECT_OK(sg_log_set(
        SG_LOG_ERROR, [](sg_log_level, const char *, const char *, void *) { ++unwanted; }, nullptr));
  }
  ends = true;
  for (std::thread &each : threads) each.join();
  EXPECT_OK(sg_log_set(SG_LOG_OFF, nullptr, nullptr));
  EXPECT_EQ(0, wrong);
  EXPECT_EQ(0, unwanted) << "messages below the level";
}

// A fork does not wait for a thread that sets the log, which may wait for the callback that forks.
TEST_F(the_log, a_callback_forks_while_another_is_set) {
  static std::atomic<int> state;
  state = 0;
  ASSERT_OK(sg_log_set(
      SG_LOG_INFO,
      [](sg_log_level, const char *, const char *, void *) {
        if (state.exchange(1) != 0) return;
        while (state.load() != 2) std::this_thread::yield();
        for (int i = 0; i < 20; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          const pid_t child = fork();
          if (child == 0) _exit(0);
          waitpid(child, nullptr, 0);
        }
      },
      nullptr));
  std::thread planning([&] { plan_another(); });
  while (state.load() != 1) std::this_thread::yield();
  state = 2;
  EXPECT_OK(sg_log_set(SG_LOG_OFF, nullptr, nullptr));
  planning.join();
}

}  // namespace
}  // namespace sg_test
