// SPDX-License-Identifier: Apache-2.0
// Operands at addresses that cuBLAS does not take: complex ones are aligned to their parts only.
#include <algorithm>

#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/layers.hpp"

namespace sg::cuda {
namespace {

template <class Fits>
bool all_items(const sg_backend_gemm &g, Fits &&fits) noexcept {
  const std::int64_t different = has_pointers(g) ? g.batch : 1;  // the others are whole strides away
  for (std::int64_t i = 0; i < different; ++i)
    for (const char *start : bases_of(g, i).of)
      if (!fits(start)) return false;
  return true;
}

// A matrix as stored, where cuBLAS takes it: where it is, or a copy without gaps.
class aligned_matrix {
 public:
  aligned_matrix(gemm_resources &in, sg_dtype type) noexcept : in_(in), type_(type) {}
  ~aligned_matrix() { in_.release(copy_); }
  aligned_matrix(const aligned_matrix &) = delete;
  aligned_matrix &operator=(const aligned_matrix &) = delete;

  sg_status take(const void *data, std::int64_t ld, std::int64_t rows, std::int64_t cols, bool reads) noexcept {
    given_ = const_cast<void *>(data), given_ld_ = ld, rows_ = rows, cols_ = cols;
    if (is_multiple(data, element_size(type_))) return SG_STATUS_OK;
    const std::int64_t elements = std::max<std::int64_t>(1, rows * cols);
    const auto bytes = static_cast<std::uint64_t>(elements * element_size(type_));
    if (const sg_status status = in_.acquire(bytes, &copy_)) return status;
    return reads ? move(copy_, this->ld(), given_, given_ld_) : SG_STATUS_OK;
  }
  sg_status bring_back() noexcept {
    return copy_ == nullptr ? SG_STATUS_OK : move(given_, given_ld_, copy_, this->ld());
  }
  void *data() const noexcept { return copy_ == nullptr ? given_ : copy_; }
  std::int64_t ld() const noexcept { return copy_ == nullptr ? given_ld_ : std::max<std::int64_t>(1, rows_); }

 private:
  sg_status move(void *to, std::int64_t to_ld, const void *from, std::int64_t from_ld) noexcept {
    if (rows_ * cols_ == 0) return SG_STATUS_OK;
    const sg_backend_axpby copy{{sizeof copy, SG_BACKEND_AXPBY},
                                rows_,
                                cols_,
                                type_,
                                SG_ACTIVATION_NONE,
                                {1, 0},
                                {0, 0},
                                from,
                                from_ld,
                                to,
                                to_ld};
    return in_.owner().check(launch_axpby(copy, in_.native()), "starting to copy an operand");
  }

  gemm_resources &in_;
  const sg_dtype type_;
  void *given_ = nullptr, *copy_ = nullptr;
  std::int64_t given_ld_ = 0, rows_ = 0, cols_ = 0;
};

sg_status run_item(gemm_resources &in, const sg_backend_gemm &item) noexcept {
  aligned_matrix a(in, item.in_type), b(in, item.in_type), c(in, item.out_type);
  const bool a_turned = item.op_a != SG_OP_N, b_turned = item.op_b != SG_OP_N;
  const bool reads_c = item.beta.re != 0 || item.beta.im != 0;
  sg_status status = a.take(item.a, item.lda, a_turned ? item.k : item.m, a_turned ? item.m : item.k, true);
  if (status == SG_STATUS_OK)
    status = b.take(item.b, item.ldb, b_turned ? item.n : item.k, b_turned ? item.k : item.n, true);
  if (status == SG_STATUS_OK) status = c.take(item.c, item.ldc, item.m, item.n, reads_c);
  if (status != SG_STATUS_OK) return status;
  sg_backend_gemm there = item;
  there.a = a.data(), there.lda = a.ld();
  there.b = b.data(), there.ldb = b.ld();
  there.c = c.data(), there.ldc = c.ld();
  status = run_blas(in, there);
  return status == SG_STATUS_OK ? c.bring_back() : status;
}

}  // namespace

bool suits_tensor_cores(const sg_backend_gemm &g) noexcept {
  const auto is_whole = [](const char *start) { return is_multiple(start, tensor_core_alignment); };
  const std::int64_t strides = g.batch > 1 && !has_pointers(g) ? g.stride_a | g.stride_b | g.stride_c : 0;
  return (g.m | g.n | g.k | g.lda | g.ldb | g.ldc | strides) % 8 == 0 && all_items(g, is_whole);
}

bool is_misaligned(const sg_backend_gemm &g) noexcept {
  const std::int64_t size = element_size(g.in_type);
  return size != component_size(g.in_type) && !all_items(g, [=](const char *at) { return is_multiple(at, size); });
}

sg_status run_misaligned(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  for (std::int64_t i = 0; i < what.batch; ++i)
    if (const sg_status status = run_item(in, item_of(what, i))) return status;
  return SG_STATUS_OK;
}

}  // namespace sg::cuda
