// SPDX-License-Identifier: Apache-2.0
#include "select.hpp"

#include <pthread.h>

#include <algorithm>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/elements/pairwise.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/threads/thread.hpp"

namespace sg::cpu {
namespace {

#ifdef SG_CPU_ONEDNN
constexpr bool have_onednn = true;
#else
constexpr bool have_onednn = false;
#endif
#ifdef SG_CPU_CBLAS
constexpr bool have_cblas = true;
#else
constexpr bool have_cblas = false;
#endif

kernel of_onednn(sg_dtype in, sg_dtype out) noexcept {
  if constexpr (have_onednn) return onednn_kernel(in, out);
  return {};
}
kernel of_cblas(sg_dtype in, sg_dtype out) noexcept {
  if constexpr (have_cblas) return cblas_kernel(in, out);
  return {};
}

// One core, Gflop/s, OpenBLAS 0.3.21 against oneDNN 2.6's sgemm, on an EPYC with Zen 5 cores (for which this OpenBLAS
// uses its AVX2 kernels) and on a Sapphire Rapids class Xeon (its AVX-512 kernels; ratios only):
//   8^3: 11 to 5 | 16^3: 26 to 15 | 32^3: 88 to 131, Xeon 1 to 0.6 | 64^3: 110 to 213 | 64x64x1024: 111 to 240, Xeon 1
//   to 1.5 | 1024^3: 119 to 234, Xeon 1 to 1.1 | 4096^3: 119 to 236, Xeon 1 to 1.04
// so tiny GEMMs go to CBLAS. So do narrow deep ones with A transposed, where oneDNN's is slow (TN; here, the Xeon
// not measured): 16x16x1024: 69 to 50 | 64x64x1024: 105 to 74 | 96x96x1024: 114 to 88 | 128x128x1024: equal. The choice
// depends on the shape alone: equal calls give equal bits.
bool suits_cblas(const gemm_args &p) noexcept {
  constexpr std::int64_t tiny = 24 * 24 * 24;
  if (p.m <= tiny && p.n <= tiny && p.k <= tiny && p.m * p.n <= tiny && p.m * p.n * p.k <= tiny) return true;
  return p.op_a != SG_TRANSPOSE_N && p.m <= 96 && p.n <= 96 && p.k > 512;
}

// One core, Gflop/s, on a Sapphire Rapids class Xeon, operands in cache: our small kernel, OpenBLAS, oneDNN's sgemm:
//   8^3: 30, 23, 2 | 16^3: 89, 75, 17 | 32^3: 124, 122, 68 | 64^3: 132, 136, 116 | 32x32x1024: 128, 67, 134
//   64x64x1024: 131, 94, 127 | 64x256x64: 133, 94, 127 | 128^3: 130, 103, 136
constexpr bool suits_small(const gemm_args &p) noexcept {
  constexpr std::int64_t largest_c = 80 * 80;
  return p.op_a == SG_TRANSPOSE_N && p.m <= largest_c && p.n <= largest_c && p.m * p.n <= largest_c;
}

// A matrix times a vector has a routine of its own in BLAS. One core of the EPYC, other programs beside it, us, our
// small kernel or oneDNN to CBLAS (no record is kept): row-major W x 256^2 in cache: 19.5 to 4.3 | 4096^2: 6402 to 2725
// | W^T x 4096^2: 10304 to 2416 | x W 4096^2: 6160 to 2440.
constexpr bool is_matrix_vector(const gemm_args &p) noexcept { return p.m == 1 || p.n == 1; }

// A vector times a vector: BLAS adds the products of one result one after another. Vectors with gaps are gathered piece
// by piece.
sg_status run_dot(const gemm_args &p) noexcept {
  constexpr std::int64_t piece = 1024;
  alignas(64) float gathered[2][piece], levels[64];
  const auto *a = static_cast<const float *>(p.a), *b = static_cast<const float *>(p.b);
  const std::int64_t a_step = p.op_a == SG_TRANSPOSE_N ? p.lda : 1, b_step = p.op_b == SG_TRANSPOSE_N ? 1 : p.ldb;
  const std::int64_t at_once = a_step == 1 && b_step == 1 ? p.k : piece;
  const auto contiguous = [](const float *from, std::int64_t step, std::int64_t count, float *to) {
    if (step == 1) return from;
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * step];
    return static_cast<const float *>(to);
  };
  pairwise_sums sums(levels, SG_DTYPE_F32, 1);
  for (std::int64_t l = 0; l < p.k; l += at_once) {
    const std::int64_t count = std::min(at_once, p.k - l);
    simd().layers->dot(SG_DTYPE_F32, sums.next(), contiguous(a + l * a_step, a_step, count, gathered[0]),
                       contiguous(b + l * b_step, b_step, count, gathered[1]), count);
    sums.push();
  }
  const float sum = *static_cast<const float *>(sums.total());
  auto &c = *static_cast<float *>(p.c);
  const auto alpha = static_cast<float>(p.alpha.re), beta = static_cast<float>(p.beta.re);
  c = beta == 0 ? alpha * sum : alpha * sum + beta * c;
  return SG_STATUS_OK;
}

sg_status run_best_f32(const gemm_args &p, workspace &space) noexcept {
  static const kernel small = small_kernel(SG_DTYPE_F32, SG_DTYPE_F32);
  static const kernel blas = of_cblas(SG_DTYPE_F32, SG_DTYPE_F32), dnn = of_onednn(SG_DTYPE_F32, SG_DTYPE_F32);
  if (p.m == 1 && p.n == 1) return run_dot(p);
  if (blas && is_matrix_vector(p)) return blas.run(p, space);
  if (small && suits_small(p)) return small.run(p, space);
  return (!dnn || (blas && suits_cblas(p)) ? blas : dnn).run(p, space);
}

// Without a library: our kernels of dot products and small GEMMs, otherwise tiles of the plain kernel.
sg_status run_own_f32(const gemm_args &p, workspace &space) noexcept {
  static const kernel small = small_kernel(SG_DTYPE_F32, SG_DTYPE_F32),
                      plain = plain_kernel(SG_DTYPE_F32, SG_DTYPE_F32);
  if (p.m == 1 && p.n == 1) return run_dot(p);
  if (small && suits_small(p)) return small.run(p, space);
  gemm_args sums = p;
  sums.end = {};  // the caller applies it
  return run_tiles(sums, SG_DTYPE_F32, SG_DTYPE_F32, plain, {}, space);
}

// Panels of a tile and its sums are a quarter of a megabyte each, which fits the second-level cache.
constexpr tiling bf16_tiles = {.kept = 256, .m = 512, .n = 512, .k = 512};
constexpr tiling i8_tiles = {.kept = 256, .m = 512, .n = 512, .k = 1024};
// oneDNN, then tiles, packing included, on one core of a Sapphire Rapids class Xeon, Gflop/s: bf16 256^3 471, 303 |
// 512^3 355, 310 | 1024^3 290, 322; i8 64^3 44, 124 | 256^3 118, 692 | 1024^3 248, 675. (Measured by a separate program
// while the machine was slow; no record is kept.)
constexpr std::int64_t i8_least = 32, i8_least_work = 1 << 18;

route choose(sg_dtype in, sg_dtype out) noexcept {
  // f64 and complex: only by CBLAS. f32: as above; either library suffices.
  if (in == out && !is_short_float(in) && !is_f8(in)) {
    kernel best = of_cblas(in, out);
    if (in == SG_DTYPE_F32 && (best || of_onednn(in, out))) best = {.in = in, .out = out, .run = run_best_f32};
    if (best) return {best, best, {}, {}};
    if (in == SG_DTYPE_F32) best = {.in = in, .out = out, .run = run_own_f32};
    return {best, plain_kernel(in, out), {}, {}};
  }
  // bf16 and i8: oneDNN if the processor has instructions for them (bf16 on Zen 5: 380 to 500 Gflop/s, i8 770 to 950,
  // f32 235).
  if (const kernel own = of_onednn(in, out)) {
    const kernel sums = in == SG_DTYPE_I8 ? own : of_onednn(in, SG_DTYPE_F32);
    if (in == SG_DTYPE_I8) return {own, sums, mma_kernel(in, out), i8_tiles, i8_least, i8_least_work};
    return {own, sums, mma_kernel(in, SG_DTYPE_F32), bf16_tiles};
  }
  const auto f32 = [] { return choose(SG_DTYPE_F32, SG_DTYPE_F32).panels; };
  // f8: converted to f32, and for large GEMMs to bf16 if the processor has instructions for it; both are exact.
  if (is_f8(in)) {
    if (!is_gemm_type(in, out)) return {};
    const kernel tiles = mma_kernel(SG_DTYPE_BF16, SG_DTYPE_F32);
    return {{}, f32(), tiles ? tiles : of_onednn(SG_DTYPE_BF16, SG_DTYPE_F32), bf16_tiles};
  }
  // Otherwise, and f16 always, converted to f32.
  if (!is_gemm_type(in, out)) return {};
  if (in == SG_DTYPE_I8) return {{}, f32(), mma_kernel(in, out), i8_tiles, i8_least, i8_least_work};
  return {{}, f32(), mma_kernel(in, SG_DTYPE_F32), bf16_tiles};
}

struct routes {
  route of[SG_DTYPE_F8_E5M2 + 1][SG_DTYPE_F8_E5M2 + 1];
  routes() noexcept {
    for (int in = SG_DTYPE_F64; in <= SG_DTYPE_F8_E5M2; ++in)
      for (int out = SG_DTYPE_F64; out <= SG_DTYPE_F8_E5M2; ++out)
        if (in != SG_DTYPE_I32) of[in][out] = choose(static_cast<sg_dtype>(in), static_cast<sg_dtype>(out));
  }
};

void *warm_up_thread(void *result) {
  sg_status status = SG_STATUS_OK;
  if constexpr (have_cblas) status = cblas_warm_up();
  if constexpr (have_onednn)
    if (status == SG_STATUS_OK) status = onednn_warm_up();
  *static_cast<sg_status *>(result) = status;
  return nullptr;
}

}  // namespace

