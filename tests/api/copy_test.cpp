// SPDX-License-Identifier: Apache-2.0
// Memory and copies: pinned, registered and device memory; runs and rectangles in every direction.
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "support/guarded.hpp"
#include "support/harness.hpp"

namespace sg_test {
namespace {

class copies : public on_each_device {
 protected:
  buffer device_memory(std::uint64_t bytes) {
    buffer result;
    EXPECT_OK(sg_buffer_create(context_, bytes, nullptr, result.out()));
    return result;
  }
  static std::uint8_t *address(sg_buffer *b) {
    void *data = nullptr;
    EXPECT_OK(sg_buffer_data(b, &data));
    return static_cast<std::uint8_t *>(data);
  }
  static std::vector<std::uint8_t> counted(std::size_t bytes) {
    std::vector<std::uint8_t> result(bytes);
    for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::uint8_t>(i * 31 + i / 251);
    return result;
  }
};

TEST_P(copies, to_the_device_and_back) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{255}, std::size_t{4096}, std::size_t{5000001}}) {
    const auto source = counted(bytes);
    std::vector<std::uint8_t> back(bytes);
    const buffer first = device_memory(bytes), second = device_memory(bytes);
    std::uint64_t size = 0;
    EXPECT_OK(sg_buffer_size(first, &size));
    EXPECT_EQ(bytes, size);
    EXPECT_EQ(0u, reinterpret_cast<std::uintptr_t>(address(first)) % 256);
    // The order follows from the data alone.
    ASSERT_OK(sg_copy_async(context_, address(first), source.data(), bytes, nullptr, nullptr));
    ASSERT_OK(sg_copy_async(context_, address(second), address(first), bytes, nullptr, nullptr));
    ASSERT_OK(sg_copy(context_, back.data(), address(second), bytes, nullptr));
    EXPECT_EQ(source, back) << bytes;
  }
}

