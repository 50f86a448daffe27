// SPDX-License-Identifier: Apache-2.0
// Copies in every direction, contiguous and in runs; nothing is written between the runs.
#include <numeric>

#include "harness.hpp"

namespace sg::test {
namespace {

class copy : public conformance {
 protected:
  void run(const sg_backend_copy &x) { complete(*dev(), stream_, x); }

  static std::vector<char> counting(std::int64_t bytes) {
    std::vector<char> data(static_cast<std::size_t>(bytes));
    std::iota(data.begin(), data.end(), static_cast<char>(1));
    return data;
  }

  stream stream_{dev()};
};

constexpr sg_backend_space on_device{SG_MEMORY_DEVICE, 0}, on_host{SG_MEMORY_PAGEABLE, 0};

constexpr struct {
  std::int64_t width, height, src_pitch, dst_pitch;
} shapes[] = {{1, 1, 1, 1},    {1, 7, 1, 1},     {3, 5, 3, 8},          {3, 5, 8, 3},
              {64, 9, 64, 64}, {63, 17, 65, 70}, {4096, 3, 4097, 4096}, {100000, 4, 100000, 131072}};

// Host to device, device to device, device to host with the same pitches, so that the result can be compared byte by
// byte.
TEST_P(copy, every_direction_and_pitch) {
  for (const auto &s : shapes) {
    const std::int64_t src_bytes = s.src_pitch * s.height, dst_bytes = s.dst_pitch * s.height;
    const std::vector<char> host = counting(src_bytes);
    std::vector<char> back(static_cast<std::size_t>(dst_bytes), '\xee');
    memory first(dev(), src_bytes), second(dev(), dst_bytes);
    first.write(stream_, std::vector<char>(static_cast<std::size_t>(src_bytes), '\xaa').data());
    second.write(stream_, std::vector<char>(static_cast<std::size_t>(dst_bytes), '\xbb').data());
    run({{}, first.data(), host.data(), s.src_pitch, s.src_pitch, s.width, s.height, on_device, on_host});
    run({{}, second.data(), first.data(), s.dst_pitch, s.src_pitch, s.width, s.height, on_device, on_device});

    second.read(stream_, back.data());
    for (std::int64_t i = 0; i < dst_bytes; ++i) {
      const std::int64_t row = i / s.dst_pitch, col = i % s.dst_pitch;
      const char expected = col < s.width ? host[static_cast<std::size_t>(row * s.src_pitch + col)] : '\xbb';
      ASSERT_EQ(back[static_cast<std::size_t>(i)], expected)
          << s.width << "x" << s.height << " at " << row << ", " << col;
    }

    std::fill(back.begin(), back.end(), '\xee');
    run({{}, back.data(), second.data(), s.dst_pitch, s.dst_pitch, s.width, s.height, on_host, on_device});
    for (std::int64_t i = 0; i < dst_bytes; ++i) {
      const std::int64_t row = i / s.dst_pitch, col = i % s.dst_pitch;
      const char expected = col < s.width ? host[static_cast<std::size_t>(row * s.src_pitch + col)] : '\xee';
      ASSERT_EQ(back[static_cast<std::size_t>(i)], expected)
          << s.width << "x" << s.height << " at " << row << ", " << col;
    }
  }
}

TEST_P(copy, host_to_host_and_pinned_memory) {
  void *pinned = dev()->host_alloc(10000);
  const std::vector<char> from = counting(10000);
  std::vector<char> to(10000);
  memory device(dev(), 10000);
  std::memcpy(pinned, from.data(), 10000);
  run(run_of_bytes(device.data(), pinned, 10000, SG_MEMORY_DEVICE, SG_MEMORY_PINNED));
  std::memset(pinned, 0, 10000);
  run(run_of_bytes(pinned, device.data(), 10000, SG_MEMORY_PINNED, SG_MEMORY_DEVICE));
  std::memcpy(to.data(), pinned, 10000);
  EXPECT_EQ(from, to);
  ops().host_free(handle(), pinned);
}

SG_CONFORMANCE(copy);

}  // namespace
}  // namespace sg::test