const route &route_for(sg_dtype in, sg_dtype out) noexcept {
  static const routes chosen;
  return chosen.of[in][out];
}

double rate_of(sg_dtype in) noexcept {
  const sg_dtype out = in == SG_DTYPE_I8 ? SG_DTYPE_I32 : is_f8(in) ? SG_DTYPE_F32 : in;
  const route &way = route_for(in, out);
  if (!way.panels) return 0;
  // Two vector instructions a cycle at 3.2 GHz: the sustained rate of a present-day core.
  const double f32 = 3.2e9 * 2 * double(simd().vector_bytes) / 4 * (simd().fused ? 2 : 1);
  switch (in) {
    case SG_DTYPE_F64:
    case SG_DTYPE_C128: return f32 / 2;
    case SG_DTYPE_BF16: return way.direct || way.large ? 2 * f32 : 0.85 * f32;
    case SG_DTYPE_I8: return way.direct || way.large ? 4 * f32 : 0.85 * f32;
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: return way.large ? 2 * f32 : 0.85 * f32;
    case SG_DTYPE_F16: return 0.85 * f32;
    default: return f32;
  }
}

bool has_cblas() noexcept { return bool(of_cblas(SG_DTYPE_F64, SG_DTYPE_F64)); }

bool misses_onednn() noexcept { return have_onednn && !of_onednn(SG_DTYPE_F32, SG_DTYPE_F32); }

sg_status warm_up() noexcept {
  sg_status result = SG_STATUS_OK;
  pthread_t thread;
  if (!start_thread(thread, warm_up_thread, &result)) return SG_STATUS_OUT_OF_MEMORY;
  pthread_join(thread, nullptr);
  return result;
}

}  // namespace sg::cpu
