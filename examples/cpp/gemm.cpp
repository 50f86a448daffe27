// SPDX-License-Identifier: Apache-2.0
// GEMMs in C++: one that is waited for, two in order by a coroutine, an error. Usage: gemm [device]
#include <cmath>
#include <cstdio>
#include <future>
#include <streamgemm/streamgemm.hpp>
#include <vector>

namespace sg = streamgemm;

// A coroutine whose result comes as a future.
struct task {
  struct promise_type {
    std::promise<float> told;
    task get_return_object() { return {told.get_future()}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_value(float value) { told.set_value(value); }
    void unhandled_exception() { told.set_exception(std::current_exception()); }
  };
  std::future<float> result;
};

// a * a * a, the second product behind the first.
task cube(sg::context context, std::vector<float> a, std::int64_t n) {
  std::vector<float> square(a.size()), cubed(a.size());
  co_await context.gemm_async(sg::matrix(a, n, n), sg::matrix(a, n, n), sg::matrix(square, n, n));
  co_await context.gemm_async(sg::matrix(square, n, n), sg::matrix(a, n, n), sg::matrix(cubed, n, n));
  co_return cubed[0];
}

int main(int argc, char **argv) try {
  const sg::context context(argc > 1 ? argv[1] : "auto");

  const std::vector<double> a{1, 2, 3, 4, 5, 6}, b{7, 8, 9, 10, 11, 12};
  std::vector<double> c(4);
  context.gemm(sg::matrix(a, 2, 3), sg::matrix(b, 3, 2), sg::matrix(c, 2, 2));
  std::printf("%g %g\n%g %g\n", c[0], c[1], c[2], c[3]);  // 58 64, 139 154
  if (c != std::vector<double>{58, 64, 139, 154}) return 1;

  const std::int64_t n = 64;
  task work = cube(context, std::vector<float>(n * n, 0.5f), n);
  const float found = work.result.get();  // each element n * n / 8
  std::printf("%g\n", found);
  if (std::fabs(found - n * n / 8.0f) > 1e-3f * found) return 1;

  try {
    context.gemm(sg::matrix(a, 3, 2), sg::matrix(b, 3, 2), sg::matrix(c, 2, 2));
  } catch (const sg::error &refused) {
    std::printf("%s\n", refused.what());
    return refused.status() == SG_STATUS_INVALID_ARGUMENT ? 0 : 1;
  }
  return 1;
} catch (const sg::error &failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}
