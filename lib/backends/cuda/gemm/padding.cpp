// SPDX-License-Identifier: Apache-2.0
// GEMMs on tensor cores whose sizes or addresses do not suit them. For a size along which an operand is contiguous and
// that is no multiple of 16 bytes, cuBLAS takes kernels that are several times slower, whatever the leading dimension:
// on an H200 3312^3 takes 105 us in f16 and 230 us in tf32, 3308^3 360 and 260, 3305^3 600 to 740 and 700 to 770. Where
// it pays, the operands are copied with zeros up to the next multiple, and C is computed beside its place.
#include <algorithm>

#include "backends/cuda/driver/log.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/kernels/layers.hpp"

namespace sg::cuda {
namespace {

bool is_turned(sg_transpose op) noexcept { return op != SG_TRANSPOSE_N; }

// In the format of the operands, or in parts of them.
bool runs_on_tensor_cores(const call_stream &in, const sg_backend_gemm &g) noexcept {
  const int major = in.owner().facts().major;
  if (g.in_type == SG_DTYPE_F16) return major >= 7;
  if (major < 8) return false;
  if (g.in_type == SG_DTYPE_BF16) return true;
  if (g.in_type != SG_DTYPE_F32 || g.compute == SG_COMPUTE_EXACT) return false;
  return !splits_operands(g) || is_large_enough_to_split(g);
}

// What of a GEMM is copied, and its sizes then.
struct padding {
  std::int64_t m, n, k;
  bool of_a, of_b, of_c;
  double gain;  // of padding, in relation to odd sizes

  explicit padding(const sg_backend_gemm &g) noexcept {
    const bool splits = splits_operands(g);  // which aligns A, B and the depth itself
    const std::int64_t size = element_size(g.in_type), multiple = splits ? 8 : tensor_core_alignment / size;
    const auto rounded_up = [multiple](std::int64_t x) { return (x + multiple - 1) / multiple * multiple; };
    m = rounded_up(g.m);
    n = is_turned(g.op_b) || splits ? rounded_up(g.n) : g.n;
    const bool pads_depth = splits ? m != g.m || n != g.n : is_turned(g.op_a) || !is_turned(g.op_b);
    k = pads_depth ? rounded_up(g.k) : g.k;
    of_a = m != g.m || k != g.k || (!splits && !is_aligned(g.a, g.lda * size));
    of_b = n != g.n || k != g.k || (!splits && !is_aligned(g.b, g.ldb * size));
    of_c = m != g.m || n != g.n || !is_aligned(g.c, g.ldc * element_size(g.out_type));
    const bool is_n_alone = m == g.m && k == g.k && is_aligned(g.a, g.lda * size) && is_aligned(g.b, g.ldb * size);
    const bool is_in_halves = ((m != g.m ? g.m : 0) | (n != g.n ? g.n : 0) | (k != g.k ? g.k : 0)) % 4 == 0 &&
                              is_multiple(g.a, 8) && is_multiple(g.b, 8) && (g.lda | g.ldb) % 4 == 0;
    gain = splits || size != 2 ? 1 : is_n_alone ? 0.16 : is_in_halves ? 0.5 : 1;
  }
  bool is_needed() const noexcept { return of_a || of_b || of_c; }
  // Of the copies of one item.
  double bytes(const sg_backend_gemm &g) const noexcept;
};

// C is only written, as it is computed.
bool only_stores(const sg_backend_gemm &g) noexcept {
  return g.beta.re == 0 && g.beta.im == 0 && (!has_epilogue(g) || has_separate_epilogue(g));
}
// The type of the sums beside C.
sg_dtype sum_type(const sg_backend_gemm &g) noexcept { return only_stores(g) ? g.out_type : SG_DTYPE_F32; }

double padding::bytes(const sg_backend_gemm &g) const noexcept {
  const auto of_input = double(element_size(g.in_type)), of_sum = double(element_size(sum_type(g)));
  return (of_a ? of_input * double(m) * double(k) : 0) + (of_b ? of_input * double(k) * double(n) : 0) +
         (of_c ? of_sum * double(m) * double(n) : 0);
}

// Bytes read and written beyond those of the GEMM alone.
double bytes_moved(const sg_backend_gemm &g, const padding &to) noexcept {
  const auto in_size = double(element_size(g.in_type)), out_size = double(element_size(g.out_type));
  const double a = to.of_a ? 2 * in_size * double(g.m) * double(g.k) : 0;
  const double b = to.of_b ? 2 * in_size * double(g.k) * double(g.n) : 0;
  const double of_sum = only_stores(g) ? 2 * out_size : out_size + 2 * double(element_size(SG_DTYPE_F32));
  return a + b + (to.of_c ? of_sum * double(g.m) * double(g.n) : 0);
}

// The operands of a padded GEMM, in one piece of memory.
class padded_gemm {
 public:
  padded_gemm(gemm_resources &in, const sg_backend_gemm &what) noexcept
      : in_(in), what_(what), to_(what), there_(what) {}
  ~padded_gemm() { in_.release(memory_); }
  padded_gemm(const padded_gemm &) = delete;
  padded_gemm &operator=(const padded_gemm &) = delete;

