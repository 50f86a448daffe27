// SPDX-License-Identifier: Apache-2.0
// GEMMs of f8. Tensor cores from compute capability 8.9 on multiply f8 numbers, but keep 14 bits of their sums: only f8
// compute allows that. They need both operands contiguous along the depth and everything aligned to 16 bytes; other
// operands are packed first. cublasLt's fast accumulation stays off, so that these short sums are regularly added in
// f32.
//
// All other f8 GEMMs are converted to bf16 or f16, which represent every f8 number.
#include <utility>

#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/log.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/libraries/blas.hpp"

namespace sg::cuda {
namespace {

std::int64_t rounded_up(std::int64_t x, std::int64_t step) noexcept { return (x + step - 1) / step * step; }

// Meets the requirements of tensor cores.
bool fits_a(const sg_backend_gemm &g) noexcept {
  return g.op_a != SG_TRANSPOSE_N && g.k % tensor_core_alignment == 0 && is_aligned(g.a, g.lda);
}
bool fits_b(const sg_backend_gemm &g) noexcept {
  return g.op_b == SG_TRANSPOSE_N && g.k % tensor_core_alignment == 0 && is_aligned(g.b, g.ldb);
}
bool fits_c(const sg_backend_gemm &g) noexcept {
  return g.m % tensor_core_alignment == 0 && is_aligned(g.c, g.ldc * element_size(g.out_type));
}
// Large enough that tensor cores outweigh the packing.
bool is_large(const sg_backend_gemm &g) noexcept { return g.m >= 256 && g.n >= 256 && g.k >= 64; }

// One GEMM on tensor cores. CUBLAS_STATUS_NOT_SUPPORTED: refused.
sg_status run_on_chip(gemm_resources &in, const sg_backend_gemm &what, cublasStatus_t &outcome) noexcept {
  outcome = CUBLAS_STATUS_NOT_SUPPORTED;
  if (!fits_c(what)) return SG_STATUS_OK;
  const bool packs_a = !fits_a(what), packs_b = !fits_b(what);
  sg_backend_gemm lined = what;
  lined.k = rounded_up(what.k, tensor_core_alignment);
  lined.op_a = SG_TRANSPOSE_T, lined.op_b = SG_TRANSPOSE_N;
  const std::int64_t bytes_a = packs_a ? what.m * lined.k : 0, bytes_b = packs_b ? what.n * lined.k : 0;
  void *memory = nullptr;
  if (bytes_a + bytes_b > 0)
    if (const sg_status status = in.acquire(static_cast<std::uint64_t>(bytes_a + bytes_b), &memory)) return status;
  sg_status status = SG_STATUS_OK;
  if (packs_a) {
    lined.a = memory, lined.lda = lined.k;
    const i8_panel panel{what.a, what.lda, what.m, what.k, lined.k, what.op_a != SG_TRANSPOSE_N, memory};
    status = in.owner().check(launch_pack_i8(panel, in.native()), "packing");
  }
  if (packs_b && status == SG_STATUS_OK) {
    void *to = static_cast<char *>(memory) + bytes_a;
    lined.b = to, lined.ldb = lined.k;
    const i8_panel panel{what.b, what.ldb, what.n, what.k, lined.k, what.op_b == SG_TRANSPOSE_N, to};
    status = in.owner().check(launch_pack_i8(panel, in.native()), "packing");
  }
  if (status == SG_STATUS_OK) status = in.run_matmul(lined, outcome);
  in.release(memory);
  return status;
}

sg_status run_widened(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  sg_backend_gemm wide;
  widened_f8 operands(in);
  const sg_backend_command *const one = &what.header;
  if (const sg_status status = operands.convert({&one, 1}, &wide)) return status;
  return run_without_epilogue(in, wide);
}

// One operand's matrices, as stored, and the layout of the converted ones: contiguous, or one for all items.
struct operand {
  const void *data;
  const void *const *array;
  std::int64_t rows, cols, ld, stride, items;

  std::int64_t wide_ld() const noexcept { return rounded_up(rows, 8); }
  std::int64_t wide_stride() const noexcept { return items > 1 ? wide_ld() * cols : 0; }
  std::int64_t wide_bytes() const noexcept { return rounded_up(2 * wide_ld() * cols * items, 256); }
};

operand operand_of(const void *data, const void *const *array, std::int64_t rows, std::int64_t cols, bool turned,
                   std::int64_t ld, std::int64_t stride, std::int64_t batch) noexcept {
  if (turned) std::swap(rows, cols);
  return {data, array, rows, cols, ld, stride, array == nullptr && stride == 0 ? 1 : batch};
}
operand a_of(const sg_backend_gemm &g) noexcept {
  return operand_of(g.a, g.a_array, g.m, g.k, g.op_a != SG_TRANSPOSE_N, g.lda, g.stride_a, g.batch);
}
operand b_of(const sg_backend_gemm &g) noexcept {
  return operand_of(g.b, g.b_array, g.k, g.n, g.op_b != SG_TRANSPOSE_N, g.ldb, g.stride_b, g.batch);
}

// Launches the conversions, as many panels at once as kernel parameters hold.
class panel_list {
 public:
  panel_list(gemm_resources &in, sg_dtype from, sg_dtype to) noexcept : in_(in), from_(from), to_(to) {}

