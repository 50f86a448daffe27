// SPDX-License-Identifier: Apache-2.0
// Virtual time through the backend's table: the textbook case, engines, gaps, late copies, sizes that no machine holds.
#include <sys/mman.h>

#include <cstdio>

#include "../support/sweep.hpp"
#include "backends/sim/timeline.hpp"
#include "sim_device.hpp"
#include "support/sanitizers.hpp"

namespace sg::test {
namespace {

struct batch_times {
  outcome in, kernel, out;
};

// Copies in, multiplies and copies out two equal batches, one unit each, on `stream_count` streams.
std::vector<batch_times> two_batches(sim_device &device, int stream_count) {
  const std::vector<float> host(unit_size * unit_size, 1.0f);
  std::vector<float> results(2 * unit_size * unit_size);
  sim_memory memory(device, 4 * unit_bytes);
  std::vector<std::unique_ptr<sim_stream>> streams;
  for (int i = 0; i < stream_count; ++i) streams.push_back(std::make_unique<sim_stream>(device));
  completion completions[2][3];
  for (int i = 0; i < 2; ++i) {
    sg_backend_stream *stream = streams[i % stream_count]->handle();
    void *input = memory.at(2 * i * unit_bytes), *output = memory.at((2 * i + 1) * unit_bytes);
    const sg_backend_copy in = copy_in(input, host.data(), unit_bytes);
    const sg_backend_gemm gemm = square_gemm(unit_size, input, input, output);
    const sg_backend_copy out = copy_out(results.data() + i * unit_size * unit_size, output, unit_bytes);
    EXPECT_EQ(enqueue(stream, in.header, completions[i][0].done()), SG_STATUS_OK);
    EXPECT_EQ(enqueue(stream, gemm.header, completions[i][1].done()), SG_STATUS_OK);
    EXPECT_EQ(enqueue(stream, out.header, completions[i][2].done()), SG_STATUS_OK);
  }
  std::vector<batch_times> times;
  for (auto &each : completions) times.push_back({each[0].wait(), each[1].wait(), each[2].wait()});
  return times;
}

std::int64_t units(std::int64_t ns) {
  EXPECT_EQ(ns % unit_ns, 0);
  return ns / unit_ns;
}

TEST(SimTime, TextbookCase) {
  const temporary_file model(unit_model());
  sg::test::sweep repeats(sg_test::sanitized ? 5 : 1);
  for (int repeat = 0; repeat < 100; ++repeat) {
    if (!repeats.tries_next()) continue;
    sim_device one(model.path()), two(model.path());
    const auto sequential = two_batches(one, 1);
    ASSERT_EQ(units(sequential[1].out.end_ns), 6);
    const auto overlapped = two_batches(two, 2);
    ASSERT_EQ(units(overlapped[0].in.start_ns), 0);
    ASSERT_EQ(units(overlapped[0].kernel.start_ns), 1);
    ASSERT_EQ(units(overlapped[0].out.start_ns), 2);
    ASSERT_EQ(units(overlapped[1].in.start_ns), 1);
    ASSERT_EQ(units(overlapped[1].kernel.start_ns), 2);
    ASSERT_EQ(units(overlapped[1].out.start_ns), 3);
    ASSERT_EQ(units(overlapped[1].out.end_ns), 4);
    ASSERT_EQ(double(sequential[1].out.end_ns) / double(overlapped[1].out.end_ns), 1.50);
  }
}

TEST(SimTime, OneCopyEngineServesBothDirections) {
  const temporary_file model(unit_model(1));
  sim_device device(model.path());
  // In 0-1, in 1-2, out 2-3, out 3-4: the same completion, but no concurrent copies in both directions.
  const auto times = two_batches(device, 2);
  EXPECT_EQ(units(times[0].out.start_ns), 2);
  EXPECT_EQ(units(times[1].out.end_ns), 4);

  sim_device second(model.path());
  sim_memory memory(second, 2 * unit_bytes);
  sim_stream up(second), down(second);
  std::vector<char> host(2 * unit_bytes);
  const sg_backend_copy in = copy_in(memory.get(), host.data(), unit_bytes);
  const sg_backend_copy out = copy_out(host.data() + unit_bytes, memory.at(unit_bytes), unit_bytes);
  completion in_end, out_end;
  ASSERT_EQ(enqueue(up.handle(), in.header, in_end.done()), SG_STATUS_OK);
  ASSERT_EQ(enqueue(down.handle(), out.header, out_end.done()), SG_STATUS_OK);
  EXPECT_EQ(units(in_end.wait().end_ns), 1);
  EXPECT_EQ(units(out_end.wait().end_ns), 2);
}

TEST(SimTime, BothWaysContendForTheLink) {
  const temporary_file model(unit_model(2, true));
  sim_device device(model.path());
  sim_memory memory(device, 2 * unit_bytes);
  sim_stream up(device), down(device);
  std::vector<char> host(2 * unit_bytes);
  const sg_backend_copy in = copy_in(memory.get(), host.data(), unit_bytes);
  const sg_backend_copy out = copy_out(host.data() + unit_bytes, memory.at(unit_bytes), unit_bytes);
  completion in_end, out_end, alone_end;
  ASSERT_EQ(enqueue(up.handle(), in.header, in_end.done()), SG_STATUS_OK);
  ASSERT_EQ(enqueue(down.handle(), out.header, out_end.done()), SG_STATUS_OK);
  ASSERT_EQ(enqueue(down.handle(), out.header, alone_end.done()), SG_STATUS_OK);
  EXPECT_EQ(units(in_end.wait().end_ns), 1);
  EXPECT_EQ(units(out_end.wait().end_ns), 2);    // beside the copy in: half as fast
  EXPECT_EQ(units(alone_end.wait().end_ns), 3);  // the other direction is idle by then
}

TEST(SimTime, BeginAtAndEventsHoldAStreamBack) {
  const temporary_file model(unit_model());
  sim_device device(model.path());
  sim_memory memory(device, 3 * unit_bytes);
  std::vector<char> host(unit_bytes);
  const sg_backend_copy in[] = {copy_in(memory.get(), host.data(), unit_bytes),
                                copy_in(memory.at(unit_bytes), host.data(), unit_bytes),
                                copy_in(memory.at(2 * unit_bytes), host.data(), unit_bytes)};
  sim_stream held(device), after(device), free(device);
  sg_backend_event *event = nullptr;
  ASSERT_EQ(ops.event_create(device.handle(), &event), SG_STATUS_OK);
  completion first, second, third, marker;
  ASSERT_EQ(ops.stream_begin_at(held.handle(), 7 * unit_ns), SG_STATUS_OK);
  ASSERT_EQ(ops.stream_begin_at(held.handle(), 5 * unit_ns), SG_STATUS_OK);  // once more, not later
  ASSERT_EQ(enqueue(held.handle(), in[0].header, first.done()), SG_STATUS_OK);
  ASSERT_EQ(ops.event_record(event, held.handle()), SG_STATUS_OK);
  ASSERT_EQ(ops.stream_wait(after.handle(), event), SG_STATUS_OK);
  ASSERT_EQ(enqueue(after.handle(), in[1].header, second.done()), SG_STATUS_OK);
  ASSERT_EQ(enqueue(after.handle(), marker_command, marker.done()), SG_STATUS_OK);
  ASSERT_EQ(enqueue(free.handle(), in[2].header, third.done()), SG_STATUS_OK);  // fits into the gap before the first
  EXPECT_EQ(units(first.wait().start_ns), 5);
  EXPECT_EQ(units(second.wait().start_ns), 6);
  EXPECT_EQ(units(marker.wait().end_ns), 7);
  EXPECT_EQ(units(third.wait().start_ns), 0);
  ops.event_destroy(event);
}

TEST(SimTime, LateCopiesAreLateInVirtualTime) {
  const temporary_file model(unit_model());
  sim_device device(model.path() + "?late-copy=2:3000&timing-only");
  sim_memory memory(device, unit_bytes);
  std::vector<char> host(unit_bytes);
  const sg_backend_copy in = copy_in(memory.get(), host.data(), unit_bytes);
  sim_stream stream(device);
  completion completions[3];
  for (completion &each : completions) ASSERT_EQ(enqueue(stream.handle(), in.header, each.done()), SG_STATUS_OK);
  EXPECT_EQ(units(completions[0].wait().end_ns), 1);
  EXPECT_EQ(units(completions[1].wait().end_ns), 5);
  EXPECT_EQ(units(completions[2].wait().end_ns), 6);
}

// A, B and C of 2^40 bytes each: no byte of them exists, on either side.
TEST(SimTime, SizesThatNoMachineHolds) {
#ifdef __SANITIZE_THREAD__
  constexpr std::int64_t side = 1 << 15;  // ThreadSanitizer leaves a program little address space
#else
  constexpr std::int64_t side = 1 << 19;
#endif
  constexpr std::int64_t bytes = side * side * 4;
  sim_device device("h200?timing-only&memory=4TiB");
  ASSERT_EQ(device.status(), SG_STATUS_OK) << device.open_message();
  void *host = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(host, MAP_FAILED);
  {
    sim_memory a(device, bytes), b(device, bytes), c(device, bytes);
    sim_stream stream(device);
    completion in_end, gemm_end, out_end;
    const sg_backend_copy in = copy_in(a.get(), host, bytes), out = copy_out(host, c.get(), bytes);
    const sg_backend_gemm gemm = square_gemm(side, a.get(), b.get(), c.get());
    ASSERT_EQ(enqueue(stream.handle(), in.header, in_end.done()), SG_STATUS_OK);
    ASSERT_EQ(enqueue(stream.handle(), gemm.header, gemm_end.done()), SG_STATUS_OK) << device.last_message();
    ASSERT_EQ(enqueue(stream.handle(), out.header, out_end.done()), SG_STATUS_OK);
    EXPECT_EQ(out_end.wait().status, SG_STATUS_OK);
    const double flops = 2.0 * side * side * side;
    const double rate = flops / (double(gemm_end.wait().end_ns - gemm_end.wait().start_ns) * 1e-9);
    EXPECT_GT(rate, 40e12);  // an H200 reaches 51e12 in f32
    EXPECT_LT(rate, 60e12);
    const double in_rate = double(bytes) / (double(in_end.wait().end_ns) * 1e-9);
    EXPECT_GT(in_rate, 50e9);
    EXPECT_LT(in_rate, 60e9);
    sg_backend_gemm beyond = gemm;
    beyond.lda = side + 1;
    EXPECT_EQ(enqueue(stream.handle(), beyond.header, {nullptr, nullptr}), SG_STATUS_BACKEND_FAILURE);
  }
  munmap(host, bytes);
}

TEST(SimTimeline, GapsAreFilledAndMergedAndForgotten) {
  sim::engine engine;
  engine.occupy({10, 20});
  engine.occupy({30, 40});
  EXPECT_EQ(engine.first_gap(0, 10), 0);
  EXPECT_EQ(engine.first_gap(0, 11), 40);
  EXPECT_EQ(engine.first_gap(12, 10), 20);
  EXPECT_EQ(engine.first_gap(12, 0), 20);
  EXPECT_EQ(engine.first_gap(25, 5), 25);
  EXPECT_EQ(engine.first_gap(25, 6), 40);
  EXPECT_EQ(engine.first_gap(100, 6), 100);
  EXPECT_TRUE(engine.busy_at(10));
  EXPECT_FALSE(engine.busy_at(20));
  engine.occupy({20, 30});
  EXPECT_TRUE(engine.busy_at(25));
  EXPECT_EQ(engine.first_gap(5, 6), 40);
  engine.occupy({7, 7});
  EXPECT_FALSE(engine.busy_at(7));
  // Disjoint spans: the oldest are forgotten, and with them the gaps between them.
  for (std::int64_t i = 0; i < 10000; ++i) engine.occupy({100 + 10 * i, 105 + 10 * i});
  EXPECT_GT(engine.first_gap(0, 1), 10000);
  EXPECT_EQ(engine.first_gap(100 + 10 * 9998, 5), 105 + 10 * 9998);
}

TEST(SimTimeline, PartsOfAnEngineWorkBesideEachOther) {
  sim::divided_engine chip(10);
  const auto occupy = [&](std::int64_t ready, std::int64_t duration, std::int32_t units) {
    return chip.occupy(ready, duration, units).start;
  };
  EXPECT_EQ(occupy(0, 100, 6), 0);
  EXPECT_EQ(occupy(0, 50, 4), 0) << "there was room beside it";
  EXPECT_EQ(occupy(0, 60, 5), 100) << "neither concurrent with the first, nor queued behind the second";
  EXPECT_EQ(occupy(0, 50, 4), 50);
  EXPECT_EQ(occupy(0, 10, 0), 160) << "all of it is free once all commands have completed";
  EXPECT_EQ(occupy(100, 60, 5), 100);
  EXPECT_EQ(occupy(100, 1, 1), 170);
  EXPECT_EQ(occupy(170, 5, 100), 171) << "more than there is means all";
}

// Half of the chip is slower, and leaves the other half to concurrent commands.
TEST(SimTime, AComputeUnitLimitLeavesUnitsForOtherStreams) {
  const std::int64_t size = 2048;
  const auto run = [&](std::int32_t units, std::int64_t &end_ns, std::int64_t &both_end_ns) {
    sim_device device("h200?timing-only");
    sim_memory memory(device, static_cast<std::uint64_t>(3 * size * size) * sizeof(float));
    sim_stream one(device), other(device);
    sg_backend_gemm gemm = square_gemm(size, memory.get(), memory.get(), memory.get());
    gemm.compute_units = units;
    completion first, second;
    EXPECT_EQ(enqueue(one.handle(), gemm.header, first.done()), SG_STATUS_OK);
    EXPECT_EQ(enqueue(other.handle(), gemm.header, second.done()), SG_STATUS_OK);
    end_ns = first.wait().end_ns;
    both_end_ns = std::max(end_ns, second.wait().end_ns);
  };
  std::int64_t whole, both_whole, half, both_half;
  run(0, whole, both_whole);
  run(66, half, both_half);
  EXPECT_NEAR(double(both_whole) / double(whole), 2, 0.01) << "one after the other";
  EXPECT_EQ(both_half, half) << "side by side";
  EXPECT_GT(double(half), 1.6 * double(whole));
  EXPECT_LT(double(half), 2.4 * double(whole));
}

}  // namespace
}  // namespace sg::test