  sg_status acquire() noexcept {
    const std::int64_t size = element_size(what_.in_type);
    const std::int64_t a = to_.of_a ? to_.m * to_.k * size : 0, b = to_.of_b ? to_.k * to_.n * size : 0;
    const std::int64_t c = to_.of_c ? to_.m * to_.n * element_size(sum_type(what_)) : 0;
    if (const sg_status status = in_.acquire(static_cast<std::uint64_t>(whole(a) + whole(b) + c), &memory_))
      return status;
    there_.m = to_.m, there_.n = to_.n, there_.k = to_.k;
    char *next = static_cast<char *>(memory_);
    if (to_.of_a) there_.a = next, there_.lda = is_turned(what_.op_a) ? to_.k : to_.m, next += whole(a);
    if (to_.of_b) there_.b = next, there_.ldb = is_turned(what_.op_b) ? to_.n : to_.k, next += whole(b);
    if (to_.of_c || has_separate_epilogue(what_)) there_ = without_epilogue(there_);
    if (!to_.of_c) return SG_STATUS_OK;
    there_.c = next, there_.ldc = to_.m;
    there_.out_type = sum_type(what_);
    there_.beta = {0, 0};
    return SG_STATUS_OK;
  }
  sg_status run() noexcept {
    sg_status status = SG_STATUS_OK;
    if (to_.of_a)
      status =
          pad(what_.a, what_.lda, is_turned(what_.op_a), what_.m, what_.k, const_cast<void *>(there_.a), to_.m, to_.k);
    if (to_.of_b && status == SG_STATUS_OK)
      status =
          pad(what_.b, what_.ldb, is_turned(what_.op_b), what_.k, what_.n, const_cast<void *>(there_.b), to_.k, to_.n);
    if (status == SG_STATUS_OK) status = run_gemm(in_, there_);
    return status == SG_STATUS_OK && to_.of_c ? bring_back() : status;
  }

 private:
  static std::int64_t whole(std::int64_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

  sg_status pad(const void *from, std::int64_t ld, bool turned, std::int64_t rows, std::int64_t cols, void *to,
                std::int64_t to_rows, std::int64_t to_cols) noexcept {
    if (turned) std::swap(rows, cols), std::swap(to_rows, to_cols);
    const padded_matrix what{from, element_size(what_.in_type), ld, rows, cols, to, to_rows, to_cols};
    return in_.owner().check(launch_pad(what, in_.native()), "padding an operand");
  }
  sg_status bring_back() noexcept {
    if (only_stores(what_)) {
      const sg_backend_axpby copy{{sizeof copy, SG_BACKEND_AXPBY},
                                  what_.m,
                                  what_.n,
                                  what_.out_type,
                                  SG_ACTIVATION_NONE,
                                  {1, 0},
                                  {0, 0},
                                  there_.c,
                                  there_.ldc,
                                  what_.c,
                                  what_.ldc};
      return in_.owner().check(launch_axpby(copy, in_.native()), "starting to copy a result");
    }
    const bool fuses = !has_separate_epilogue(what_);
    const sg_backend_reduce sum{{sizeof sum, SG_BACKEND_REDUCE},
                                what_.m,
                                what_.n,
                                SG_DTYPE_F32,
                                what_.out_type,
                                what_.beta,
                                there_.c,
                                1,
                                there_.ldc,
                                there_.ldc * there_.n,
                                what_.c,
                                what_.ldc,
                                fuses ? what_.bias : nullptr,
                                what_.bias_per_row,
                                fuses ? what_.activation : SG_ACTIVATION_NONE};
    return in_.owner().check(launch_reduce(sum, in_.native()), "starting a reduction");
  }

  gemm_resources &in_;
  const sg_backend_gemm &what_;
  const padding to_;
  sg_backend_gemm there_;
  void *memory_ = nullptr;
};

sg_status run_padded_item(gemm_resources &in, const sg_backend_gemm &item) noexcept {
  if (!padding(item).is_needed()) return run_as_given(in, item);  // another one of its batch is at other addresses
  padded_gemm padded(in, item);
  const sg_status status = padded.acquire();
  return status == SG_STATUS_OK ? padded.run() : status;
}

}  // namespace

// On an H200 padding saves 7 ps for each operation of odd sizes, its kernels move 2.5 TB/s, and their launches take 12
// us: which is 0.0175 bytes for an operation, and 30 MB. Smaller chips are slower in proportion. No plan counts the
// memory of the copies: they are a sixteenth of the GPU's at most.
bool gains_by_padding(const call_stream &in, const sg_backend_gemm &what) noexcept {
  const cudaDeviceProp &facts = in.owner().facts();
  const double launches = 30e6 / 132 * facts.multiProcessorCount;
  const double saved = 0.0175 * 2 * double(what.m) * double(what.n) * double(what.k);
  if (saved <= launches || !runs_on_tensor_cores(in, what)) return false;
  const sg_backend_gemm one = item_of(what, 0);
  const padding to(one);
  return to.is_needed() && to.bytes(one) <= double(facts.totalGlobalMem) / 16 &&
         to.gain * saved > bytes_moved(one, to) + launches;
}

sg_status run_padded(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  for (std::int64_t i = 0; i < what.batch; ++i) {
    sg_backend_gemm item = item_of(what, i);
    item.bias = bias_of_item(what, i);
    sg_status status = run_padded_item(in, item);
    if (status == SG_STATUS_OUT_OF_MEMORY) {  // before anything was written to C
      log_fallback("no memory for padded operands of a GEMM of %lld x %lld x %lld: it is computed as it is",
                   static_cast<long long>(item.m), static_cast<long long>(item.n), static_cast<long long>(item.k));
      status = run_as_given(in, item);
    }
    if (status != SG_STATUS_OK) return status;
  }
  return SG_STATUS_OK;
}

}  // namespace sg::cuda
