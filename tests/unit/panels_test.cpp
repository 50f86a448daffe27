// SPDX-License-Identifier: Apache-2.0
// Panels of a result: all of it once, narrower where a column costs more, none after a stop or a failure.
#include "backends/cpu/worker/panels.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sg::cpu::test {
namespace {

using widths = std::vector<std::int64_t>;

widths panels_of(std::int64_t count, double multiplications) {
  workspace space;
  widths all;
  std::int64_t end = 0;
  EXPECT_EQ(SG_STATUS_OK, in_panels(count, multiplications, space, [&](std::int64_t first, std::int64_t width) {
              EXPECT_EQ(end, first);
              end += width;
              all.push_back(width);
              return SG_STATUS_OK;
            }));
  EXPECT_EQ(count, end);
  return all;
}

TEST(panels, cover_the_result) {
  EXPECT_EQ(widths(), panels_of(0, 1));
  EXPECT_EQ((widths{256, 256, 88}), panels_of(600, 1e3));
  EXPECT_EQ((widths{100, 100, 50}), panels_of(250, 2e7));
  EXPECT_EQ((widths{64, 64, 2}), panels_of(130, 6000.0 * 6000.0));
}

TEST(panels, stop) {
  workspace space;
  const sg_backend_done running{};
  space.command = &running;
  space.stopped = [](const sg_backend_done *) { return std::int32_t{1}; };
  int calls = 0;
  const auto run = [&](std::int64_t, std::int64_t) { return ++calls, SG_STATUS_OK; };
  EXPECT_EQ(SG_STATUS_CANCELLED, in_panels(1000, 1, space, run));
  EXPECT_EQ(1, calls);
  space.stopped = nullptr;
  const auto fail = [&](std::int64_t, std::int64_t) { return ++calls, SG_STATUS_OUT_OF_MEMORY; };
  EXPECT_EQ(SG_STATUS_OUT_OF_MEMORY, in_panels(1000, 1, space, fail));
  EXPECT_EQ(2, calls);
}

}  // namespace
}  // namespace sg::cpu::test
