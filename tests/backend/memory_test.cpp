// SPDX-License-Identifier: Apache-2.0
// Device memory and host memory: alignment, kinds, and requests for more than there is.
#include "harness.hpp"

namespace sg::test {
namespace {

class memories : public conformance {};

bool aligned(const void *memory, std::uintptr_t to) { return reinterpret_cast<std::uintptr_t>(memory) % to == 0; }

TEST_P(memories, are_aligned) {
  for (const std::uint64_t bytes : {1, 255, 256, 257, 4097, 1000003}) {
    void *device = dev()->mem_alloc(bytes);
    void *host = dev()->host_alloc(bytes);
    ASSERT_NE(device, nullptr);
    ASSERT_NE(host, nullptr);
    EXPECT_TRUE(aligned(device, 256));
    EXPECT_TRUE(aligned(host, 4096));
    std::memset(host, 1, bytes);
    ops().mem_free(handle(), device);
    ops().host_free(handle(), host);
  }
  ops().mem_free(handle(), nullptr);
  ops().host_free(handle(), nullptr);
}

TEST_P(memories, run_out_with_a_status) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 60, UINT64_MAX - 5, UINT64_MAX}) {
    void *memory = &memory;
    EXPECT_EQ(ops().mem_alloc(handle(), bytes, &memory), SG_STATUS_OUT_OF_MEMORY);
    EXPECT_STRNE(ops().last_message(handle()), "");
    EXPECT_EQ(ops().host_alloc(handle(), bytes, &memory), SG_STATUS_OUT_OF_MEMORY);
  }
}

TEST_P(memories, are_identified_by_kind) {
  std::vector<char> pageable(100);
  void *device = dev()->mem_alloc(100), *pinned = dev()->host_alloc(100);
  if (unified()) {
    EXPECT_EQ(ops().memory_space, nullptr);
  } else {
    EXPECT_EQ(ops().memory_space(handle(), pageable.data(), 100).kind, SG_MEMORY_PAGEABLE);
    EXPECT_EQ(ops().memory_space(handle(), device, 100).kind, SG_MEMORY_DEVICE);
    EXPECT_EQ(ops().memory_space(handle(), pinned, 100).kind, SG_MEMORY_PINNED);
  }
  ops().mem_free(handle(), device);
  ops().host_free(handle(), pinned);
}

TEST_P(memories, of_the_host_can_be_registered) {
  std::vector<char> pageable(1 << 20);
  dev()->host_register(pageable.data(), pageable.size());
  if (!unified()) {
    EXPECT_EQ(ops().memory_space(handle(), pageable.data() + 5, 100).kind, SG_MEMORY_PINNED);
  }
  dev()->host_unregister(pageable.data());
}

SG_CONFORMANCE(memories);

}  // namespace
}  // namespace sg::test
