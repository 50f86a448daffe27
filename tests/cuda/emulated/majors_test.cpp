// SPDX-License-Identifier: Apache-2.0
// Which major of cuBLAS the plugin uses: SG_TEST_CUBLAS is that of the only mapped ones. SG_TEST_FIRST is a cuBLAS that
// the process has before.
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "support/harness.hpp"

namespace sg_test {
namespace {

// libcublas.so.MAJOR and libcublasLt.so.MAJOR that are mapped.
std::set<std::string> mapped() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::string file = line.substr(line.rfind('/') + 1);
    if (file.starts_with("libcublas")) found.insert(file);
  }
  return found;
}

TEST(emulated_majors, only_one_is_used) {
  const char *const major = std::getenv("SG_TEST_CUBLAS"), *const first = std::getenv("SG_TEST_FIRST");
  ASSERT_TRUE(major);
  if (first) {
    ASSERT_TRUE(dlopen(first, RTLD_NOW | RTLD_LOCAL)) << dlerror();
  }
  const context opened = open_context("cuda:0");
  constexpr std::int64_t n = 64;
  std::vector<double> a(n * n, 1), b(n * n, 2), c(n * n);
  const sg_gemm_desc gemm = make_gemm(a.data(), b.data(), c.data(), n, n, n);
  ASSERT_OK(sg_gemm(opened, &gemm, nullptr));
  EXPECT_EQ(2 * n, c[7]);
  const std::string of = std::string(".so.") + major;
  EXPECT_EQ((std::set<std::string>{"libcublas" + of, "libcublasLt" + of}), mapped());
}

}  // namespace
}  // namespace sg_test
