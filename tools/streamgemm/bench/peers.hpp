// SPDX-License-Identifier: Apache-2.0
// The libraries that StreamGEMM is measured against on the CPU, called directly.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sg::cli {

// C = A * B; row major and tight; C is f32 for bf16, i32 for i8, otherwise of A's type.
using multiply_fn = std::function<void(const void *a, const void *b, void *c)>;

struct peer {
  std::string name, version;
  // Everything that a caller can do ahead for one shape; empty when the library lacks the type.
  std::function<multiply_fn(std::int64_t m, std::int64_t n, std::int64_t k, sg_dtype dtype)> prepare;
  // The library's own threads, for what this thread calls from now on.
  std::function<void(int)> set_threads;
};

std::vector<peer> cpu_peers();  // those found when this program was built

}  // namespace sg::cli
