// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated device: its bytes, its limit, its kinds, and addresses of the wrong memory.

#include "sim_device.hpp"

namespace sg::test {
namespace {

using std::string;

TEST(SimMemory, BytesRoundTrip) {
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
  sg_backend_copy in = copy_in(memory.at(10), sent.data(), 3);
  in.dst_pitch = 30, in.src_pitch = 5, in.height = 3;
  sg_backend_copy across = copy_in(second.get(), memory.at(10), 3), out = copy_out(got.data(), second.get(), 3);
  across.src_space = {SG_MEMORY_DEVICE, 0};
  across.dst_pitch = 10, across.src_pitch = 30, across.height = 3;
  out.dst_pitch = 7, out.src_pitch = 10, out.height = 3;
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

// A host access through a device pointer ends the process.
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
  expect_text(device.last_message(), "it has 1048576 in all");
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
  const auto kind = [&](const void *at, std::uint64_t bytes) {
    return ops.memory_space(device.handle(), at, bytes).kind;
  };
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
  sg_backend_copy pitched = copy_in(memory.get(), host.data(), 4);
  pitched.dst_pitch = 100, pitched.height = 4;  // the last run starts at byte 300
  expect_caught(run_copy(device, stream, pitched), "reaches past its allocation");

  void *good = memory.get();
  expect_caught(run_gemm(device, stream, square_gemm(4, host.data(), good, good)), "A of a GEMM");
  expect_caught(run_gemm(device, stream, square_gemm(4, good, host.data(), good)), "B of a GEMM");
  expect_caught(run_gemm(device, stream, square_gemm(4, good, good, host.data())), "C of a GEMM");
  expect_caught(run_gemm(device, stream, square_gemm(9, good, good, good)), "reaches past");
  sg_backend_gemm batched = square_gemm(4, good, good, good);
  batched.batch = 1 << 20;
  batched.stride_c = INT64_MAX / 2;
  expect_caught(run_gemm(device, stream, batched), "C of a GEMM");
  const void *const places[] = {good, freed};
  sg_backend_gemm scattered = square_gemm(4, nullptr, good, good);
  scattered.batch = 2;
  scattered.a_array = places;
  expect_caught(run_gemm(device, stream, scattered), "A of a GEMM");

  auto reduce = backend_command<sg_backend_reduce>();
  reduce.m = reduce.n = reduce.part_ld = reduce.ldc = 4;
  reduce.part_type = reduce.out_type = SG_DTYPE_F32;
  reduce.parts_count = 2;
  reduce.part_stride = 16;
  const auto run_reduce = [&](const void *parts, void *c) {
    reduce.parts = parts;
    reduce.c = c;
    return run(device, [&](sg_backend_done done) { return enqueue(stream.handle(), reduce.header, done); });
  };
  expect_caught(run_reduce(host.data(), good), "parts of a reduction");
  expect_caught(run_reduce(good, host.data()), "C of a reduction");
  reduce.part_stride = 60;
  expect_caught(run_reduce(good, good), "parts of a reduction");
}

}  // namespace
}  // namespace sg::test
