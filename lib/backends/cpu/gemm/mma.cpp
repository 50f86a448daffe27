// SPDX-License-Identifier: Apache-2.0
#include "mma.hpp"

#if defined(SG_CPU_AMX)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(SG_CPU_MMLA)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "kernel.hpp"

namespace sg::cpu {

#if defined(SG_CPU_AMX) || defined(SG_CPU_MMLA)

namespace {

#ifdef SG_CPU_AMX
// Whether the processor has AMX for both types and AVX-512 for packing, and the system grants this process the tile
// state, which oneDNN requests too.
bool granted() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24, amx_int8 = 1u << 25,
                     all = amx_bf16 | amx_tile | amx_int8;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & all) != all || simd().vector_bytes != 64) return false;
  constexpr long arch_req_xcomp_perm = 0x1023, tile_data = 18;  // Linux 5.16, asm/prctl.h
  return ::syscall(SYS_arch_prctl, arch_req_xcomp_perm, tile_data) == 0;
}
#else
bool granted() noexcept {
  constexpr unsigned long both = HWCAP2_BF16 | HWCAP2_I8MM;
  return isa_allows("mmla") && (::getauxval(AT_HWCAP2) & both) == both;
}
#endif

mma::source source_of(const block &from, bool along_is_contiguous, bool across_is_row) noexcept {
  return {.x = from.x,
          .ld = from.ld,
          .along_is_contiguous = along_is_contiguous,
          .first_across = across_is_row ? from.row : from.col,
          .first_along = across_is_row ? from.col : from.row,
          .across = across_is_row ? from.rows : from.cols,
          .along = across_is_row ? from.cols : from.rows,
          .element_bytes = element_size(from.type)};
}

void pack_a(void *panel, const block &from) noexcept {
  mma::pack_a(panel, source_of(from, from.op != SG_TRANSPOSE_N, true));
}
void pack_b(void *panel, const block &from) noexcept {
  mma::pack_b(panel, source_of(from, from.op == SG_TRANSPOSE_N, false));
}

sg_status run_bf16(const gemm_args &p, workspace &) noexcept {
  mma::multiply_bf16(p);
  return SG_STATUS_OK;
}
sg_status run_i8(const gemm_args &p, workspace &) noexcept {
  mma::multiply_i8(p);
  return SG_STATUS_OK;
}

}  // namespace

kernel mma_kernel(sg_dtype in, sg_dtype out) noexcept {
  static const bool may_use = granted();
  const scalars takes = scalars::one_and_zero_or_one;
  const auto layout_of = [](std::int64_t element_bytes) {
    return panel_layout{
        .across = mma::strip, .along = mma::row_bytes / element_bytes, .pack_a = pack_a, .pack_b = pack_b};
  };
  if (!may_use) return {};
  if (in == SG_DTYPE_BF16 && out == SG_DTYPE_F32)
    return {.in = in, .out = out, .takes = takes, .run = run_bf16, .layout = layout_of(2)};
  if (in == SG_DTYPE_I8 && out == SG_DTYPE_I32)
    return {.in = in, .out = out, .takes = takes, .run = run_i8, .layout = layout_of(1)};
  return {};
}

#else

kernel mma_kernel(sg_dtype, sg_dtype) noexcept { return {}; }

#endif

}  // namespace sg::cpu