TEST_P(copies, from_host_to_host) {
  const auto source = counted(100000);
  std::vector<std::uint8_t> target(source.size());
  job handle;
  ASSERT_OK(sg_copy_async(context_, target.data(), source.data(), source.size(), nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_EQ(source, target);
}

// A copy is planned as every operation is. On one memory no byte crosses a link.
TEST_P(copies, statistics) {
  const auto source = counted(100003);
  std::vector<std::uint8_t> back(source.size());
  const buffer device = device_memory(source.size());
  const auto of = [&](void *to, const void *from) {
    job handle;
    sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_copy_async(context_, to, from, source.size(), nullptr, handle.out()));
    EXPECT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    EXPECT_OK(sg_job_get_statistics(handle, &stats));
    EXPECT_STREQ("copy", stats.strategy);
    EXPECT_EQ(1, stats.commands);
    EXPECT_GT(stats.bound_seconds, 0);
    EXPECT_GE(stats.predicted_seconds, stats.bound_seconds);
    EXPECT_LT(stats.predicted_seconds, 1);
    return stats;
  };
  sg_memory_kind kind = SG_MEMORY_AUTO;
  ASSERT_OK(sg_context_memory_kind(context_, source.data(), source.size(), &kind));
  const std::uint64_t crossing = kind == SG_MEMORY_DEVICE ? 0 : source.size();
  const sg_job_statistics in = of(address(device), source.data()), out = of(back.data(), address(device));
  EXPECT_EQ(crossing, in.bytes_in);
  EXPECT_EQ(0u, in.bytes_out);
  EXPECT_EQ(crossing, out.bytes_out);
  EXPECT_EQ(0u, out.bytes_in);
  EXPECT_EQ(source, back);
}

// The driver's own copy of pageable memory is several times slower.
TEST_P(copies, large_copies_of_pageable_memory_are_staged) {
  const std::size_t pitch = 70016, width = 70000, height = 40;
  const auto source = counted(height * pitch);
  const buffer device = device_memory(height * width);
  job handle;
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(
      sg_copy_2d_async(context_, address(device), width, source.data(), pitch, width, height, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  ASSERT_OK(sg_job_get_statistics(handle, &stats));
  sg_memory_kind kind = SG_MEMORY_AUTO;
  ASSERT_OK(sg_context_memory_kind(context_, source.data(), source.size(), &kind));
  const bool is_staged = kind == SG_MEMORY_PAGEABLE;
  EXPECT_STREQ(is_staged ? "staged copy in" : "copy", stats.strategy);
  EXPECT_EQ(is_staged ? width * height : 0, stats.bytes_in);
}

TEST_P(copies, pinned_memory) {
  constexpr std::size_t bytes = 3000000;
  void *pinned = nullptr;
  ASSERT_OK(sg_host_alloc(context_, bytes, &pinned));
  EXPECT_EQ(0u, reinterpret_cast<std::uintptr_t>(pinned) % 4096);
  const auto source = counted(bytes);
  std::memcpy(pinned, source.data(), bytes);
  const buffer device = device_memory(bytes);
  ASSERT_OK(sg_copy(context_, address(device), pinned, bytes, nullptr));
  std::memset(pinned, 0, bytes);
  ASSERT_OK(sg_copy(context_, pinned, address(device), bytes, nullptr));
  EXPECT_EQ(0, std::memcmp(source.data(), pinned, bytes));
  EXPECT_OK(sg_host_free(context_, pinned));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_host_free(context_, pinned)) << "freed twice";
}

TEST_P(copies, pinned_memory_of_zero_bytes) {
  void *first = nullptr, *second = nullptr;
  ASSERT_OK(sg_host_alloc(context_, 0, &first));
  ASSERT_OK(sg_host_alloc(context_, 0, &second));
  EXPECT_TRUE(first && second && first != second);
  EXPECT_OK(sg_host_free(context_, first));
  EXPECT_OK(sg_host_free(context_, second));
  EXPECT_OK(sg_host_free(context_, nullptr));
}

TEST_P(copies, registered_memory) {
  auto source = counted(1 << 20);
  const buffer device = device_memory(source.size());
  ASSERT_OK(sg_host_register(context_, source.data(), source.size()));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_host_register(context_, source.data() + 100, 100)) << "overlaps";
  ASSERT_OK(sg_copy(context_, address(device), source.data(), source.size(), nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_host_unregister(context_, source.data() + 1));
  EXPECT_OK(sg_host_unregister(context_, source.data()));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_host_unregister(context_, source.data())) << "unregistered twice";
  std::vector<std::uint8_t> back(source.size());
  ASSERT_OK(sg_copy(context_, back.data(), address(device), back.size(), nullptr));
  EXPECT_EQ(source, back);
}

TEST_P(copies, zero_bytes) {
  std::uint8_t a = 1, b = 2;
  EXPECT_OK(sg_copy(context_, &a, &b, 0, nullptr));
  EXPECT_OK(sg_copy(context_, nullptr, nullptr, 0, nullptr));
  job handle;
  EXPECT_OK(sg_copy_2d_async(context_, &a, 8, &b, 8, 0, 5, nullptr, handle.out()));
  EXPECT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_OK(sg_copy_2d_async(context_, &a, 8, &b, 8, 5, 0, nullptr, handle.out()));
  EXPECT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_EQ(1, a);
}

// Rectangles between pitches, in every direction; the gaps between runs keep their bytes.
TEST_P(copies, rectangles) {
  constexpr struct {
    int width, height, dst_pitch, src_pitch;
  } shapes[] = {{7, 5, 16, 9},
                {64, 30, 64, 64},
                {1, 100, 3, 17},
                {300, 1, 300, 300},
                {4096, 70, 5000, 4099},
                {70000, 40, 70001, 70016},
                {2500000, 2, 2500007, 2500001}};
  for (const auto &shape : shapes) {
    const int width = shape.width, height = shape.height, dst_pitch = shape.dst_pitch, src_pitch = shape.src_pitch;
    const auto bytes = [&](int pitch) { return static_cast<std::size_t>((height - 1) * pitch + width); };
    const auto source = counted(bytes(src_pitch));
    std::vector<std::uint8_t> expected(bytes(dst_pitch), 0xee), seen(bytes(dst_pitch));
    for (int i = 0; i < height; ++i)
      std::memcpy(&expected[static_cast<std::size_t>(i * dst_pitch)], &source[static_cast<std::size_t>(i * src_pitch)],
                  static_cast<std::size_t>(width));
    const buffer from = device_memory(source.size()), to = device_memory(seen.size());
    ASSERT_OK(sg_copy(context_, address(from), source.data(), source.size(), nullptr));
    const auto rectangle = [&](std::uint8_t *dst, const std::uint8_t *src) {
      job handle;
      EXPECT_OK(sg_copy_2d_async(context_, dst, static_cast<std::uint64_t>(dst_pitch), src,
                                 static_cast<std::uint64_t>(src_pitch), static_cast<std::uint64_t>(width),
                                 static_cast<std::uint64_t>(height), nullptr, handle.out()));
      EXPECT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    };
    const auto poison = [&] {
      std::fill(seen.begin(), seen.end(), 0xee);
      EXPECT_OK(sg_copy(context_, address(to), seen.data(), seen.size(), nullptr));
    };
    poison();
    rectangle(seen.data(), source.data());
    EXPECT_EQ(expected, seen) << "host to host " << width;
    poison();
    rectangle(seen.data(), address(from));
    EXPECT_EQ(expected, seen) << "device to host " << width;
    for (const bool on_device : {false, true}) {
      poison();
      rectangle(address(to), on_device ? address(from) : source.data());
      ASSERT_OK(sg_copy(context_, seen.data(), address(to), seen.size(), nullptr));
      EXPECT_EQ(expected, seen) << (on_device ? "device to device " : "host to device ") << width;
    }
  }
}

// The last run stops at its width, not at its pitch.
TEST_P(copies, nothing_behind_the_last_run_is_touched) {
  constexpr std::size_t width = 100, pitch = 256, height = 9, bytes = (height - 1) * pitch + width;
  guarded source(bytes), target(bytes);
  std::memset(source.data(), 3, bytes);
  const buffer device = device_memory(height * pitch);
  job in, out;
  ASSERT_OK(sg_copy_2d_async(context_, address(device), pitch, source.data(), pitch, width, height, nullptr, in.out()));
  ASSERT_OK(
      sg_copy_2d_async(context_, target.data(), pitch, address(device), pitch, width, height, nullptr, out.out()));
  ASSERT_OK(sg_job_wait(in, SG_FOREVER, nullptr));
  ASSERT_OK(sg_job_wait(out, SG_FOREVER, nullptr));
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(i % pitch < width ? 3 : 0, target.data()[i]) << i;
}

TEST_P(copies, overlapping_copies_are_refused) {
  std::vector<std::uint8_t> memory(100);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_copy(context_, memory.data(), memory.data() + 10, 11, nullptr));
  EXPECT_OK(sg_copy(context_, memory.data(), memory.data() + 10, 10, nullptr));
}

