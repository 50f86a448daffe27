// SPDX-License-Identifier: Apache-2.0
// The simulated device through its table: order, planned faults, exit, many threads.
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "sim_device.hpp"
#include "support/gate.h"

namespace sg::test {
namespace {

using std::string;

TEST(SimStreams, CallbacksComeInOrderOnAThreadOfTheDevice) {
  struct record {
    std::mutex mutex;
    std::vector<int> order;
    std::vector<std::thread::id> threads;
  } seen;
  struct note {
    record *where;
    int number;
  };
  std::vector<note> notes;
  for (int i = 0; i < 100; ++i) notes.push_back({&seen, i});
  {
    sim_device device("h200");
    sim_stream stream(device);
    const auto tell = [](void *user, const sg_backend_result *) {
      const note &mine = *static_cast<note *>(user);
      std::lock_guard lock(mine.where->mutex);
      mine.where->order.push_back(mine.number);
      mine.where->threads.push_back(std::this_thread::get_id());
    };
    for (note &each : notes) ASSERT_EQ(enqueue(stream.handle(), marker_command, {tell, &each}), SG_STATUS_OK);
  }
  ASSERT_EQ(seen.order.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(seen.order[i], i);
    EXPECT_NE(seen.threads[i], std::this_thread::get_id());
  }
}

// The writer is late in real time, so a reader that does not wait reads NaN.
TEST(SimStreams, EventsOrderStreams) {
  sim_device device("h200?late-copy=1:20000");
  sim_memory memory(device, 8);
  sim_stream writer(device), reader(device);
  sg_backend_event *event = nullptr;
  ASSERT_EQ(ops.event_create(device.handle(), &event), SG_STATUS_OK);
  EXPECT_EQ(ops.stream_wait(reader.handle(), event), SG_STATUS_OK);  // never recorded: nothing to wait for
  const double sent = 42;
  double got = 0;
  const sg_backend_copy in = copy_in(memory.get(), &sent, 8);
  completion written;
  ASSERT_EQ(enqueue(writer.handle(), in.header, written.done()), SG_STATUS_OK);
  ASSERT_EQ(ops.event_record(event, writer.handle()), SG_STATUS_OK);
  ASSERT_EQ(ops.stream_wait(reader.handle(), event), SG_STATUS_OK);
  const outcome read = run_copy(device, reader, copy_out(&got, memory.get(), 8));
  EXPECT_EQ(read.status, SG_STATUS_OK);
  EXPECT_EQ(got, 42);
  EXPECT_EQ(written.times(), 1);
  EXPECT_GE(read.start_ns, written.wait().end_ns);
  EXPECT_GE(written.wait().end_ns - written.wait().start_ns, 20'000'000);
  ops.event_destroy(event);
}

TEST(SimStreams, ACallbackMayDestroyItsOwnStream) {
  sim_device device("h200");
  struct both {
    sg_backend_stream *stream = nullptr;
    completion gone;
  } own;
  ASSERT_EQ(ops.stream_create(device.handle(), 0, &own.stream), SG_STATUS_OK);
  const auto destroy = [](void *user, const sg_backend_result *result) {
    auto *mine = static_cast<both *>(user);
    ops.stream_destroy(mine->stream);
    const sg_backend_done next = mine->gone.done();
    next.fn(next.user, result);
  };
  ASSERT_EQ(enqueue(own.stream, marker_command, {destroy, &own}), SG_STATUS_OK);
  EXPECT_EQ(own.gone.wait().status, SG_STATUS_OK);
}

TEST(SimFaults, TheNthAllocationFails) {
  sim_device device("h200?fail-alloc=3");
  void *memory[3] = {}, *pinned = nullptr;
  ASSERT_EQ(ops.mem_alloc(device.handle(), 10, &memory[0]), SG_STATUS_OK);
  ASSERT_EQ(ops.host_alloc(device.handle(), 10, &pinned), SG_STATUS_OK);
  EXPECT_EQ(ops.mem_alloc(device.handle(), 10, &memory[1]), SG_STATUS_OUT_OF_MEMORY);
  expect_text(device.last_message(), "planned fault: allocation 3");
  ASSERT_EQ(ops.mem_alloc(device.handle(), 10, &memory[2]), SG_STATUS_OK);
  ops.mem_free(device.handle(), memory[0]);
  ops.mem_free(device.handle(), memory[2]);
  ops.host_free(device.handle(), pinned);
}

TEST(SimFaults, TheNthCopyFailsOnceAndWritesNothing) {
  sim_device device("h200?fail-copy=2&refuse-copy=4");
  sim_memory memory(device, 8);
  sim_stream stream(device);
  const double first = 1, second = 2;
  double got = 0;
  EXPECT_EQ(run_copy(device, stream, copy_in(memory.get(), &first, 8)).status, SG_STATUS_OK);
  const outcome failed = run_copy(device, stream, copy_in(memory.get(), &second, 8));
  EXPECT_EQ(failed.status, SG_STATUS_BACKEND_FAILURE);
  expect_text(failed.message, "planned fault: copy 2 fails");
  EXPECT_EQ(run_copy(device, stream, copy_out(&got, memory.get(), 8)).status, SG_STATUS_OK);
  EXPECT_EQ(got, 1);
  completion never;
  const sg_backend_copy out = copy_out(&got, memory.get(), 8);
  EXPECT_EQ(enqueue(stream.handle(), out.header, never.done()), SG_STATUS_BACKEND_FAILURE);
  expect_text(device.last_message(), "copy 4 is refused");
  EXPECT_EQ(run_copy(device, stream, out).status, SG_STATUS_OK);
  EXPECT_EQ(never.times(), 0);
}

TEST(SimFaults, TheNthLaunchFails) {
  sim_device device("h200?fail-launch=2&refuse-launch=3");
  sim_memory memory(device, 192);
  sim_stream stream(device);
  const sg_backend_gemm gemm = square_gemm(4, memory.get(), memory.at(64), memory.at(128));
  EXPECT_EQ(run_gemm(device, stream, gemm).status, SG_STATUS_OK);
  const outcome failed = run_gemm(device, stream, gemm);
  EXPECT_EQ(failed.status, SG_STATUS_BACKEND_FAILURE);
  expect_text(failed.message, "planned fault: launch 2");
  EXPECT_EQ(run_gemm(device, stream, gemm).message, "planned fault: launch 3, a GEMM, is refused");
  EXPECT_EQ(run_gemm(device, stream, gemm).status, SG_STATUS_OK);
}

TEST(SimFaults, AnUnreportedFailureIsReportedNext) {
  sim_device device("h200?fail-copy=1");
  sim_memory memory(device, 8);
  sim_stream stream(device);
  const double value = 1;
  const sg_backend_copy in = copy_in(memory.get(), &value, 8);
  ASSERT_EQ(enqueue(stream.handle(), in.header, {nullptr, nullptr}), SG_STATUS_OK);
  const auto notify = [&] {
    return run(device, [&](sg_backend_done done) { return enqueue(stream.handle(), marker_command, done); });
  };
  EXPECT_EQ(notify().status, SG_STATUS_BACKEND_FAILURE);
  EXPECT_EQ(notify().status, SG_STATUS_OK);
}

TEST(SimFaults, UnsupportedGemmsAreRefused) {
  const temporary_file model(unit_model());  // has rates for f32 only
  sim_device device(model.path());
  sim_memory memory(device, 512);
  sim_stream stream(device);
  EXPECT_EQ(run_gemm(device, stream, square_gemm(4, memory.get(), memory.get(), memory.at(256), SG_DTYPE_F64)).status,
            SG_STATUS_UNSUPPORTED);
  sg_backend_gemm mixed = square_gemm(4, memory.get(), memory.get(), memory.at(256));
  mixed.out_type = SG_DTYPE_F16;
  EXPECT_EQ(run_gemm(device, stream, mixed).status, SG_STATUS_UNSUPPORTED);
}

TEST(SimDrain, RunningCommandsCompleteAndQueuedOnesAreDropped) {
  gate *held = gate_new(8);
  if (!held) GTEST_SKIP() << "userfaultfd is not available here";
  sim_device device("h200");
  sim_memory memory(device, 8);
  sim_stream busy(device), waiting(device);
  const double value = 1;
  const sg_backend_copy in = copy_in(memory.get(), &value, 8), slow = copy_in(memory.get(), gate_memory(held), 8);
  completion running, dropped, behind;
  sg_backend_event *event = nullptr;
  ASSERT_EQ(ops.event_create(device.handle(), &event), SG_STATUS_OK);
  ASSERT_EQ(enqueue(busy.handle(), slow.header, running.done()), SG_STATUS_OK);
  ASSERT_EQ(enqueue(busy.handle(), in.header, dropped.done()), SG_STATUS_OK);
  ASSERT_EQ(ops.event_record(event, busy.handle()), SG_STATUS_OK);
  ASSERT_EQ(ops.stream_wait(waiting.handle(), event), SG_STATUS_OK);
  ASSERT_EQ(enqueue(waiting.handle(), marker_command, behind.done()), SG_STATUS_OK);
  ASSERT_EQ(gate_reached(held, 300000), 1);
  std::thread opener([&] {  // the streams start to refuse in the order of their creation
    while (enqueue(waiting.handle(), marker_command, {nullptr, nullptr}) == SG_STATUS_OK) std::this_thread::yield();
    gate_open(held);
  });
  ops.drain(device.handle());
  opener.join();
  EXPECT_EQ(running.times() + dropped.times() + behind.times(), 3);
  EXPECT_EQ(running.wait().status, SG_STATUS_OK);
  EXPECT_EQ(dropped.wait().status, SG_STATUS_SHUTDOWN);
  EXPECT_EQ(behind.wait().status, SG_STATUS_SHUTDOWN);
  EXPECT_EQ(run_copy(device, busy, in).status, SG_STATUS_SHUTDOWN);
  sg_backend_stream *late = nullptr;
  EXPECT_EQ(ops.stream_create(device.handle(), 0, &late), SG_STATUS_SHUTDOWN);
  ops.event_destroy(event);
  gate_free(held);
}

// The threads that would have to reply do not exist in the child.
TEST(SimDrain, AChildOfForkWaitsForNoThreads) {
  sim_device device("h200?late-copy=1:100000");
  sim_memory memory(device, 8);
  sim_stream stream(device);
  const double value = 1;
  const sg_backend_copy in = copy_in(memory.get(), &value, 8);
  completion end;
  ASSERT_EQ(enqueue(stream.handle(), in.header, end.done()), SG_STATUS_OK);
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
    ops.drain(device.handle());
    ops.stream_destroy(stream.handle());
    ops.device_close(device.handle());
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(end.wait().status, SG_STATUS_OK);
}

// Many threads at once, each with a stream of its own; most useful under ThreadSanitizer.
TEST(SimStreams, ManyThreadsShareADevice) {
  sim_device device("h200");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      sim_stream stream(device);
      for (int i = 0; i < 50; ++i) {
        sim_memory memory(device, 64);
        const double sent = t * 1000 + i;
        double got = 0;
        const sg_backend_copy in = copy_in(memory.at(8), &sent, 8);
        if (enqueue(stream.handle(), in.header, {nullptr, nullptr}) != SG_STATUS_OK) ++wrong;
        if (run_copy(device, stream, copy_out(&got, memory.at(8), 8)).status != SG_STATUS_OK || got != sent) ++wrong;
      }
    });
  for (std::thread &each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace sg::test
