// SPDX-License-Identifier: Apache-2.0
// Streams and events: order within a stream and across streams, and exactly one completion for each command.
#include <atomic>

#include "harness.hpp"
#include "support/sanitizers.hpp"

namespace sg::test {
namespace {

class streams : public conformance {
 protected:
  // A copy of enough bytes that the next commands are queued meanwhile; a sanitizer makes it several times as long.
  static constexpr std::int64_t long_bytes = (sg_test::sanitized ? 4 : 32) << 20;
};

sg_backend_copy within(void *dst, const void *src, std::int64_t bytes) {
  return run_of_bytes(dst, src, bytes, SG_MEMORY_DEVICE, SG_MEMORY_DEVICE);
}

TEST_P(streams, commands_of_a_stream_run_in_order) {
  constexpr int steps = 500;  // several blocks of a queue
  memory ring(dev(), (steps + 1) * 64);
  stream in(dev());
  std::vector<char> data((steps + 1) * 64, 0);
  std::memset(data.data(), 42, 64);
  ring.write(in, data.data());
  listener completions;
  // Each copies the result of the previous one.
  for (int i = 0; i < steps; ++i) {
    const sg_backend_copy step = within(ring.data() + (i + 1) * 64, ring.data() + i * 64, 64);
    ASSERT_EQ(enqueue(*dev(), in, step, completions.done()), SG_STATUS_OK);
  }
  ASSERT_TRUE(completions.wait(steps));
  ring.read(in, data.data());
  EXPECT_EQ(data, std::vector<char>(data.size(), 42));
}

TEST_P(streams, completions_come_once_in_order_from_another_thread) {
  struct record {
    std::mutex mutex;
    std::vector<int> order;
    std::vector<std::thread::id> threads;
    std::vector<std::int64_t> starts, ends;
  } seen;
  struct tag {
    record *to;
    int number;
  };
  constexpr int count = 300;
  std::vector<tag> tags;
  for (int i = 0; i < count; ++i) tags.push_back({&seen, i});
  memory data(dev(), 128);
  {
    stream in(dev());
    for (int i = 0; i < count; ++i) {
      const sg_backend_done done = {[](void *user, const sg_backend_result *result) {
                                      const tag &own = *static_cast<tag *>(user);
                                      const std::lock_guard lock(own.to->mutex);
                                      own.to->order.push_back(own.number);
                                      own.to->threads.push_back(std::this_thread::get_id());
                                      own.to->starts.push_back(result->start_ns);
                                      own.to->ends.push_back(result->end_ns);
                                    },
                                    &tags[static_cast<std::size_t>(i)]};
      const sg_backend_copy step = within(data.data() + 64, data.data(), 64);
      ASSERT_EQ(i % 3 == 0 ? enqueue_marker(*dev(), in, done) : enqueue(*dev(), in, step, done), SG_STATUS_OK);
    }
  }
  ASSERT_EQ(seen.order.size(), static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(seen.order[at], i);
    EXPECT_NE(seen.threads[at], std::this_thread::get_id());
    EXPECT_LE(seen.starts[at], seen.ends[at]);
    if (i > 0) {
      EXPECT_LE(seen.ends[at - 1], seen.ends[at]);
    }
  }
}

// A completion callback may enqueue: here each one enqueues the next, on its own stream.
TEST_P(streams, a_completion_may_enqueue) {
  struct chain {
    const device &on;
    stream &in;
    listener end;
    int left = 50;
    static void next(void *self, const sg_backend_result *result) {
      auto &own = *static_cast<chain *>(self);
      if (result->status != SG_STATUS_OK || --own.left == 0)
        own.end.done().fn(&own.end, result);
      else
        EXPECT_EQ(enqueue_marker(own.on, own.in, {next, self}), SG_STATUS_OK);
    }
  };
  stream in(dev());
  chain links = {*dev(), in, {}};
  ASSERT_EQ(enqueue_marker(*dev(), in, {chain::next, &links}), SG_STATUS_OK);
  ASSERT_TRUE(links.end.wait(1));
  EXPECT_EQ(links.left, 0);
}

TEST_P(streams, a_stream_waits_for_an_event_of_another) {
  stream first(dev()), second(dev());
  event ready(dev());
  memory a(dev(), long_bytes), b(dev(), long_bytes), c(dev(), 64);
  const std::vector<char> zeros(long_bytes);
  for (int round = 0; round < 10; ++round) {
    a.write(first, std::vector<char>(long_bytes, static_cast<char>(round + 1)).data());
    b.write(first, zeros.data());
    const sg_backend_copy slow = within(b.data(), a.data(), long_bytes);
    const sg_backend_copy dependent = within(c.data(), b.data() + long_bytes - 64, 64);
    ASSERT_EQ(enqueue(*dev(), first, slow, {nullptr, nullptr}), SG_STATUS_OK);
    ASSERT_EQ(ops().event_record(ready.handle(), first.handle()), SG_STATUS_OK);
    ASSERT_EQ(ops().stream_wait(second.handle(), ready.handle()), SG_STATUS_OK);
    ASSERT_EQ(enqueue(*dev(), second, dependent, {nullptr, nullptr}), SG_STATUS_OK);
    std::vector<char> found(64);
    c.read(second, found.data());
    EXPECT_EQ(found, std::vector<char>(64, static_cast<char>(round + 1)));
    EXPECT_EQ(first.finish(), SG_STATUS_OK);
  }
}

// A wait is for the record at the time of the call: a later record of the same event, on another stream, does not
// satisfy it.
TEST_P(streams, a_wait_uses_the_record_at_the_time_of_the_call) {
  stream slow_one(dev()), quick_one(dev()), waiting(dev());
  event ready(dev());
  memory a(dev(), long_bytes), b(dev(), long_bytes), c(dev(), 64);
  a.write(slow_one, std::vector<char>(long_bytes, 7).data());
  b.write(slow_one, std::vector<char>(long_bytes, 0).data());
  const sg_backend_copy slow = within(b.data(), a.data(), long_bytes);
  const sg_backend_copy dependent = within(c.data(), b.data() + long_bytes - 64, 64);
  ASSERT_EQ(enqueue(*dev(), slow_one, slow, {nullptr, nullptr}), SG_STATUS_OK);
  ASSERT_EQ(ops().event_record(ready.handle(), slow_one.handle()), SG_STATUS_OK);
  ASSERT_EQ(ops().stream_wait(waiting.handle(), ready.handle()), SG_STATUS_OK);
  ASSERT_EQ(ops().event_record(ready.handle(), quick_one.handle()), SG_STATUS_OK);
  ASSERT_EQ(enqueue(*dev(), waiting, dependent, {nullptr, nullptr}), SG_STATUS_OK);
  std::vector<char> found(64);
  c.read(waiting, found.data());
  EXPECT_EQ(found, std::vector<char>(64, 7));
  EXPECT_EQ(slow_one.finish(), SG_STATUS_OK);
}

TEST_P(streams, an_unrecorded_event_is_complete) {
  stream in(dev());
  event never(dev());
  ASSERT_EQ(ops().stream_wait(in.handle(), never.handle()), SG_STATUS_OK);
  EXPECT_EQ(in.finish(), SG_STATUS_OK);
}

TEST_P(streams, an_event_outlives_its_stream) {
  event ready(dev());
  {
    stream gone(dev());
    ASSERT_EQ(enqueue_marker(*dev(), gone, {nullptr, nullptr}), SG_STATUS_OK);
    ASSERT_EQ(ops().event_record(ready.handle(), gone.handle()), SG_STATUS_OK);
  }
  stream in(dev());
  ASSERT_EQ(ops().stream_wait(in.handle(), ready.handle()), SG_STATUS_OK);
  EXPECT_EQ(in.finish(), SG_STATUS_OK);
}

TEST_P(streams, waiting_for_its_own_event_does_not_stop_a_stream) {
  stream in(dev());
  event own(dev());
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(ops().event_record(own.handle(), in.handle()), SG_STATUS_OK);
    ASSERT_EQ(ops().stream_wait(in.handle(), own.handle()), SG_STATUS_OK);
    ASSERT_EQ(enqueue_marker(*dev(), in, {nullptr, nullptr}), SG_STATUS_OK);
  }
  EXPECT_EQ(in.finish(), SG_STATUS_OK);
}

TEST_P(streams, come_and_go_with_every_priority) {
  for (int i = 0; i < 30; ++i) {
    stream in(dev(), i % 3 - 1);
    EXPECT_EQ(in.finish(), SG_STATUS_OK);
  }
}

// Four threads, each with its own streams, waiting for one another's events in a ring.
TEST_P(streams, of_several_threads_run_beside_each_other) {
  constexpr int threads = 4, rounds = 200;
  std::vector<std::unique_ptr<event>> tokens;
  for (int i = 0; i < threads; ++i) tokens.push_back(std::make_unique<event>(dev()));
  std::atomic<int> completed = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i)
    workers.emplace_back([&, i] {
      stream in(dev());
      const sg_backend_done done = {
          [](void *count, const sg_backend_result *) { ++*static_cast<std::atomic<int> *>(count); }, &completed};
      for (int round = 0; round < rounds; ++round) {
        EXPECT_EQ(ops().stream_wait(in.handle(), tokens[static_cast<std::size_t>((i + 1) % threads)]->handle()),
                  SG_STATUS_OK);
        EXPECT_EQ(enqueue_marker(*dev(), in, done), SG_STATUS_OK);
        EXPECT_EQ(ops().event_record(tokens[static_cast<std::size_t>(i)]->handle(), in.handle()), SG_STATUS_OK);
      }
    });
  for (std::thread &x : workers) x.join();
  EXPECT_EQ(completed.load(), threads * rounds);
}

SG_CONFORMANCE(streams);

}  // namespace
}  // namespace sg::test