TEST_P(copies, a_released_buffer_lives_until_its_jobs_have_completed) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  const auto source = counted(1000);
  std::vector<std::uint8_t> back(source.size());
  buffer device = device_memory(source.size());
  ASSERT_OK(sg_copy(context_, address(device), source.data(), source.size(), nullptr));
  sg_job *const first = gated.get();
  sg_submit options = SG_SUBMIT_INIT;
  options.after = &first;
  options.after_count = 1;
  job copy;
  ASSERT_OK(sg_copy_async(context_, back.data(), address(device), back.size(), &options, copy.out()));
  EXPECT_OK(device.reset());
  const buffer other = device_memory(source.size());
  const std::vector<std::uint8_t> zeros(source.size());
  ASSERT_OK(sg_copy(context_, address(other), zeros.data(), zeros.size(), nullptr));
  gated.open();
  EXPECT_OK(sg_job_wait(copy, SG_FOREVER, nullptr));
  EXPECT_EQ(source, back);
}

// Releasing the second buffer frees the context, while the first release may still be in its call.
TEST_P(copies, two_threads_release_the_last_buffers_of_a_context) {
  for (int i = 0; i < 20; ++i) {
    context last = open_context(GetParam());
    buffer ours, theirs;
    ASSERT_OK(sg_buffer_create(last, 64, nullptr, ours.out()));
    ASSERT_OK(sg_buffer_create(last, 64, nullptr, theirs.out()));
    ASSERT_OK(last.reset());
    std::atomic<int> ready{0};
    const auto release = [&](buffer &own) {
      ready.fetch_add(1);
      while (ready.load() < 2) std::this_thread::yield();
      EXPECT_OK(own.reset());
    };
    std::thread other([&] { release(theirs); });
    release(ours);
    other.join();
  }
}

ON_EACH_DEVICE(copies);

TEST(device_memory, an_allocation_beyond_the_capacity_fails) {
  const context context = open_context("sim:h200");
  sg_buffer *out = reinterpret_cast<sg_buffer *>(1);
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_buffer_create(context, std::uint64_t{1} << 50, nullptr, &out));
  EXPECT_EQ(nullptr, out);
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_buffer_create(context, UINT64_MAX, nullptr, &out));
  buffer modest;
  EXPECT_OK(sg_buffer_create(context, 1 << 20, nullptr, modest.out()));
}

TEST(device_memory, host_memory_is_not_device_memory) {
  const context context = open_context("sim:h200");
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(context, 4096, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  int fds[2];
  ASSERT_EQ(0, pipe(fds));
  EXPECT_EQ(-1, write(fds[1], data, 1)) << "the host can read the simulated device's memory";
  close(fds[0]);
  close(fds[1]);
}

}  // namespace
}  // namespace sg_test
