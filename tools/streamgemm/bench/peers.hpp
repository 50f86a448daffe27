// SPDX-License-Identifier: Apache-2.0
// The libraries that StreamGEMM is measured against on the CPU, called directly.
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

// CBLAS gemm, and gemv where C is one column or row of f64.
std::vector<peer> cblas_peers();
std::vector<peer> cpu_peers();  // those found when this program was built

}  // namespace sg::cli
