// SPDX-License-Identifier: Apache-2.0
// The libraries that StreamGEMM is measured against on the CPU, called directly. They are linked to a module of their
// own, libstreamgemm-bench-cpu.so: the program itself needs none of them.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sg::cli {

// C = A * op(B); row-major and tight; C is f32 for bf16, i32 for i8, otherwise of A's type.
using multiply_fn = std::function<void(const void *a, const void *b, void *c)>;

struct peer {
  std::string name, version;
  // All preparation that a caller can do ahead for one shape; empty when the library lacks the type on this processor.
  // oneDNN chooses here how many threads it will use.
  std::function<multiply_fn(std::int64_t m, std::int64_t n, std::int64_t k, sg_dtype dtype, sg_transpose op_b)> prepare;
  // The library's own number of threads, for later calls of this thread.
  std::function<int()> threads;
  std::function<void(int)> set_threads;
};

// Sets a peer's thread count, which is global, and restores it.
class peer_threads {
 public:
  peer_threads(const peer &p, int threads) : set_(p.set_threads), before_(p.threads()) { set_(threads); }
  ~peer_threads() { set_(before_); }
  peer_threads(const peer_threads &) = delete;
  peer_threads &operator=(const peer_threads &) = delete;

 private:
  std::function<void(int)> set_;
  int before_;
};

struct peer_lists {
  std::vector<peer> all;    // those found when the module was built
  std::vector<peer> cblas;  // CBLAS gemm, and gemv where C is one column or row of f64
};

// The module's function. It has the C++ types of the program: both are of one build.
extern "C" peer_lists *sg_bench_cpu_peers();

// The module's peers; none where it is not installed.
peer_lists load_cpu_peers();

}  // namespace sg::cli