  sg_status add(const operand &x, char *to) noexcept {
    if (x.array == nullptr) return add({x.data, to, x.rows, x.cols, x.items, x.ld, x.stride, x.wide_ld()});
    for (std::int64_t i = 0; i < x.items; ++i) {
      char *dst = to + 2 * i * x.wide_ld() * x.cols;
      if (const sg_status status = add({x.array[i], dst, x.rows, x.cols, 1, x.ld, 0, x.wide_ld()})) return status;
    }
    return SG_STATUS_OK;
  }
  sg_status launch() noexcept {
    if (size_ == 0) return SG_STATUS_OK;
    const cudaError_t error = launch_widen_f8(panels_, size_, from_, to_, in_.native());
    size_ = 0;
    return in_.owner().check(error, "converting f8 numbers");
  }

 private:
  sg_status add(const f8_panel &one) noexcept {
    panels_[size_++] = one;
    return size_ < most_parameter_panels ? SG_STATUS_OK : launch();
  }

  gemm_resources &in_;
  const sg_dtype from_, to_;
  f8_panel panels_[most_parameter_panels];
  int size_ = 0;
};

}  // namespace

sg_status widened_f8::convert(const gemm_list &gemms, sg_backend_gemm *out) noexcept {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < gemms.size(); ++i) bytes += a_of(gemms[i]).wide_bytes() + b_of(gemms[i]).wide_bytes();
  if (const sg_status status = in_.acquire(static_cast<std::uint64_t>(bytes), &memory_)) return status;
  // f16 for f32 sums too: chips older than bf16 support it.
  const sg_dtype wide = gemms[0].out_type == SG_DTYPE_BF16 ? SG_DTYPE_BF16 : SG_DTYPE_F16;
  panel_list panels(in_, gemms[0].in_type, wide);
  auto *next = static_cast<char *>(memory_);
  for (std::size_t i = 0; i < gemms.size(); ++i) {
    const operand a = a_of(gemms[i]), b = b_of(gemms[i]);
    sg_backend_gemm &g = out[i];
    g = gemms[i];
    g.in_type = wide;
    g.compute = SG_COMPUTE_EXACT;
    g.a_array = g.b_array = nullptr;
    g.a = next, g.lda = a.wide_ld(), g.stride_a = a.wide_stride();
    if (const sg_status status = panels.add(a, next)) return status;
    next += a.wide_bytes();
    g.b = next, g.ldb = b.wide_ld(), g.stride_b = b.wide_stride();
    if (const sg_status status = panels.add(b, next)) return status;
    next += b.wide_bytes();
  }
  return panels.launch();
}

bool multiplies_f8(const call_stream &in, const sg_backend_gemm &g, bool alone) noexcept {
  const cudaDeviceProp &facts = in.owner().facts();
  if (g.compute != SG_COMPUTE_F8 || g.in_type != SG_DTYPE_F8_E4M3 || g.m % tensor_core_alignment != 0 ||
      facts.major * 10 + facts.minor < 89 || !lt_is_loaded())
    return false;
  return is_large(g) ||
         (alone && g.batch == 1 && g.a_array == nullptr && g.b_array == nullptr && fits_a(g) && fits_b(g));
}

sg_status run_f8(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  if (!multiplies_f8(in, what, true)) return run_widened(in, what);
  for (std::int64_t i = 0; i < what.batch; ++i) {
    const sg_backend_gemm item = item_of(what, i);
    cublasStatus_t outcome;
    if (const sg_status status = run_on_chip(in, item, outcome)) return status;
    if (outcome == CUBLAS_STATUS_SUCCESS) continue;
    if (outcome == CUBLAS_STATUS_NOT_SUPPORTED)
      log_fallback("cuBLASLt has no f8 kernel for %lld x %lld x %lld: its operands are widened",
                   static_cast<long long>(item.m), static_cast<long long>(item.n), static_cast<long long>(item.k));
    const sg_status status = outcome == CUBLAS_STATUS_NOT_SUPPORTED ? run_widened(in, item) : blas_failure(outcome);
    if (status != SG_STATUS_OK) return status;
  }
  return SG_STATUS_OK;
}

}  // namespace sg::cuda
