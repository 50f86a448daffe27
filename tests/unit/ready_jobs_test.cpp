// SPDX-License-Identifier: Apache-2.0
// Fair sharing among queued jobs of several submitters.
#include "run/dispatch/ready_jobs.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <vector>

namespace sg {
namespace {

constexpr std::uint32_t one = 3, other = 5;  // submitters

class ready : public testing::Test {
 protected:
  job &arrives(std::uint32_t submitter) {
    job &made = jobs_.emplace_back();
    made.submitter = submitter;
    list_.push(made);
    return made;
  }
  job &next() {
    job &first = list_.front();
    list_.pop();
    return first;
  }
  std::uint32_t next_of() { return next().submitter; }
  // Jobs that join the batch of the job just removed: at most so many of that submitter.
  std::vector<job *> gather(std::uint32_t submitter, std::size_t most = 100) {
    std::vector<job *> taken;
    list_.gather(
        most, [&](const job &j) { return j.submitter == submitter; },
        [&](job &j) {
          taken.push_back(&j);
          return true;
        });
    return taken;
  }

  std::deque<job> jobs_;
  ready_jobs list_;
};

TEST_F(ready, fifo_per_submitter_and_fair_between_submitters) {
  std::map<std::uint32_t, std::deque<job *>> waiting;
  for (const std::uint32_t submitter : {one, one, one, one, other, other})
    waiting[submitter].push_back(&arrives(submitter));
  EXPECT_EQ(6u, list_.size());
  std::vector<std::uint32_t> order;
  while (!list_.empty()) {
    job &first = next();
    order.push_back(first.submitter);
    EXPECT_EQ(waiting[first.submitter].front(), &first);
    waiting[first.submitter].pop_front();
  }
  EXPECT_EQ((std::vector<std::uint32_t>{one, other, one, other, one, one}), order);
  EXPECT_EQ(0u, list_.size());
}

// One submitter submits again as soon as it has room, and its batchable jobs join the batch.
TEST_F(ready, a_skipped_submitter_is_next) {
  arrives(one);
  arrives(other);
  EXPECT_EQ(one, next_of());
  EXPECT_TRUE(gather(one).empty());
  arrives(one);
  EXPECT_EQ(other, list_.front().submitter);
  arrives(one);
  EXPECT_EQ(2u, gather(one).size());
  arrives(one);
  EXPECT_EQ(other, next_of());
  EXPECT_EQ(one, next_of());
}

TEST_F(ready, a_requeued_submitter_is_next) {
  for (int round = 0; round < 5; ++round) {
    arrives(one);
    job &first = arrives(other), &second = arrives(other);
    EXPECT_EQ(one, next_of());
    const std::vector<job *> taken = gather(other);
    ASSERT_EQ((std::vector<job *>{&first, &second}), taken);
    list_.put_back(second);
    list_.put_back(first);
    arrives(one);
    EXPECT_EQ(&first, &next());
    EXPECT_EQ(one, next_of());
    EXPECT_EQ(&second, &next());
    EXPECT_TRUE(list_.empty());
  }
}

TEST_F(ready, an_idle_submitter_saves_no_share) {
  for (int i = 0; i < 10; ++i) {
    arrives(one);
    EXPECT_EQ(one, next_of());
  }
  for (const std::uint32_t submitter : {one, one, one, other, other, other}) arrives(submitter);
  std::map<std::uint32_t, int> served;
  for (int i = 0; i < 4; ++i) ++served[next_of()];
  EXPECT_EQ(2, served[one]);
  EXPECT_EQ(2, served[other]);
}

TEST_F(ready, kept_jobs_keep_their_order_and_share) {
  arrives(one);
  EXPECT_EQ(one, next_of());
  job &first = arrives(one), &second = arrives(one), &third = arrives(one), &another = arrives(other);
  int seen = 0;
  list_.keep([&](const job &j) { return ++seen, &j != &second; });
  EXPECT_EQ(4, seen);
  EXPECT_EQ(3u, list_.size());
  EXPECT_EQ(&another, &next()) << "the first submitter has been served";
  EXPECT_EQ(&first, &next());
  EXPECT_EQ(&third, &next());
  list_.keep([](const job &) { return true; });
  EXPECT_TRUE(list_.empty());
}

// Jobs of up to sixteen submitters, batched or requeued.
TEST_F(ready, no_submitter_starves) {
  constexpr std::uint32_t submitters = 16;
  std::mt19937 random(7);
  const auto below = [&](std::size_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  std::vector<std::size_t> waiting(submitters), waits_for(submitters);  // jobs; jobs of others served since it waits
  std::size_t longest = 0;
  for (int round = 0; round < 20000; ++round) {
    for (std::uint32_t i = below(4); i > 0; --i) {
      const std::uint32_t submitter = std::min(below(submitters), below(submitters));
      arrives(submitter);
      ++waiting[submitter];
    }
    if (list_.empty()) continue;
    const std::uint32_t now = next_of();
    --waiting[now];
    waits_for[now] = 0;
    for (std::uint32_t i = 0; i < submitters; ++i) {
      waits_for[i] = i == now || waiting[i] == 0 ? 0 : waits_for[i] + 1;
      longest = std::max(longest, waits_for[i]);
    }
    const std::uint32_t like_it = below(submitters);
    std::vector<job *> taken = gather(like_it, 1 + below(5));
    while (!taken.empty() && below(3)) {
      list_.put_back(*taken.back());
      taken.pop_back();
    }
    waiting[like_it] -= taken.size();
    if (waiting[like_it] == 0) waits_for[like_it] = 0;
  }
  EXPECT_GE(longest, 8u) << "few waits occur here";
  EXPECT_LE(longest, 2 * (submitters - 1));
}

}  // namespace
}  // namespace sg
