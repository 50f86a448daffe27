// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>

#include "simd.hpp"

namespace sg::cpu {

namespace baseline {
extern const simd_ops ops;
}
#ifdef SG_CPU_X86_LEVELS
namespace avx2 {
extern const simd_ops ops;
}
namespace avx512 {
extern const simd_ops ops;
}
#endif

bool isa_allows(const char *level) noexcept {
  const char *const most = secure_getenv("SG_CPU_ISA");
  if (most == nullptr) return true;
  const bool baseline = std::strcmp(most, "baseline") == 0, avx2 = std::strcmp(most, "avx2") == 0;
  return !baseline && (!avx2 || std::strcmp(level, "avx512") != 0);
}

namespace {

const simd_ops &widest() noexcept {
#ifdef SG_CPU_X86_LEVELS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && isa_allows("avx512"))
    return avx512::ops;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && isa_allows("avx2")) return avx2::ops;
#endif
  return baseline::ops;
}

}  // namespace

const simd_ops &simd() noexcept {
  static const simd_ops &chosen = widest();
  return chosen;
}

}  // namespace sg::cpu
