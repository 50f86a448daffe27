// SPDX-License-Identifier: Apache-2.0
// The peers of `streamgemm bench cpu` in a process that never loads this library. Their figures here and there must
// agree: then measuring them beside this library, which keeps OpenBLAS at one thread for itself, does not slow them
// The peers of `streamgemm bench cpu` in a process that never loads this library. Their figures here and there must
// agree: then this library, which keeps OpenBLAS at one thread for itself, does not slow them down. usage: peers_alone
// [size of the large GEMMs]
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "bench/measure.hpp"
#include "bench/peers.hpp"

namespace sg::cli {

static void run(std::int64_t m, std::int64_t n, std::int64_t k, int count, sg_dtype dtype, const char *name) {
  const std::vector<double> a(count * m * k, 1.0), b(count * k * n, 1.0);  // large enough for either type
  std::vector<double> c(count * m * n);
  const std::int64_t size = dtype == SG_DTYPE_F64 ? 8 : 4;
  const int cores = int(std::thread::hardware_concurrency());
  bench_case what{std::to_string(count) + " " + name, 2.0 * double(m) * double(n) * double(k) * count, {}};
  for (const peer &p : sg_bench_cpu_peers()->all)
    for (const int threads : {cores, 1}) {
      const peer_threads preparing(p, threads);
      const multiply_fn multiply = p.prepare(m, n, k, dtype, SG_TRANSPOSE_N);
      if (!multiply) continue;
      what.variants.push_back({p.name + " x" + std::to_string(threads), [=, &a, &b, &c] {
                                 const peer_threads running(p, threads);
                                 return timed([&] {
                                   for (int i = 0; i < count; ++i)
                                     multiply(reinterpret_cast<const char *>(a.data()) + i * m * k * size,
                                              reinterpret_cast<const char *>(b.data()) + i * k * n * size,
                                              reinterpret_cast<char *>(c.data()) + i * m * n * size);
                                 });
                               }});
    }
  for (const bench_row &row : measure(what, {}, [] {}))
    std::printf("%-24s %-20s %10.3f ms %8.1f Gflop/s\n", row.name.c_str(), row.variant.c_str(), row.seconds * 1e3,
                row.flops / row.seconds * 1e-9);
}

}  // namespace sg::cli

int main(int argc, char **argv) {
  const std::int64_t large = argc > 1 ? std::atoll(argv[1]) : 4096;
  sg::cli::run(large, large, large, 1, SG_DTYPE_F32, "f32 large");
  sg::cli::run(large, large, large, 1, SG_DTYPE_F64, "f64 large");
  sg::cli::run(64, 64, 1024, 512, SG_DTYPE_F32, "f32 64x64x1024");
  sg::cli::run(32, 32, 32, 10000, SG_DTYPE_F32, "f32 32^3");
}
