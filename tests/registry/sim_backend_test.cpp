// SPDX-License-Identifier: Apache-2.0
// The simulated device through its table: names, memory, mixed-up addresses, order, planned faults, exit.
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "sim_device.hpp"

namespace sg::test {
namespace {

using std::string;

const sg_backend_ops &ops = *sg_sim_backend();

// Runs one command and gives its outcome, or the status with which it was refused.
template <class Enqueue>
outcome run(sim_device &device, Enqueue &&enqueue) {
  completion end;
  const sg_status accepted = enqueue(end.done());
  return accepted == SG_STATUS_OK ? end.wait() : outcome{accepted, device.last_message(), 0, 0};
}
outcome run_copy(sim_device &device, sim_stream &stream, sg_backend_copy copy) {
  return run(device, [&](sg_backend_done done) { return ops.copy(stream.handle(), &copy, done); });
}
outcome run_gemm(sim_device &device, sim_stream &stream, sg_backend_gemm gemm) {
  return run(device, [&](sg_backend_done done) { return ops.gemm(stream.handle(), &gemm, done); });
}

void expect_text(const string &text, const string &part) {
  EXPECT_NE(text.find(part), string::npos) << "\"" << text << "\" does not say \"" << part << "\"";
}

TEST(SimNames, CountedDevicesOpen) {
  ASSERT_EQ(ops.device_count(), 3);
  const char *expected[] = {"h200", "a100", "pcie3"};
  for (int i = 0; i < 3; ++i) {
    char name[64];
    ASSERT_EQ(ops.device_name(i, name, sizeof name), SG_STATUS_OK);
    EXPECT_STREQ(name, expected[i]);
    sim_device device(name);
    ASSERT_EQ(device.status(), SG_STATUS_OK) << device.open_message();
    expect_text(ops.device_model(device.handle()), string("\"") + name + "\"");
  }
  char name[64];
  EXPECT_EQ(ops.device_name(3, name, sizeof name), SG_STATUS_NO_DEVICE);
  EXPECT_EQ(ops.device_name(-1, name, sizeof name), SG_STATUS_NO_DEVICE);
}

TEST(SimNames, ModelFileOpens) {
  const temporary_file model(unit_model());
  sim_device device(model.path() + "?memory=4MiB&timing-only");
  ASSERT_EQ(device.status(), SG_STATUS_OK) << device.open_message();
  expect_text(ops.device_model(device.handle()), "\"memory_bytes\": 4194304");
}

TEST(SimNames, WrongOnesAreRefusedWithAReason) {
  const temporary_file broken("{"), array("[1]"), unknown(R"({"name": "x", "wheels": 4})");
  const temporary_file unified(R"({"unified_memory": true})");
  const string pipe = "/tmp/sg-pipe-" + std::to_string(getpid()) + ".json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const struct {
    string name;
    sg_status status;
    string reason;
  } cases[] = {
      {"h300", SG_STATUS_NO_DEVICE, "h200, a100, pcie3"},
      {"", SG_STATUS_NO_DEVICE, "h200"},
      {"h200?", SG_STATUS_INVALID_ARGUMENT, "no option \"\""},
      {"h200?fast", SG_STATUS_INVALID_ARGUMENT, "timing-only"},
      {"h200?timing-only=1", SG_STATUS_INVALID_ARGUMENT, "no option"},
      {"h200?fail-alloc", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?fail-alloc=0", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?fail-copy=-1", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?fail-launch=99999999999999999999", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?fail-launch=1x", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?late-copy=1", SG_STATUS_INVALID_ARGUMENT, "MICROSECONDS"},
      {"h200?late-copy=1:60000001", SG_STATUS_INVALID_ARGUMENT, "minute"},
      {"h200?memory=GiB", SG_STATUS_INVALID_ARGUMENT, "whole number"},
      {"h200?memory=9999999999TiB", SG_STATUS_INVALID_ARGUMENT, "63 bits"},
      {"h200?memory=8388607TiB", SG_STATUS_INVALID_ARGUMENT, "memory_bytes"},
      {"h200?timing-only&&", SG_STATUS_INVALID_ARGUMENT, "no option"},
      {"/nonexistent/model", SG_STATUS_INVALID_ARGUMENT, "No such file"},
      {"nonexistent.json", SG_STATUS_INVALID_ARGUMENT, "No such file"},
      {"/tmp/", SG_STATUS_INVALID_ARGUMENT, "regular file"},
      {"/dev/zero", SG_STATUS_INVALID_ARGUMENT, "regular file"},
      {pipe, SG_STATUS_INVALID_ARGUMENT, "regular file"},
      {broken.path(), SG_STATUS_INVALID_ARGUMENT, "not a JSON object"},
      {array.path(), SG_STATUS_INVALID_ARGUMENT, "not a JSON object"},
      {unknown.path(), SG_STATUS_INVALID_ARGUMENT, "missing"},
      {unified.path(), SG_STATUS_INVALID_ARGUMENT, "unified_memory"},
      {string(4000, 'x') + "/", SG_STATUS_INVALID_ARGUMENT, "cannot be read"},
  };
  for (const auto &wrong : cases) {
    sim_device device(wrong.name);
    EXPECT_EQ(device.status(), wrong.status) << wrong.name << ": " << device.open_message();
    EXPECT_EQ(device.handle(), nullptr);
    expect_text(device.open_message(), wrong.reason);
  }
  unlink(pipe.c_str());
}

TEST(SimMemory, BytesGoThereAndComeBack) {
  sim_device device("h200");
  sim_memory memory(device, 1000);
  sim_stream stream(device);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % 256, 0u);
  const string sent = "to the device and back";
  string got(sent.size(), ' ');
  EXPECT_EQ(run_copy(device, stream, copy_in(memory.at(978), sent.data(), 22)).status, SG_STATUS_OK);
  EXPECT_EQ(run_copy(device, stream, copy_out(got.data(), memory.at(978), 22)).status, SG_STATUS_OK);
  EXPECT_EQ(got, sent);
}

TEST(SimMemory, PitchedCopiesTouchTheirRunsOnly) {
  sim_device device("h200");
  sim_memory memory(device, 100), second(device, 30);
  sim_stream stream(device);
  string sent = "abc..def..ghi", got(17, '-');
  const sg_backend_copy in{memory.at(10), sent.data(), 30, 5, 3, 3, 1, 0};
  const sg_backend_copy across{second.get(), memory.at(10), 10, 30, 3, 3, 1, 1};
  const sg_backend_copy out{got.data(), second.get(), 7, 10, 3, 3, 0, 1};
  EXPECT_EQ(run_copy(device, stream, in).status, SG_STATUS_OK);
  EXPECT_EQ(run_copy(device, stream, across).status, SG_STATUS_OK);
  EXPECT_EQ(run_copy(device, stream, out).status, SG_STATUS_OK);
  EXPECT_EQ(got, "abc----def----ghi");
}

TEST(SimMemory, NewMemoryReadsAsNan) {
  sim_device device("h200");
  sim_memory memory(device, 8);
  sim_stream stream(device);
  double value = 0;
  EXPECT_EQ(run_copy(device, stream, copy_out(&value, memory.get(), 8)).status, SG_STATUS_OK);
  EXPECT_NE(value, value);
}

// A device pointer that the host follows ends the process.
TEST(SimMemoryDeathTest, HostCannotFollowDevicePointers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  sim_device device("h200");
  sim_memory memory(device, 64);
  EXPECT_DEATH(*static_cast<volatile char *>(memory.get()) = 1, "");
}

TEST(SimMemory, SizeIsLimitedByTheModel) {
  sim_device device("h200?memory=1MiB");
  void *memory = nullptr, *more = nullptr;
  EXPECT_EQ(ops.mem_alloc(device.handle(), (1 << 20) + 1, &memory), SG_STATUS_OUT_OF_MEMORY);
  EXPECT_EQ(memory, nullptr);
  ASSERT_EQ(ops.mem_alloc(device.handle(), 1 << 20, &memory), SG_STATUS_OK);
  EXPECT_EQ(ops.mem_alloc(device.handle(), 1, &more), SG_STATUS_OUT_OF_MEMORY);
  expect_text(device.last_message(), "0 of 1048576 are free");
  ops.mem_free(device.handle(), memory);
  ops.mem_free(device.handle(), nullptr);
  ASSERT_EQ(ops.mem_alloc(device.handle(), 1 << 20, &memory), SG_STATUS_OK);
  ops.mem_free(device.handle(), memory);
  EXPECT_EQ(ops.mem_alloc(device.handle(), UINT64_MAX, &memory), SG_STATUS_OUT_OF_MEMORY);
}

TEST(SimMemory, KindsAreKnown) {
  sim_device device("h200");
  sim_memory memory(device, 4096);
  std::vector<char> plain(10000);
  void *pinned = nullptr;
  ASSERT_EQ(ops.host_alloc(device.handle(), 5000, &pinned), SG_STATUS_OK);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pinned) % 4096, 0u);
  static_cast<char *>(pinned)[4999] = 1;
  const auto kind = [&](const void *at, std::uint64_t bytes) { return ops.memory_kind(device.handle(), at, bytes); };
  EXPECT_EQ(kind(memory.get(), 4096), SG_MEMORY_DEVICE);
  EXPECT_EQ(kind(memory.at(4000), 96), SG_MEMORY_DEVICE);
  EXPECT_EQ(kind(memory.at(4000), 97), SG_MEMORY_PAGEABLE);
  EXPECT_EQ(kind(pinned, 5000), SG_MEMORY_PINNED);
  EXPECT_EQ(kind(pinned, UINT64_MAX), SG_MEMORY_PAGEABLE);
  EXPECT_EQ(kind(plain.data(), 10), SG_MEMORY_PAGEABLE);
  EXPECT_EQ(kind(nullptr, 0), SG_MEMORY_PAGEABLE);

  ASSERT_EQ(ops.host_register(device.handle(), plain.data() + 100, 1000), SG_STATUS_OK);
  EXPECT_EQ(kind(plain.data() + 100, 1000), SG_MEMORY_PINNED);
  EXPECT_EQ(kind(plain.data() + 99, 1000), SG_MEMORY_PAGEABLE);
  EXPECT_EQ(ops.host_register(device.handle(), plain.data() + 1099, 1), SG_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(ops.host_register(device.handle(), plain.data(), 5000), SG_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(ops.host_register(device.handle(), memory.get(), 1), SG_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(ops.host_unregister(device.handle(), plain.data()), SG_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(ops.host_unregister(device.handle(), pinned), SG_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(ops.host_unregister(device.handle(), plain.data() + 100), SG_STATUS_OK);
  EXPECT_EQ(kind(plain.data() + 100, 1000), SG_MEMORY_PAGEABLE);
  ops.host_free(device.handle(), pinned);
  ops.host_free(device.handle(), nullptr);
}

TEST(SimMixUps, EachOperandInTheWrongMemoryIsFound) {
  sim_device device("h200"), other("h200");
  sim_stream stream(device);
  sim_memory memory(device, 300), foreign(other, 300);
  std::vector<float> host(75);
  void *freed = nullptr;
  ASSERT_EQ(ops.mem_alloc(device.handle(), 300, &freed), SG_STATUS_OK);
  ops.mem_free(device.handle(), freed);
  const auto expect_caught = [](const outcome &got, const string &operand) {
    EXPECT_EQ(got.status, SG_STATUS_BACKEND_FAILURE);
    expect_text(got.message, operand);
  };

  expect_caught(run_copy(device, stream, copy_in(host.data(), host.data(), 8)), "destination of a copy");
  expect_caught(run_copy(device, stream, copy_in(memory.get(), memory.get(), 8)), "source of a copy");
  expect_caught(run_copy(device, stream, copy_out(memory.get(), memory.get(), 8)), "destination of a copy");
  expect_caught(run_copy(device, stream, copy_out(host.data(), host.data(), 8)), "source of a copy");
  expect_caught(run_copy(device, stream, copy_in(memory.at(299), host.data(), 2)), "reaches past its allocation");
  expect_caught(run_copy(device, stream, copy_in(memory.at(300), host.data(), 1)), "is not memory of this device");
  expect_caught(run_copy(device, stream, copy_in(foreign.get(), host.data(), 1)), "is not memory of this device");
  expect_caught(run_copy(device, stream, copy_in(nullptr, host.data(), 1)), "is not memory of this device");
  const sg_backend_copy pitched{memory.get(), host.data(), 100, 4, 4, 4, 1, 0};  // the last run starts at byte 300
  expect_caught(run_copy(device, stream, pitched), "reaches past its allocation");

  void *good = memory.get();
  expect_caught(run_gemm(device, stream, square_gemm(4, host.data(), good, good)), "A of a product");
  expect_caught(run_gemm(device, stream, square_gemm(4, good, host.data(), good)), "B of a product");
  expect_caught(run_gemm(device, stream, square_gemm(4, good, good, host.data())), "C of a product");
  expect_caught(run_gemm(device, stream, square_gemm(9, good, good, good)), "reaches past");
  sg_backend_gemm batched = square_gemm(4, good, good, good);
  batched.batch = 1 << 20;
  batched.stride_c = INT64_MAX / 2;
  expect_caught(run_gemm(device, stream, batched), "C of a product");
  const void *const places[] = {good, freed};
  sg_backend_gemm scattered = square_gemm(4, nullptr, good, good);
  scattered.batch = 2;
  scattered.a_array = places;
  expect_caught(run_gemm(device, stream, scattered), "A of a product");

  sg_backend_reduce reduce{};
  reduce.m = reduce.n = reduce.part_ld = reduce.ldc = 4;
  reduce.part_type = reduce.out_type = SG_DTYPE_F32;
  reduce.parts_count = 2;
  reduce.part_stride = 16;
  const auto run_reduce = [&](const void *parts, void *c) {
    reduce.parts = parts;
    reduce.c = c;
    return run(device, [&](sg_backend_done done) { return ops.reduce(stream.handle(), &reduce, done); });
  };
  expect_caught(run_reduce(host.data(), good), "parts of a reduction");
  expect_caught(run_reduce(good, host.data()), "C of a reduction");
  reduce.part_stride = 60;
  expect_caught(run_reduce(good, good), "parts of a reduction");
}

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
    for (note &each : notes) ASSERT_EQ(ops.notify(stream.handle(), {tell, &each}), SG_STATUS_OK);
  }
  ASSERT_EQ(seen.order.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(seen.order[i], i);
    EXPECT_NE(seen.threads[i], std::this_thread::get_id());
  }
}

// The writer is late in the world's time, so a reader that does not wait reads NaN.
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
  ASSERT_EQ(ops.copy(writer.handle(), &in, written.done()), SG_STATUS_OK);
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
  ASSERT_EQ(ops.notify(own.stream, {destroy, &own}), SG_STATUS_OK);
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
  EXPECT_EQ(ops.copy(stream.handle(), &out, never.done()), SG_STATUS_BACKEND_FAILURE);
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
  EXPECT_EQ(run_gemm(device, stream, gemm).message, "planned fault: launch 3, a product, is refused");
  EXPECT_EQ(run_gemm(device, stream, gemm).status, SG_STATUS_OK);
}

TEST(SimFaults, AFailureThatNobodyWasToldIsToldNext) {
  sim_device device("h200?fail-copy=1");
  sim_memory memory(device, 8);
  sim_stream stream(device);
  const double value = 1;
  const sg_backend_copy in = copy_in(memory.get(), &value, 8);
  ASSERT_EQ(ops.copy(stream.handle(), &in, {nullptr, nullptr}), SG_STATUS_OK);
  const auto notify = [&] {
    return run(device, [&](sg_backend_done done) { return ops.notify(stream.handle(), done); });
  };
  EXPECT_EQ(notify().status, SG_STATUS_BACKEND_FAILURE);
  EXPECT_EQ(notify().status, SG_STATUS_OK);
}

TEST(SimFaults, UnsupportedProductsAreRefused) {
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

TEST(SimDrain, WhatRunsEndsAndTheRestIsDropped) {
  sim_device device("h200?late-copy=1:100000");
  sim_memory memory(device, 8);
  sim_stream busy(device), waiting(device);
  const double value = 1;
  const sg_backend_copy in = copy_in(memory.get(), &value, 8);
  completion running, dropped, behind;
  sg_backend_event *event = nullptr;
  ASSERT_EQ(ops.event_create(device.handle(), &event), SG_STATUS_OK);
  ASSERT_EQ(ops.copy(busy.handle(), &in, running.done()), SG_STATUS_OK);
  ASSERT_EQ(ops.copy(busy.handle(), &in, dropped.done()), SG_STATUS_OK);
  ASSERT_EQ(ops.event_record(event, busy.handle()), SG_STATUS_OK);
  ASSERT_EQ(ops.stream_wait(waiting.handle(), event), SG_STATUS_OK);
  ASSERT_EQ(ops.notify(waiting.handle(), behind.done()), SG_STATUS_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // until the first copy runs
  ops.drain(device.handle());
  EXPECT_EQ(running.times() + dropped.times() + behind.times(), 3);
  EXPECT_EQ(running.wait().status, SG_STATUS_OK);
  EXPECT_EQ(dropped.wait().status, SG_STATUS_SHUTDOWN);
  EXPECT_EQ(behind.wait().status, SG_STATUS_SHUTDOWN);
  EXPECT_EQ(run_copy(device, busy, in).status, SG_STATUS_SHUTDOWN);
  sg_backend_stream *late = nullptr;
  EXPECT_EQ(ops.stream_create(device.handle(), 0, &late), SG_STATUS_SHUTDOWN);
  ops.event_destroy(event);
}

// Many threads at once, each with a stream of its own; ThreadSanitizer's build makes the most of it.
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
        if (ops.copy(stream.handle(), &in, {nullptr, nullptr}) != SG_STATUS_OK) ++wrong;
        if (run_copy(device, stream, copy_out(&got, memory.at(8), 8)).status != SG_STATUS_OK || got != sent) ++wrong;
      }
    });
  for (std::thread &each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace sg::test
