// SPDX-License-Identifier: Apache-2.0
// A convolution on the cpu makes the process grow by its workspace and little more, also in the library underneath.
#include <fstream>
#include <string>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "support/harness.hpp"
#include "support/sanitizers.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t mib = 1 << 20, unaccounted = 28 * mib;

// A value of /proc/self/status, in bytes.
std::int64_t status_of(const char *name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(name, 0) == 0) return std::stoll(line.substr(line.find(':') + 1)) * 1024;
  return 0;
}

struct shape {
  std::int64_t images, channels, size, out_channels, kernel;
  std::uint64_t workspace;
};

class conv_memory : public testing::TestWithParam<shape> {};

TEST_P(conv_memory, is_bounded_by_the_workspace) {
  if (sanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
#ifdef __GLIBC__
  mallopt(M_PERTURB, 0);  // meson's MALLOC_PERTURB_ writes memory that nobody uses, which makes it resident
#endif
  const shape &s = GetParam();
  const std::int64_t pad = s.kernel / 2;
  const std::int64_t in = s.channels * s.size * s.size, out = s.out_channels * s.size * s.size;
  std::vector<float> x(std::size_t(s.images * in), 0.5f), y(std::size_t(s.images * out));
  std::vector<float> w(std::size_t(s.out_channels * s.channels * s.kernel * s.kernel), 0.25f);
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "cpu", options.compute_lanes = 2;
  context on;
  ASSERT_OK(sg_context_create(&options, on.out()));
  sg_conv2d_desc desc = SG_CONV2D_DESC_INIT;
  desc.x = {x.data(), in}, desc.y = {y.data(), out}, desc.w = w.data();
  desc.images = s.images, desc.channels = s.channels, desc.height = desc.width = s.size;
  desc.out_channels = s.out_channels, desc.workspace = s.workspace;
  desc.windows = {s.kernel, s.kernel, 1, 1, 1, 1, pad, pad, pad, pad};
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const std::int64_t before = status_of("VmRSS");
  for (int call = 0; call < 2; ++call) {
    ASSERT_OK(sg_conv2d(on, &desc, nullptr));
    EXPECT_LE(status_of("VmHWM") - before, std::int64_t(s.workspace) + unaccounted) << "call " << call;
  }
  const std::size_t middle = std::size_t(s.size / 2 * s.size + s.size / 2);
  for (std::int64_t i = 0; i < s.images * s.out_channels; ++i)
    ASSERT_EQ(float(s.channels * s.kernel * s.kernel) / 8, y[std::size_t(i * s.size * s.size) + middle]);
}

INSTANTIATE_TEST_SUITE_P(shapes, conv_memory,
                         testing::Values(shape{1, 3, 3000, 8, 7, mib}, shape{2, 16, 700, 32, 3, 4 * mib},
                                         shape{1, 24, 1000, 16, 5, 0}),
                         [](const auto &info) { return std::to_string(info.index); });

}  // namespace
}  // namespace sg_test
