// SPDX-License-Identifier: Apache-2.0
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

namespace {

const simd_ops &widest() noexcept {
#ifdef SG_CPU_X86_LEVELS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return avx512::ops;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::ops;
#endif
  return baseline::ops;
}

}  // namespace

const simd_ops &simd() noexcept {
  static const simd_ops &chosen = widest();
  return chosen;
}

}  // namespace sg::cpu
